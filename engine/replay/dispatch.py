"""The host of one rank as one chain: what it did between two launches, and where it waited for the device.

All times are device time: the host's clock less the clocks' difference, and later by the launch latency, so that a
task whose stream is idle starts when its HOST task ends. A launch counts from the start of its call.
"""

from dataclasses import dataclass

import numpy as np

from engine.analyses.idle.host_calls import HostCall, host_call_rows
from engine.analyses.launches import MAX_CLOCK_LAG_NS, clock_lag_ns, launch_events, queue_links
from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.core.units import NS_PER_US
from engine.graph.task_graph import TaskKind
from engine.replay.device_tasks import DeviceTasks
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.intervals import union
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

LATENCY_PERCENTILE = 10
"""A task on an idle stream starts at best this long after its launch; what is longer has causes of its own."""
SWITCH_LIMIT_NS = 200 * NS_PER_US
"""Longer gaps between two queued tasks are no switching (87–112 µs on a 910B that collects L2 cache hits)."""


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """The chain of one rank. Columns of shape (host tasks,) unless said otherwise.

    Attributes:
        kind: uint8, HOST or SYNCHRONIZE.
        start_ns: int64 trace time on the device's clock, launch latency added.
        end_ns: int64, likewise; HOST tasks that launch end where their task could start.
        event: int32 event row of the call, −1 where none is recorded.
        inferred: uint8, 1 for a wait of the host that was inferred.
        launched_by: int32, shape (device tasks,): index of the HOST task that launched each, −1 where unknown.
        latency_ns: From a launch to the start of its task on an idle stream.
        switch_ns: From the end of a task to the start of a queued one on its stream.
    """

    kind: UInt8Array
    start_ns: Int64Array
    end_ns: Int64Array
    event: Int32Array
    inferred: UInt8Array
    launched_by: Int32Array
    latency_ns: int
    switch_ns: int

    def __len__(self) -> int:
        return len(self.kind)

    def ready_ns(self) -> Int64Array:
        """Returns when each device task was on its stream, int64, shape (device tasks,); far past where unknown."""
        known = self.launched_by >= 0
        ready_ns = np.full(len(known), np.iinfo(np.int64).min // 2, dtype=np.int64)
        ready_ns[known] = self.end_ns[self.launched_by[known]]
        return ready_ns


def launched_chain(trace: Trace, tasks: DeviceTasks, log: DiagnosticLog) -> Dispatch | None:
    """Returns the chain of a capture with host rows, None where it ties no task to a launch."""
    launches = launch_events(trace)
    call = np.where(tasks.event >= 0, launches[tasks.event], ABSENT).astype(np.int32)
    known = call >= 0
    if not np.any(known):
        return None
    lag_ns = clock_lag_ns(trace, launches)
    called_ns = np.where(known, trace.events.start_ns[call], 0) - lag_ns
    wrong = known & (called_ns > tasks.start_ns + MAX_CLOCK_LAG_NS)
    log.add("launch-after-start", Severity.NOTICE, "tasks start before their launch; it is not used", count=wrong.sum())
    call[wrong] = ABSENT
    known &= ~wrong
    latency_ns = _latency_ns(tasks, known, called_ns)
    switch_ns = switch_time_ns(tasks, np.where(known, called_ns + latency_ns, tasks.start_ns))
    calls = np.unique(call[known]).astype(np.int32)
    calls = calls[np.argsort(trace.events.start_ns[calls], kind="stable")]
    waits = _waits(trace, np.concatenate((calls, *queue_links(trace))))
    return _chain(trace, tasks, call, calls, waits, lag_ns, latency_ns, switch_ns)


def _latency_ns(tasks: DeviceTasks, known: BoolArray, called_ns: Int64Array) -> int:
    idle = known & (tasks.previous_end_ns < called_ns) & ~tasks.is_first
    delay_ns = (tasks.start_ns - called_ns)[idle]
    delay_ns = delay_ns[(delay_ns >= 0) & (delay_ns < MAX_CLOCK_LAG_NS)]
    return int(np.percentile(delay_ns, LATENCY_PERCENTILE)) if len(delay_ns) else 0


def switch_time_ns(tasks: DeviceTasks, ready_ns: Int64Array) -> int:
    """Returns the median time between a task and the next of its stream, of those that were queued before it ended."""
    gap_ns = tasks.start_ns - tasks.previous_end_ns
    queued = ~tasks.is_first & (ready_ns < tasks.previous_end_ns) & (gap_ns >= 0) & (gap_ns < SWITCH_LIMIT_NS)
    return int(np.median(gap_ns[queued])) if np.any(queued) else 0


def _waits(trace: Trace, working: Int32Array) -> Int32Array:
    """Returns the synchronising calls of threads that launch or enqueue, int32 event rows by start."""
    rows = host_call_rows(trace)[HostCall.SYNCHRONIZE]
    threads = {trace.tracks[track].thread_id for track in np.unique(trace.events.track[working]).tolist()}
    works = np.array([track.thread_id in threads for track in trace.tracks], dtype=np.bool_)
    return rows[works[trace.events.track[rows]]]


def _chain(
    trace: Trace,
    tasks: DeviceTasks,
    call: Int32Array,
    calls: Int32Array,
    waits: Int32Array,
    lag_ns: int,
    latency_ns: int,
    switch_ns: int,
) -> Dispatch:
    shift_ns = latency_ns - lag_ns
    launched_ns = trace.events.start_ns[calls] + shift_ns
    spans = union(trace.events.start_ns[waits], trace.events.end_ns[waits])
    begins_ns, returns_ns = spans.start_ns + shift_ns, spans.end_ns + shift_ns
    evidence = waits[np.searchsorted(trace.events.start_ns[waits], spans.start_ns)] if len(spans) else waits[:0]
    # Another thread may still launch while one waits: the wait proper begins after the last of these launches.
    before = np.searchsorted(launched_ns, returns_ns, side="left") - 1
    last_ns = launched_ns[np.maximum(before, 0)]
    waits_from_ns = np.where(before >= 0, np.maximum(begins_ns, last_ns), begins_ns)
    moment_ns = np.concatenate((launched_ns, waits_from_ns, returns_ns))
    count, waiting = len(calls), len(spans)
    place = np.concatenate((np.zeros(count), np.ones(waiting), np.full(waiting, 2)))
    order = np.lexsort((np.arange(len(moment_ns)), place, moment_ns))
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    kind = np.full(len(order), TaskKind.HOST, dtype=np.uint8)
    kind[position[count + waiting :]] = TaskKind.SYNCHRONIZE
    before_waits = np.full(waiting, ABSENT, dtype=np.int32)
    event = np.concatenate((calls, before_waits, evidence)).astype(np.int32)[order]
    end_ns = moment_ns[order]
    launched_by = np.full(len(tasks), ABSENT, dtype=np.int32)
    known = np.flatnonzero(call >= 0)
    by_event = np.argsort(calls, kind="stable")
    launched_by[known] = position[by_event[np.searchsorted(calls[by_event], call[known])]]
    return Dispatch(
        kind=kind,
        start_ns=np.concatenate((end_ns[:1], end_ns[:-1])),
        end_ns=end_ns,
        event=event,
        inferred=np.zeros(len(order), dtype=np.uint8),
        launched_by=launched_by,
        latency_ns=latency_ns,
        switch_ns=switch_ns,
    )
