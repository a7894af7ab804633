"""A capture's graph without tasks: for what only looks at memory logs and steps."""

import numpy as np

from engine.graph.builder import GraphBuilder
from engine.optimizations.interface import CapturePlan
from engine.replay.capture_graph import CaptureGraph, RecordedSteps
from engine.trace.job import Job


def plan_without_tasks(job: Job, step_ends_ns: dict[int, list[int]] | None = None) -> CapturePlan:
    """Returns the plan of a job whose ranks have steps that end at the given job times."""
    rows = [(rank, step, end_ns) for rank, ends in (step_ends_ns or {}).items() for step, end_ns in enumerate(ends)]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    steps = RecordedSteps(
        rank=columns[:, 0].astype(np.int32),
        step=columns[:, 1].astype(np.int32),
        start_ns=np.zeros(len(rows), dtype=np.int64),
        end_ns=columns[:, 2].copy(),
    )
    graph = GraphBuilder().build()
    return CapturePlan(CaptureGraph(job, graph, steps, host_source={}, latency_ns={}), graph)
