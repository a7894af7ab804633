"""What less host time would win: the step with the host as it is, beside one whose host is never late."""

import numpy as np

from engine.core.number_format import format_duration_ns, format_ratio
from engine.optimizations.answers import no_effect
from engine.optimizations.graph_edits import with_column
from engine.optimizations.host.dispatch_tasks import DispatchTasks
from engine.optimizations.interface import Applicability, CapturePlan
from engine.replay.replay_time import replay_time

WORTH_RATIO = 0.005
"""A host whose dispatch costs less than this share of a step is ahead of its device."""


def late_ns(plan: CapturePlan, found: DispatchTasks) -> tuple[float, float]:
    """Returns by how much the mean step would be shorter if dispatching took no time, and how long it is, ns."""
    whole_ns = float(replay_time(plan.capture, plan.graph).step_ns.mean())
    free = with_column(plan.graph, "duration_ns", found.dispatches & ~found.long, 0)
    return max(whole_ns - float(replay_time(plan.capture, free).step_ns.mean()), 0.0), whole_ns


def not_host_bound(found: DispatchTasks, late: tuple[float, float]) -> Applicability | None:
    """Returns that dispatching delays nothing, None where it does.

    Args:
        found: The dispatches.
        late: What ``late_ns`` says.
    """
    if not np.any(found.dispatches):
        return no_effect("the capture shows no host calls that launch kernels")
    saved_ns, whole_ns = late
    if saved_ns >= WORTH_RATIO * whole_ns:
        return None
    return no_effect(
        f"the host is ahead of the device: without any dispatch time the step of {format_duration_ns(whole_ns)} would "
        f"be {format_duration_ns(saved_ns)} ({format_ratio(saved_ns / max(whole_ns, 1))}) shorter"
    )
