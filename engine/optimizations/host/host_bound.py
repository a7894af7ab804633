"""What less host time would win: the step with the host as it is, beside one whose host is never late."""

import numpy as np

from engine.core.number_format import format_duration_ns, format_ratio
from engine.graph.task_graph import TaskGraph
from engine.optimizations.answers import no_effect
from engine.optimizations.graph_edits import with_column
from engine.optimizations.host.dispatch_tasks import DispatchTasks
from engine.optimizations.interface import Applicability
from engine.runtime.scheduler import schedule

WORTH_RATIO = 0.005
"""A host whose dispatch costs less than this share of the run is ahead of its device."""


def late_ns(graph: TaskGraph, found: DispatchTasks) -> tuple[int, int]:
    """Returns by how much the run would be shorter if dispatching took no time, and how long it is, ns."""
    whole_ns = schedule(graph).makespan_ns
    free = with_column(graph, "duration_ns", found.dispatches & ~found.long, 0)
    return whole_ns - schedule(free).makespan_ns, whole_ns


def not_host_bound(graph: TaskGraph, found: DispatchTasks) -> Applicability | None:
    """Returns that dispatching delays nothing, None where it does."""
    if not np.any(found.dispatches):
        return no_effect("the capture shows no host calls that launch kernels")
    saved_ns, whole_ns = late_ns(graph, found)
    if saved_ns >= WORTH_RATIO * whole_ns:
        return None
    return no_effect(
        f"the host is ahead of the device: without any dispatch time the run of {format_duration_ns(whole_ns)} would "
        f"be {format_duration_ns(max(saved_ns, 0))} ({format_ratio(max(saved_ns, 0) / max(whole_ns, 1))}) shorter"
    )
