"""What holds for any graph: less host time never makes a run longer, and nothing else changes."""

from dataclasses import replace

import numpy as np
from hypothesis import given

from engine.graph.checks import topological_order
from engine.optimizations.interface import Bound
from engine.runtime.scheduler import schedule
from engine.trace.job import Job
from tests.support.capture_graphs import plan_without_tasks
from tests.support.task_graphs import task_graphs
from tests.support.toggled_jobs import toggle


@given(task_graphs())
def test_captured_graphs_never_make_a_run_longer(graph):
    item = toggle("host.graph_mode")
    plan = replace(plan_without_tasks(Job("", ())), graph=graph)
    before = schedule(graph).makespan_ns
    ends = []
    for bound in Bound:
        rewritten = item.on_capture(plan, item.defaults, bound).graph
        topological_order(rewritten)
        assert len(rewritten) == len(graph)
        assert np.all(rewritten.duration_ns <= graph.duration_ns)
        assert np.array_equal(rewritten.predecessors, graph.predecessors)
        ends.append(schedule(rewritten).makespan_ns)
    assert ends[2] <= ends[1] <= ends[0] <= before
