"""The host of a capture with host rows: one chain of launches, whatever thread they came from.

A launch counts from the end of its call, or from the start of the first task it launched where that came earlier: the
task was on the device by then. Three kinds of calls wait for the device, and what they waited is not host time:
synchronising calls, copies that return after the copied data arrived, and launches that find the device's queue full.
"""

from dataclasses import dataclass

import numpy as np

from engine.analyses.idle.host_calls import HostCall, host_call_rows
from engine.analyses.launches import MAX_CLOCK_LAG_NS, clock_lag_ns, queue_links
from engine.analyses.name_search import names_holding
from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.graph.task_graph import TaskKind
from engine.replay.device_tasks import DeviceTasks
from engine.replay.dispatch import Dispatch, switch_time_ns
from engine.replay.named_waits import NamedWaits
from engine.replay.queue_search import QueueTimes
from engine.replay.recorded_waits import COINCIDENCE_NS
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

LATENCY_PERCENTILE = 10
"""A task on an idle stream starts at best this long after its launch; what is longer has causes of its own."""
FULL_QUEUE_LAUNCHES = 512
"""A call can only be held up by a full queue when so many launches are under way. The CUDA captures that show it have
1,022 (A100, without graphs) and 960 to 1,003 of them; half of that leaves room for other queues."""
HELD_UP_RATIO = 4
"""A launch that takes so many times the median of its rank was held up."""


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """Launching calls. Columns of shape (calls,), times on the host's clock.

    Attributes:
        event: int32 event row, ascending.
        launched_ns: int64, when its tasks were on the device.
        first_ns: int64, when the first of its tasks started.
        last_task: int32, the task of the call that ends last.
        blocks: bool, the call returned after that task ended: it copies and waits for the copy.
    """

    event: Int32Array
    launched_ns: Int64Array
    first_ns: Int64Array
    last_task: Int32Array
    blocks: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class _HostWaits:
    """Waits of the host by begin, none inside another; columns of shape (n,), times on the host's clock."""

    begin_ns: Int64Array
    end_ns: Int64Array
    event: Int32Array
    awaited: Int32Array
    inferred: UInt8Array

    def in_order(self) -> "_HostWaits":
        """Returns them by begin, without those inside another; what overlaps begins where the one before ends."""
        order = np.lexsort((-self.end_ns, self.begin_ns))
        reach_ns = np.maximum.accumulate(self.end_ns[order])
        before_ns = np.concatenate((self.begin_ns[order[:1]], reach_ns[:-1]))
        kept = self.end_ns[order] > before_ns
        rows = order[kept]
        begin_ns = np.maximum(self.begin_ns[rows], before_ns[kept])
        return _HostWaits(begin_ns, self.end_ns[rows], self.event[rows], self.awaited[rows], self.inferred[rows])


def launched_chain(
    trace: Trace, tasks: DeviceTasks, launch: Int32Array, named_waits: NamedWaits, log: DiagnosticLog
) -> Dispatch | None:
    """Returns the chain of a capture with host rows, None where it ties no task to a launch.

    Args:
        trace: The rank.
        tasks: Its device tasks.
        launch: ``launch_events(trace)``.
        named_waits: Of the rank.
        log: Told of launches that cannot be.
    """
    call = np.where(tasks.event >= 0, launch[tasks.event], ABSENT).astype(np.int32)
    lag_ns = clock_lag_ns(trace, launch)
    wrong = (call >= 0) & (trace.events.start_ns[call] - lag_ns > tasks.start_ns + MAX_CLOCK_LAG_NS)
    log.add(
        "launch-after-start",
        Severity.NOTICE,
        "tasks start long before the call that is named as their launch; it is not used",
        count=int(wrong.sum()),
    )
    call[wrong] = ABSENT
    if not np.any(call >= 0):
        return None
    calls = _calls(trace, tasks, call, lag_ns)
    waits = _host_waits(trace, tasks, calls, named_waits, lag_ns)
    launched_by = np.full(len(tasks), ABSENT, dtype=np.int32)
    known = call >= 0
    launched_by[known] = np.searchsorted(calls.event, call[known])
    called_ns = np.where(known, calls.launched_ns[launched_by] - lag_ns, tasks.start_ns)
    latency_ns = _latency_ns(tasks, known, called_ns)
    switch_ns = switch_time_ns(tasks, called_ns + latency_ns)
    return _chain(calls, waits, launched_by, lag_ns, latency_ns, switch_ns)


def _calls(trace: Trace, tasks: DeviceTasks, call: Int32Array, lag_ns: int) -> _Calls:
    known = np.flatnonzero(call >= 0)
    event, index = np.unique(call[known], return_inverse=True)
    first_ns = np.full(len(event), np.iinfo(np.int64).max)
    np.minimum.at(first_ns, index, tasks.start_ns[known] + lag_ns)
    by_end = known[np.argsort(tasks.end_ns[known], kind="stable")]
    last_task = np.empty(len(event), dtype=np.int32)
    last_task[np.searchsorted(event, call[by_end])] = by_end
    begin_ns, end_ns = trace.events.start_ns[event], trace.events.end_ns[event]
    copies = np.isin(trace.events.name[event], names_holding(trace.strings, ("memcpy",)))
    blocks = copies & (end_ns >= tasks.end_ns[last_task] + lag_ns)
    launched_ns = np.where(blocks, begin_ns, np.clip(first_ns, begin_ns, end_ns))
    return _Calls(event.astype(np.int32), launched_ns, first_ns, last_task, blocks)


def _latency_ns(tasks: DeviceTasks, known: BoolArray, called_ns: Int64Array) -> int:
    idle = known & (tasks.previous_end_ns < called_ns) & ~tasks.is_first
    delay_ns = (tasks.start_ns - called_ns)[idle]
    delay_ns = delay_ns[(delay_ns >= 0) & (delay_ns < MAX_CLOCK_LAG_NS)]
    return int(np.percentile(delay_ns, LATENCY_PERCENTILE)) if len(delay_ns) else 0


