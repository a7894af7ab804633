"""The host of a rank whose capture has no host rows, from what the device and the allocator show of it.

Where the whole device stood still and nothing had just ended, it started the next task when that was launched. Where
the framework's allocator was silent through a receive, or for long while the device worked and then ran dry, the host
waited for the device. Between these points launches are spread like the allocations, evenly where there are none, and
never later than their tasks started.
"""

from dataclasses import dataclass

import numpy as np

from engine.analyses.communication import Collective
from engine.analyses.idle import IdleCause, idle_gaps
from engine.analyses.idle.from_allocations import LAUNCH_DELAY_NS, SILENCE_NS, allocator_moments
from engine.core.arrays import BoolArray, Float64Array, Int64Array
from engine.core.units import NS_PER_US
from engine.graph.collective_kinds import POINT_TO_POINT, collective_kind
from engine.graph.task_graph import TaskKind
from engine.replay.capture_graph import HostSource
from engine.replay.dependencies import coincident
from engine.replay.device_tasks import DeviceTasks
from engine.replay.dispatch import LONG_AGO_NS, Dispatch
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

STARVED_NS = 2 * NS_PER_US
"""The device stood still for longer than it takes to switch between tasks of one stream (20 ns in the Qwen3 job)."""
HANDOVER_NS = 10 * NS_PER_US
"""The same for tasks of two streams, and for collectives (3 to 5 µs in the Qwen3 job)."""
COVERED_RATIO = 0.9
"""A task that ran for so much of the allocator's silence, and ended just before the silence did, was waited for."""
_SLOPE_PER_NS = 1e-9
"""Of the host's progress where it allocates nothing: keeps progress and time interchangeable."""


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """What is known of the host. Tasks are counted by start.

    Attributes:
        starved: int64 places of tasks that started when they were launched.
        sync_begin_ns: int64, when the host began to wait for the device.
        sync_end_ns: int64, when what it waited for ended.
    """

    starved: Int64Array
    sync_begin_ns: Int64Array
    sync_end_ns: Int64Array


def inferred_chain(
    trace: Trace, tasks: DeviceTasks, collectives: tuple[Collective, ...]
) -> tuple[Dispatch, HostSource]:
    """Returns a chain with one launch per device task, and what it was made from."""
    order = np.argsort(tasks.start_ns, kind="stable")
    moment_ns = allocator_moments(trace)
    points = _Points(np.flatnonzero(_starved(tasks)[order]), *_waits(trace, tasks, collectives, moment_ns))
    launched_ns = _spread(tasks.start_ns[order], points, moment_ns)
    dispatch = _chain(order, launched_ns, points)
    return dispatch, HostSource.ALLOCATIONS if len(moment_ns) else HostSource.GAPS


def _starved(tasks: DeviceTasks) -> BoolArray:
    """Returns before which tasks the whole device stood still and nothing had just ended, bool, shape (tasks,)."""
    order = np.argsort(tasks.start_ns, kind="stable")
    ends_ns = tasks.end_ns[order]
    reach_ns = np.maximum.accumulate(ends_ns)
    last = np.maximum.accumulate(np.where(ends_ns == reach_ns, np.arange(len(order)), 0))
    before, after = order[last[:-1]], order[1:]
    plain = (tasks.queue[before] == tasks.queue[after]) & (tasks.collective[after] < 0)
    answer = np.zeros(len(tasks), dtype=np.bool_)
    answer[after] = tasks.start_ns[after] - reach_ns[:-1] > np.where(plain, STARVED_NS, HANDOVER_NS)
    answer[order[:1]] = True
    could_ns = np.where(tasks.is_first, LONG_AGO_NS, tasks.previous_end_ns)
    answer[coincident(tasks, could_ns, np.zeros(len(tasks), dtype=np.bool_)).after] = False
    return answer


