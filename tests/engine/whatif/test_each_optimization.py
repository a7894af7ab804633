"""Each optimization of the catalogue by itself: undoing it gives the job back, and what excludes it is refused."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from engine.optimizations.catalogue import in_order, optimization_registry
from engine.optimizations.interface import Bound, Verdict
from engine.optimizations.selection import Enabled, refusals
from engine.runtime.scheduler import schedule
from engine.whatif.capture_changes import changed_capture
from engine.whatif.scenario_changes import changed
from engine.whatif.subject import capture_subject
from engine.workloads.scenario_file import scenario_from_document
from tests.support.closed_loop import recorded

REGISTRY = optimization_registry()
CATALOGUE = in_order(REGISTRY)
each_optimization = pytest.mark.parametrize("item", CATALOGUE, ids=lambda item: item.id)


def job():
    document = {
        "name": "small",
        "model": {"preset": "qwen2-1.5b", "layers": 2, "vocab": 8000},
        "device": {"preset": "910b2", "count": 4},
        "parallel": {"data": 2, "pipeline": 2},
        "batch": {"micro": 1, "global": 4, "sequence_length": 1024},
        "run": {"steps": 2},
    }
    return scenario_from_document(document, Path())


@pytest.fixture(scope="module")
def subject():
    return capture_subject(recorded(job()).job)


def on(*ids):
    return [Enabled(item, item.defaults) for item in CATALOGUE if item.id in ids]


def columns(graph):
    found = {item.name: getattr(graph, item.name) for item in fields(graph)}
    return {name: np.array(value) for name, value in found.items() if isinstance(value, np.ndarray)}


def longest_chain_ns(graph):
    """Returns the longest chain of tasks that wait for each other, without queues and collectives."""
    ends_ns = [0] * len(graph)
    for task in np.argsort(schedule(graph).start_ns, kind="stable").tolist():
        ready_ns = max((ends_ns[int(before)] for before in graph.predecessors_of(task)), default=0)
        ends_ns[task] = ready_ns + int(graph.duration_ns[task])
    return max(ends_ns)


@each_optimization
def test_a_recording_is_the_same_after_an_optimization_was_on(subject, item):
    before = columns(subject.capture.graph)

    for bound in Bound:
        if item.check_capture(subject.plan, item.defaults).verdict is Verdict.APPLIES:
            item.on_capture(subject.plan, item.defaults, bound)
    changed_capture(subject.plan, on(item.id))
    undone = changed_capture(subject.plan, ()).plan

    after = columns(undone.graph)
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert (undone.allocator, dict(undone.edits)) == (None, {})


@each_optimization
def test_a_scenario_is_the_same_after_an_optimization_was_on(item):
    scenario = job()

    changes = changed(scenario, on(item.id))

    assert scenario == job()
    assert changed(scenario, ()).scenario == job()
    if not changes.applied:
        assert changes.scenario == job()


@each_optimization
def test_a_rewritten_recording_takes_no_less_than_its_longest_chain(subject, item):
    graph = changed_capture(subject.plan, on(item.id, *item.needs)).plan.graph

    ran = schedule(graph)

    assert ran.is_complete
    assert ran.makespan_ns >= longest_chain_ns(graph)


@each_optimization
def test_what_excludes_an_optimization_is_refused_with_the_stated_reason(item):
    for conflict in item.conflicts:
        setting = conflict.other.partition("environment:")[2]
        name, _, value = setting.partition("=")
        chosen = on(item.id) if setting else on(item.id, conflict.other)
        found = refusals(chosen, {name: value} if setting else {})
        assert any(conflict.reason in refusal.reason for refusal in found)
    for needed in item.needs:
        assert any(needed in refusal.reason for refusal in refusals(on(item.id), {}))


@each_optimization
def test_conflicts_and_needs_name_what_the_catalogue_has(item):
    named = [conflict.other for conflict in item.conflicts if not conflict.other.startswith("environment:")]

    assert set(named) | set(item.needs) <= {each.id for each in CATALOGUE}
