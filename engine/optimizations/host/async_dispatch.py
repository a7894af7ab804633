"""The task queue: a second host thread takes over parts of every dispatch."""

from dataclasses import replace

import numpy as np

from engine.analyses.launches import queue_links
from engine.core.number_format import format_duration_ns
from engine.optimizations.answers import already_listed, already_on, applies, no_effect, switched_on
from engine.optimizations.graph_edits import with_column
from engine.optimizations.host.dispatch_tasks import dispatch_tasks
from engine.optimizations.host.host_bound import late_ns, not_host_bound
from engine.optimizations.host.scenario_dispatch import host_is_ahead, layer_times
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Conflict,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.recorded_job import environment, is_gpu
from engine.workloads.host_dispatch import (
    DEEPEST_LEVEL,
    USUAL_LEVEL,
    TaskQueueParts,
    load_task_queue_parts,
    queue_level,
)
from engine.workloads.scenario import Scenario

ID = "host.async_dispatch"
_VARIABLE, _BLOCKING = "TASK_QUEUE_ENABLE", "ASCEND_LAUNCH_BLOCKING"
ASSUMPTION = "parts of a dispatch (framework, workspace, launch) stand in the proportions of a public NPU timeline"
MEASURED = "the two threads' times are those of this capture; workspace takes its usual share of the first one's"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    settled = already_listed(scenario, ID)
    if settled is None and scenario.device.vendor == "NVIDIA":
        settled = no_effect(f"the task queue is torch_npu's; device {scenario.device.id} has none")
    if settled is not None:
        return settled
    level, current = int(parameters["level"]), queue_level(scenario)
    if level == current:
        return already_on(f"the job runs at level {current}, torch_npu's default")
    ahead = host_is_ahead(layer_times(scenario)) if level > current else None
    if ahead is not None:
        return ahead
    parts = load_task_queue_parts()
    usual_ns = scenario.device.host_dispatch_ns
    return applies(
        f"an operator costs the host {format_duration_ns(usual_ns * parts.ratio(level))} at level {level} instead of "
        f"{format_duration_ns(usual_ns * parts.ratio(current))} at level {current}"
    )


def _recorded_level(plan: CapturePlan) -> int:
    """Returns the level a capture was made at: as its environment says, else the default."""
    if environment(plan, _BLOCKING) == "1":
        return 0
    value = environment(plan, _VARIABLE)
    return int(value) if value in ("0", "1", "2") else USUAL_LEVEL


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    if is_gpu(plan):
        return no_effect("the task queue is torch_npu's; this job ran on another device")
    level, current = int(parameters["level"]), _recorded_level(plan)
    if level == current:
        return already_on(f"the capture was made at level {current}")
    found = dispatch_tasks(plan.graph)
    late = late_ns(plan, found)
    settled = not_host_bound(found, late) if level > current else None
    if settled is not None:
        return settled
    saved_ns, whole_ns = late
    ratio = _ratio(*_parts(plan), current, level, Bound.EXPECTED)
    return applies(
        f"the device waits for the host {format_duration_ns(saved_ns)} of a step of {format_duration_ns(whole_ns)}; "
        f"a dispatch takes {ratio:.2f} times as long at level {level} as at level {current}"
    )


def _parts(plan: CapturePlan) -> tuple[TaskQueueParts, bool]:
    """Returns the parts of a dispatch, and whether both threads' times are the capture's own."""
    usual = load_task_queue_parts()
    enqueued, dequeued = [], []
    # A loop over ranks.
    for entry in plan.capture.job.ranks:
        source, target = queue_links(entry.trace)
        starts = np.sort(entry.trace.events.start_ns[source])
        enqueued.append(np.diff(starts))
        dequeued.append(entry.trace.events.duration_ns[target])
    one, other = np.concatenate(enqueued), np.concatenate(dequeued)
    if len(one) == 0 or len(other) == 0:
        return usual, False
    first_ns, launch_ns = float(np.median(one)), float(np.median(other))
    share = usual.workspace_ns / (usual.framework_ns + usual.workspace_ns)
    return TaskQueueParts(first_ns * (1 - share), first_ns * share, launch_ns), True


def _ratio(parts: TaskQueueParts, measured: bool, current: int, level: int, bound: Bound) -> float:
    """Returns host time per operator at the new level over that at the recorded one.

    Where both threads are recorded the range is that of the share workspace takes: nothing, as usual, or all that the
    second thread has time for. Where they are not, LOW leaves the host as it is.
    """
    if bound is Bound.EXPECTED:
        return parts.operator_ns(level) / parts.operator_ns(current)
    first_ns = parts.framework_ns + parts.workspace_ns
    if bound is Bound.LOW:
        edge = TaskQueueParts(first_ns, 0.0, parts.launch_ns)
        return edge.operator_ns(level) / edge.operator_ns(current) if measured else 1.0
    moved_ns = min(max((first_ns - parts.launch_ns) / 2, 0.0), first_ns)
    edge = TaskQueueParts(first_ns - moved_ns, moved_ns, parts.launch_ns)
    return min(item.operator_ns(level) / item.operator_ns(current) for item in (edge, parts))


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    graph = plan.graph
    found = dispatch_tasks(graph)
    parts, measured = _parts(plan)
    ratio = _ratio(parts, measured, _recorded_level(plan), int(parameters["level"]), bound)
    changed = np.flatnonzero(found.dispatches & ~found.long)
    rewritten = with_column(graph, "duration_ns", changed, graph.duration_ns[changed] * ratio)
    note = MEASURED if measured else ASSUMPTION
    return replace(plan, graph=rewritten, assumptions=(*plan.assumptions, note))


ASYNC_DISPATCH = Optimization(
    id=ID,
    title="Asynchronous dispatch (task queue)",
    group=Group.HOST,
    summary=(
        "A second host thread launches what the first one enqueues (level 1), and finds workspace and tiling as well "
        "(level 2): a stream of operators costs as much as the slower thread."
    ),
    parameters=(
        Parameter(
            "level",
            "Level of the task queue (0, 1, 2)",
            DEEPEST_LEVEL,
            minimum=0,
            maximum=DEEPEST_LEVEL,
            provenance="torch_npu's default is 1; 2 is the deepest",
        ),
    ),
    switches=(
        Switch(
            "torch_npu",
            "",
            "export TASK_QUEUE_ENABLE=2",
            "Ascend/pytorch docs/zh/api/environment_variable/op_execution",
            "2 raises the memory peak (workspace from a buffer per stream); off under ASCEND_LAUNCH_BLOCKING=1",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    conflicts=(
        Conflict("environment:ASCEND_LAUNCH_BLOCKING=1", "blocking launches turn the task queue off"),
        Conflict("host.graph_mode", "a captured graph is dispatched by one launch: there is nothing left to queue"),
    ),
    risk="level 2 takes workspace from a buffer per stream, whose growth synchronises: more memory",
    undo="export TASK_QUEUE_ENABLE=1",
    verify="device idle between kernels and step time after 5 warm steps; peak memory",
    provenance="parts of a dispatch: devices/data/task_queue.json, from a public NPU timeline",
)