def _waits(
    trace: Trace, tasks: DeviceTasks, collectives: tuple[Collective, ...], moment_ns: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Returns when the host began to wait for the device and when the device was done, each time it did, by end."""
    until_ns = [gap.start_ns for gap in idle_gaps(trace) if gap.cause is IdleCause.HOST_SYNCHRONIZATION]
    if len(moment_ns):
        until_ns += [
            item.start_ns + item.elapsed_ns
            for item in collectives
            if collective_kind(item.name) in POINT_TO_POINT and _silent(moment_ns, item)
        ]
    until_ns += _silences_ns(tasks, moment_ns).tolist()
    end_ns = np.unique(np.array(until_ns, dtype=np.int64))
    end_ns = end_ns[end_ns > tasks.end_ns.min(initial=0)]
    last = np.searchsorted(moment_ns, end_ns, side="left") - 1
    return np.where(last >= 0, np.append(moment_ns, 0)[last], end_ns), end_ns


def _silences_ns(tasks: DeviceTasks, moment_ns: Int64Array) -> Int64Array:
    """Returns the ends of tasks that ran through a long silence of the allocator, which ended right after, int64."""
    if len(moment_ns) < 2:
        return np.empty(0, dtype=np.int64)
    silent = np.flatnonzero(np.diff(moment_ns) >= SILENCE_NS)
    by_end = np.argsort(tasks.end_ns, kind="stable")
    place = np.searchsorted(tasks.end_ns[by_end], moment_ns[silent + 1], side="right") - 1
    last = by_end[np.maximum(place, 0)]
    covered_ns = tasks.end_ns[last] - np.maximum(tasks.start_ns[last], moment_ns[silent])
    waited = (place >= 0) & (moment_ns[silent + 1] - tasks.end_ns[last] <= LAUNCH_DELAY_NS)
    waited &= covered_ns >= COVERED_RATIO * (moment_ns[silent + 1] - moment_ns[silent])
    ends_ns: Int64Array = tasks.end_ns[last[waited]]
    return ends_ns


def _silent(moment_ns: Int64Array, item: Collective) -> bool:
    """Returns whether the allocator did nothing while a collective ran."""
    begun, ended = np.searchsorted(moment_ns, (item.start_ns, item.start_ns + item.elapsed_ns))
    return bool(begun == ended)


def _spread(start_ns: Int64Array, points: _Points, moment_ns: Int64Array) -> Int64Array:
    """Returns when each task was launched, int64, ascending; tasks by start.

    Progress of the host is counted in calls of the allocator; between two known points it is shared out evenly.
    """
    # A wait stands between the last task that began before it ended and the next one.
    after = np.searchsorted(start_ns, points.sync_end_ns) - 0.5
    # The allocator's last call is the latest the last launch can be told to be.
    last_ns = np.minimum(moment_ns[-1:], start_ns[-1])
    place = np.concatenate((points.starved, after - 0.01, after + 0.01, np.full(len(last_ns), len(start_ns) - 1)))
    known_ns = np.concatenate((start_ns[points.starved], points.sync_begin_ns, points.sync_end_ns, last_ns))
    order = np.lexsort((known_ns, place))
    progress = _progress(np.maximum.accumulate(known_ns[order]), moment_ns)
    even = np.interp(np.arange(len(start_ns)), place[order], progress)
    grid_ns = np.unique(np.concatenate((known_ns, moment_ns, start_ns[:1], start_ns[-1:])))
    launched_ns = np.interp(even, _progress(grid_ns, moment_ns), grid_ns.astype(np.float64)).astype(np.int64)
    launched_ns[points.starved] = start_ns[points.starved]
    return np.maximum.accumulate(np.minimum(launched_ns, start_ns))


def _progress(time_ns: Int64Array, moment_ns: Int64Array) -> Float64Array:
    """Returns how far the host was at each moment: calls of the allocator so far, rising a little all the time."""
    first_ns = time_ns[0] if len(time_ns) else 0
    return np.searchsorted(moment_ns, time_ns, side="right") + (time_ns - first_ns) * _SLOPE_PER_NS


def _chain(order: Int64Array, launched_ns: Int64Array, points: _Points) -> Dispatch:
    count, waiting = len(launched_ns), len(points.sync_end_ns)
    before = np.searchsorted(launched_ns, points.sync_end_ns, side="left") - 1
    last_ns = np.where(before >= 0, launched_ns[np.maximum(before, 0)], points.sync_begin_ns)
    begin_ns = np.maximum(points.sync_begin_ns, last_ns)
    moment_ns = np.concatenate((launched_ns, begin_ns, points.sync_end_ns))
    turn = np.repeat([2, 0, 1], [count, waiting, waiting])
    in_order = np.lexsort((np.arange(len(moment_ns)), turn, moment_ns))
    position = np.empty(len(in_order), dtype=np.int32)
    position[in_order] = np.arange(len(in_order), dtype=np.int32)
    launched_by = np.empty(count, dtype=np.int32)
    launched_by[order] = position[:count]
    return Dispatch(
        kind=np.where(turn == 1, TaskKind.SYNCHRONIZE, TaskKind.HOST).astype(np.uint8)[in_order],
        end_ns=moment_ns[in_order],
        event=np.full(len(in_order), ABSENT, dtype=np.int32),
        awaited=np.full(len(in_order), ABSENT, dtype=np.int32),
        inferred=(turn == 1).astype(np.uint8)[in_order],
        launched_by=launched_by,
        latency_ns=0,
        switch_ns=0,
    )
