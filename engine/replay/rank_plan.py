"""Everything about one rank that its part of the graph is made of."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import activities
from engine.analyses.communication import Collective
from engine.analyses.communication.collective_rows import operation_of
from engine.analyses.launches import launch_events, operator_events
from engine.analyses.modules import kernel_places
from engine.analyses.name_search import names_holding
from engine.analyses.steps import Step
from engine.analyses.steps.profiler_steps import host_steps, steps_of_tasks
from engine.core.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt8Array
from engine.graph.task_graph import Stream, TaskKind
from engine.replay.announced_waits import announced_waits
from engine.replay.capture_graph import HostSource
from engine.replay.dependencies import Waits, awaited_by_host, device_waits
from engine.replay.device_tasks import DeviceTasks, device_tasks
from engine.replay.dispatch import Dispatch
from engine.replay.dispatch_inferred import inferred_chain
from engine.replay.dispatch_launches import launched_chain
from engine.replay.named_waits import NamedWaits
from engine.replay.recorded_waits import queue_of_tracks, recorded_waits
from engine.replay.shadow_ranks import no_host, program_order
from engine.replay.task_kinds import task_kinds
from engine.trace.diagnostics import DiagnosticLog
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

CORES = (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX, TaskKind.AI_CPU)


@dataclass(frozen=True, slots=True, eq=False)
class RankPlan:
    """One rank, its times on the device's clock of its trace. Columns by device task unless said otherwise.

    Attributes:
        trace: The capture.
        collectives: The rank's, by start.
        tasks: Device tasks.
        kind: uint8 TaskKind.
        step: int32 number of the profiler's step, ABSENT outside.
        dispatch: The host.
        launched: int32, shape (host tasks,): the first device task at or after each host task in launch order, −1 for
            none: step, phase and layer of a host task are those of what it launches next.
        operator: int32 event row of the framework's operator behind each device task, −1 where unknown.
        phase: int32 index into ``PHASES``, 0 where unknown.
        layer: int32, −1 outside layers.
        host_source: Where the host's times come from.
        waits: Between device tasks.
        host_waits: From device tasks to host tasks.
    """

    trace: Trace
    collectives: tuple[Collective, ...]
    tasks: DeviceTasks
    kind: UInt8Array
    step: Int32Array
    dispatch: Dispatch
    launched: Int32Array
    operator: Int32Array
    phase: Int32Array
    layer: Int32Array
    host_source: HostSource
    waits: Waits
    host_waits: Waits

    @property
    def first_ns(self) -> int:
        """Trace time of the first thing that happens."""
        first_ns: Int64Array = np.concatenate((self.dispatch.end_ns[:1], self.tasks.start_ns))
        return int(first_ns.min())

    @property
    def computes(self) -> BoolArray:
        """bool, shape (device tasks,): which tasks run on the cores."""
        return np.isin(self.kind, CORES)

    @property
    def is_shadow(self) -> bool:
        """Whether nothing but collectives is known of the rank."""
        return len(self.dispatch) == 0


def rank_plan(
    trace: Trace, collectives: tuple[Collective, ...], known_steps: tuple[Step, ...], log: DiagnosticLog
) -> RankPlan | None:
    """Returns the plan of a rank, None where its capture shows no device task.

    Args:
        trace: The capture.
        collectives: The rank's, by start.
        known_steps: ``steps(trace)``.
        log: Told of what had to be assumed or left out.
    """
    kinds = activities(trace)
    tasks = device_tasks(trace, kinds, collectives, log)
    if len(tasks) == 0:
        return None
    kind = task_kinds(trace, tasks, kinds)
    computes = np.isin(kind, CORES)
    if np.all(tasks.collective >= 0) and not np.any(tasks.queue == Stream.COMPUTE):
        return _shadow_plan(trace, collectives, tasks, kind, known_steps)
    launch = launch_events(trace)
    queue = queue_of_tracks(trace, tasks, kinds)
    named_waits = NamedWaits.of(trace, tasks, launch, queue)
    dispatch = launched_chain(trace, tasks, launch, named_waits, log)
    source = HostSource.LAUNCHES
    if dispatch is None:
        dispatch, source = inferred_chain(trace, tasks, collectives)
    recorded = recorded_waits(trace, tasks, kinds, launch, queue, named_waits)
    announced, told = announced_waits(trace, tasks, launch)
    waits = device_waits(tasks, dispatch, computes, _families(tasks, collectives), recorded, announced, told)
    host_waits = awaited_by_host(tasks, dispatch, _whole_device(trace, dispatch), dispatch.latency_ns)
    operators = operator_events(trace)
    phase, layer = _places(trace, operators, tasks, kinds)
    return RankPlan(
        trace=trace,
        collectives=collectives,
        tasks=tasks,
        kind=kind,
        step=_steps(trace, tasks, known_steps),
        dispatch=dispatch,
        launched=_next_launched(dispatch),
        operator=_of_events(operators, tasks, ABSENT),
        phase=phase,
        layer=layer,
        host_source=source,
        waits=waits,
        host_waits=host_waits,
    )


def _families(tasks: DeviceTasks, collectives: tuple[Collective, ...]) -> Int32Array:
    """Returns a number per group and operation for each collective, int32; −1 for other tasks."""
    known: dict[tuple[str, str], int] = {}
    numbers = [known.setdefault((item.group, operation_of(item.name)), len(known)) for item in collectives]
    return np.array([*numbers, ABSENT], dtype=np.int32)[tasks.collective]


def _of_events(column: AnyArray, tasks: DeviceTasks, missing: int) -> Int32Array:
    """Returns the entry of a column by event for each task, int32; ``missing`` for tasks without an event."""
    values: Int32Array = np.where(tasks.event >= 0, column[np.maximum(tasks.event, 0)], missing).astype(np.int32)
    return values


def _places(
    trace: Trace, operators: Int32Array, tasks: DeviceTasks, kinds: UInt8Array
) -> tuple[Int32Array, Int32Array]:
    """Returns phase and layer of each device task."""
    places = kernel_places(trace, operators, kinds)
    phase, layer = np.zeros(len(trace.events), dtype=np.int32), np.full(len(trace.events), ABSENT, dtype=np.int32)
    phase[places.event], layer[places.event] = places.phase, places.layer
    return _of_events(phase, tasks, 0), _of_events(layer, tasks, ABSENT)


def _shadow_plan(
    trace: Trace,
    collectives: tuple[Collective, ...],
    tasks: DeviceTasks,
    kind: UInt8Array,
    known_steps: tuple[Step, ...],
) -> RankPlan:
    """Returns the plan of a rank that shows nothing but collectives."""
    nothing = np.empty(0, dtype=np.int32)
    return RankPlan(
        trace=trace,
        collectives=collectives,
        tasks=tasks,
        kind=kind,
        step=_steps(trace, tasks, known_steps),
        dispatch=no_host(tasks),
        launched=nothing,
        operator=np.full(len(tasks), ABSENT, dtype=np.int32),
        phase=np.zeros(len(tasks), dtype=np.int32),
        layer=np.full(len(tasks), ABSENT, dtype=np.int32),
        host_source=HostSource.GAPS,
        waits=program_order(tasks),
        host_waits=Waits(nothing, nothing, nothing.astype(np.uint8)),
    )


def _whole_device(trace: Trace, dispatch: Dispatch) -> BoolArray:
    """Returns which host tasks wait for every stream, bool, shape (host tasks,)."""
    names = names_holding(trace.strings, ("devicesync", "synchronizedevice", "ctxsync"))
    rows = np.maximum(dispatch.event, 0)
    if len(trace.events) == 0:
        return np.ones(len(rows), dtype=np.bool_)
    # Inferred waits are those of a host that found the whole device idle.
    answer: BoolArray = np.isin(trace.events.name[rows], names) | (dispatch.event < 0)
    return answer


def _steps(trace: Trace, tasks: DeviceTasks, known_steps: tuple[Step, ...]) -> Int32Array:
    """Returns the step of each device task: what the capture's tables say, else the step that launched it."""
    number = np.full(len(tasks), ABSENT, dtype=np.int32)
    known = np.flatnonzero(tasks.event >= 0)
    events = tasks.event[known]
    hosts = host_steps(trace)
    if hosts:
        by_event = np.argsort(events, kind="stable")
        index = steps_of_tasks(trace, events[by_event], hosts)
        numbers = np.array([*(step.number for step in hosts), ABSENT], dtype=np.int32)
        number[known[by_event]] = numbers[index]
    recorded = np.full(len(trace.events) + 1, ABSENT, dtype=np.int32)
    for table in (trace.collectives, trace.kernels):
        told = (table.event >= 0) & (table.step >= 0)
        recorded[table.event[told]] = table.step[told]
    of_event = recorded[tasks.event]
    number = np.where(of_event >= 0, of_event, number)
    if len(known_steps) == 1 and known_steps[0].step is not None and np.all(number == ABSENT):
        number[:] = known_steps[0].step
    return number


def _next_launched(dispatch: Dispatch) -> Int32Array:
    """Returns the first device task launched by each host task or by the next one that launches any; −1 for none."""
    known = np.flatnonzero(dispatch.launched_by >= 0)
    first = np.full(len(dispatch), ABSENT, dtype=np.int32)
    first[dispatch.launched_by[known][::-1]] = known[::-1]
    following = np.where(first >= 0, np.arange(len(dispatch)), len(dispatch))
    following = np.minimum.accumulate(following[::-1])[::-1]
    answer: Int32Array = np.append(first, np.int32(ABSENT))[following]
    return answer
