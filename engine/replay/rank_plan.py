"""Everything about one rank that its part of the graph is made of."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import activities
from engine.analyses.communication import Collective
from engine.analyses.launches import launch_events
from engine.analyses.name_search import names_holding
from engine.analyses.steps import steps
from engine.analyses.steps.profiler_steps import host_steps, steps_of_tasks
from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.graph.task_graph import Stream, TaskKind
from engine.replay.announced_waits import announced_waits
from engine.replay.capture_graph import HostSource
from engine.replay.dependencies import Waits, awaited_by_host, device_waits
from engine.replay.device_tasks import DeviceTasks, device_tasks
from engine.replay.dispatch import Dispatch
from engine.replay.dispatch_inferred import inferred_chain
from engine.replay.dispatch_launches import launched_chain
from engine.replay.recorded_waits import recorded_waits
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
        host_step: int32, shape (host tasks,).
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
    host_step: Int32Array
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


def rank_plan(trace: Trace, collectives: tuple[Collective, ...], log: DiagnosticLog) -> RankPlan | None:
    """Returns the plan of a rank, None where its capture shows no device task."""
    kinds = activities(trace)
    tasks = device_tasks(trace, kinds, collectives, log)
    if len(tasks) == 0:
        return None
    kind = task_kinds(trace, tasks, kinds)
    computes = np.isin(kind, CORES)
    if np.all(tasks.collective >= 0) and not np.any(tasks.queue == Stream.COMPUTE):
        return _shadow_plan(trace, collectives, tasks, kind)
    launch = launch_events(trace)
    dispatch = launched_chain(trace, tasks, launch, log)
    source = HostSource.LAUNCHES
    if dispatch is None:
        dispatch, source = inferred_chain(trace, tasks, collectives)
    recorded = recorded_waits(trace, tasks, kinds, launch)
    announced, told = announced_waits(trace, tasks, launch)
    waits = device_waits(tasks, dispatch, computes, recorded, announced, told)
    host_waits = awaited_by_host(tasks, dispatch, _whole_device(trace, dispatch), dispatch.latency_ns)
    step = _steps(trace, tasks)
    return RankPlan(
        trace, collectives, tasks, kind, step, dispatch, _host_steps(dispatch, step), source, waits, host_waits
    )


def _shadow_plan(trace: Trace, collectives: tuple[Collective, ...], tasks: DeviceTasks, kind: UInt8Array) -> RankPlan:
    """Returns the plan of a rank that shows nothing but collectives."""
    nothing = np.empty(0, dtype=np.int32)
    return RankPlan(
        trace=trace,
        collectives=collectives,
        tasks=tasks,
        kind=kind,
        step=_steps(trace, tasks),
        dispatch=no_host(tasks),
        host_step=nothing,
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


def _steps(trace: Trace, tasks: DeviceTasks) -> Int32Array:
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
    only = steps(trace)
    if len(only) == 1 and only[0].step is not None and np.all(number == ABSENT):
        number[:] = only[0].step
    return number


def _host_steps(dispatch: Dispatch, step: Int32Array) -> Int32Array:
    """Returns the step of each host task: that of the next task it launches."""
    known = np.flatnonzero(dispatch.launched_by >= 0)
    of_host = np.full(len(dispatch), ABSENT, dtype=np.int32)
    of_host[dispatch.launched_by[known][::-1]] = step[known][::-1]
    launches = np.zeros(len(dispatch), dtype=np.bool_)
    launches[dispatch.launched_by[known]] = True
    following = np.where(launches, np.arange(len(dispatch)), len(dispatch))
    following = np.minimum.accumulate(following[::-1])[::-1]
    last = int(np.flatnonzero(launches)[-1]) if np.any(launches) else 0
    answer: Int32Array = of_host[np.minimum(following, last)]
    return answer