def _host_waits(trace: Trace, tasks: DeviceTasks, calls: _Calls, named_waits: NamedWaits, lag_ns: int) -> _HostWaits:
    """Returns every wait of a working thread for the device."""
    rows = _synchronising_rows(trace, np.concatenate((calls.event, *queue_links(trace))))
    rows = rows[~np.isin(rows, calls.event)]
    copying = np.flatnonzero(calls.blocks)
    held, held_end_ns, freed_by = _held_up(trace, tasks, calls, lag_ns)
    events = (rows, calls.event[copying], calls.event[held])
    event = np.concatenate(events)
    end_ns = trace.events.end_ns[event].copy()
    end_ns[len(event) - len(held) :] = held_end_ns
    inferred = np.zeros(len(event), dtype=np.uint8)
    inferred[len(event) - len(held) :] = 1
    named = named_waits.of_host(rows)
    # A task that seems to end after the call returned is none it waited for.
    late = tasks.end_ns[named] + lag_ns > trace.events.end_ns[rows] + COINCIDENCE_NS
    named = np.where(late, ABSENT, named)
    awaited = np.concatenate((named, calls.last_task[copying], freed_by)).astype(np.int32)
    return _HostWaits(trace.events.start_ns[event], end_ns, event, awaited, inferred).in_order()


def _synchronising_rows(trace: Trace, working: Int32Array) -> Int32Array:
    """Returns the synchronising calls of threads that launch or enqueue, int32 event rows."""
    rows = host_call_rows(trace)[HostCall.SYNCHRONIZE]
    threads = {trace.tracks[track].thread_id for track in np.unique(trace.events.track[working]).tolist()}
    works = np.array([track.thread_id in threads for track in trace.tracks], dtype=np.bool_)
    return rows[works[trace.events.track[rows]]]


def _held_up(trace: Trace, tasks: DeviceTasks, calls: _Calls, lag_ns: int) -> tuple[Int64Array, Int64Array, Int32Array]:
    """Returns launches that waited for a free place, when they got it, and the task whose end freed it.

    That is the last task of the call's own stream to end before the call returned, less the time a call takes anyway.
    """
    begin_ns, end_ns = trace.events.start_ns[calls.event], trace.events.end_ns[calls.event]
    usual_ns = int(np.median(end_ns - begin_ns))
    begun = np.argsort(begin_ns, kind="stable")
    launched_before = np.searchsorted(begin_ns[begun], begin_ns, side="left")
    ended_before = np.searchsorted(np.sort(tasks.end_ns[calls.last_task] + lag_ns), begin_ns, side="right")
    full = launched_before - ended_before >= FULL_QUEUE_LAUNCHES
    held = np.flatnonzero(full & ~calls.blocks & (end_ns - begin_ns > HELD_UP_RATIO * max(usual_ns, 1)))
    free_ns = end_ns[held] - usual_ns
    queue = tasks.queue[calls.last_task[held]]
    place = QueueTimes.of(tasks, tasks.end_ns).last_before(queue, free_ns - lag_ns, inclusive=True)
    found = (place >= 0) & (tasks.end_ns[place] + lag_ns > begin_ns[held])
    return held[found], free_ns[found], place[found].astype(np.int32)


def _chain(
    calls: _Calls, waits: _HostWaits, call_of_task: Int32Array, lag_ns: int, latency_ns: int, switch_ns: int
) -> Dispatch:
    by_launch = np.argsort(calls.launched_ns, kind="stable")
    launched_ns = calls.launched_ns[by_launch]
    # Another thread may still launch while one waits: the wait proper begins after the last of these launches.
    before = np.searchsorted(launched_ns, waits.end_ns, side="left") - 1
    last_ns = launched_ns[np.maximum(before, 0)]
    begin_ns = np.where(before >= 0, np.maximum(waits.begin_ns, last_ns), waits.begin_ns)
    count, waiting = len(launched_ns), len(begin_ns)
    moment_ns = np.concatenate((launched_ns, begin_ns, waits.end_ns))
    turn = np.repeat([0, 1, 2], [count, waiting, waiting])
    order = np.lexsort((np.arange(len(moment_ns)), turn, moment_ns))
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    none = np.full(waiting, ABSENT, dtype=np.int32)
    place_of_call = np.empty(count, dtype=np.int32)
    place_of_call[by_launch] = position[:count]
    # A task that started sooner than usual was not launched later than it started, nor was anything before it.
    latest_ns = np.full(len(order), np.iinfo(np.int64).max)
    latest_ns[:count] = calls.first_ns[by_launch]
    end_ns = np.minimum(moment_ns + latency_ns, latest_ns)[order]
    end_ns = np.minimum.accumulate(end_ns[::-1])[::-1] - lag_ns
    of_turn = np.array([TaskKind.HOST, TaskKind.HOST, TaskKind.SYNCHRONIZE], dtype=np.uint8)
    return Dispatch(
        kind=of_turn[turn[order]],
        end_ns=end_ns,
        event=np.concatenate((calls.event[by_launch], none, waits.event))[order],
        awaited=np.concatenate((np.full(count + waiting, ABSENT, dtype=np.int32), waits.awaited))[order],
        inferred=np.concatenate((np.zeros(count + waiting, dtype=np.uint8), waits.inferred))[order],
        launched_by=np.where(call_of_task >= 0, place_of_call[call_of_task], ABSENT).astype(np.int32),
        latency_ns=latency_ns,
        switch_ns=switch_ns,
        shift_ns=latency_ns - lag_ns,
    )
