"""Waits of one stream for another that a capture records, as pairs of device tasks.

Ascend shows records of and waits for events as rows of their streams. Which record a wait is for is not said: a wait
that lasted ends when the record it is for ends; one that did not wait belongs to the last record another stream was
given before it. Its duration is waiting, which the replay finds again, and is dropped. Newer Kineto captures name
stream and record of every wait.
"""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity
from engine.core.arrays import Int32Array, Int64Array, UInt8Array
from engine.core.units import NS_PER_US
from engine.replay.device_tasks import DeviceTasks
from engine.replay.queue_search import QueueTimes
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

WAITED_NS = NS_PER_US
"""A wait row that lasts longer did wait: its end is that of the record (0.4 µs later in the CNN captures)."""
COINCIDENCE_NS = 2 * NS_PER_US
_CANDIDATES = 64
_CUDA_WAIT = "Stream Wait Event"
_RECORD, _WAIT = "event_record", "event_wait"


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Device tasks that wait for others. int64 columns, shape (n,).

    Attributes:
        before: Must have ended.
        after: Waits.
    """

    before: Int64Array
    after: Int64Array

    @staticmethod
    def agreeing(tasks: DeviceTasks, before: Int64Array, after: Int64Array) -> "Pairs":
        """Returns the pairs of known tasks of different queues that the recorded times do not contradict."""
        fits = (before >= 0) & (after >= 0)
        before, after = before[fits], after[fits]
        fits = (tasks.queue[before] != tasks.queue[after]) & (tasks.end_ns[before] <= tasks.start_ns[after])
        fits &= tasks.start_ns[before] < tasks.start_ns[after]
        return Pairs(before[fits], after[fits])


def recorded_waits(trace: Trace, tasks: DeviceTasks, kinds: UInt8Array, launch: Int32Array) -> Pairs:
    """Returns every recorded wait that can be told and does not contradict the recorded times.

    Args:
        trace: The rank.
        tasks: Its device tasks.
        kinds: ``activities(trace)``.
        launch: ``launch_events(trace)``.
    """
    rows = np.flatnonzero(kinds == Activity.SYNCHRONIZATION).astype(np.int32)
    if len(rows) == 0 or len(tasks) == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Pairs(nothing, nothing)
    cuda = rows[trace.events.name[rows] == trace.strings.id_of(_CUDA_WAIT)]
    if len(cuda):
        return _named_waits(trace, tasks, cuda, launch)
    return _event_rows(trace, tasks, kinds, rows, launch)


def _event_rows(trace: Trace, tasks: DeviceTasks, kinds: UInt8Array, rows: Int32Array, launch: Int32Array) -> Pairs:
    """Pairs Ascend's EVENT_RECORD and EVENT_WAIT rows."""
    words = [text.strip().casefold().replace(" ", "_") for text in trace.strings.texts(trace.events.name[rows])]
    starts = (
        np.array([word.startswith(_RECORD) for word in words]),
        np.array([word.startswith(_WAIT) for word in words]),
    )
    records, waits = rows[starts[0]], rows[starts[1]]
    queue = _queue_of_tracks(trace, tasks, kinds)
    records = records[queue[trace.events.track[records]] >= 0]
    waits = waits[queue[trace.events.track[waits]] >= 0]
    if len(records) == 0 or len(waits) == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Pairs(nothing, nothing)
    record = _record_of(trace, records, waits, launch)
    waits, record = waits[record >= 0], record[record >= 0]
    by_end, by_start = QueueTimes.of(tasks, tasks.end_ns), QueueTimes.of(tasks, tasks.start_ns)
    end_ns = trace.events.end_ns
    before = by_end.last_before(queue[trace.events.track[record]], end_ns[record], inclusive=True)
    after = by_start.first_from(queue[trace.events.track[waits]], trace.events.start_ns[waits])
    return Pairs.agreeing(tasks, before, after)


def _record_of(trace: Trace, records: Int32Array, waits: Int32Array, launch: Int32Array) -> Int64Array:
    """Returns the record row each wait is for, int64, −1 where none can be told."""
    events = trace.events
    lasted = events.duration_ns[waits] > WAITED_NS
    by_end = records[np.argsort(events.end_ns[records], kind="stable")]
    called_ns = np.where(launch[records] >= 0, events.start_ns[launch[records]], np.iinfo(np.int64).max)
    by_call = records[np.argsort(called_ns, kind="stable")]
    waited_ns = np.where(launch[waits] >= 0, events.start_ns[launch[waits]], np.iinfo(np.int64).min)
    in_time = np.searchsorted(events.end_ns[by_end], events.end_ns[waits], side="right") - 1
    in_order = np.searchsorted(np.sort(called_ns), waited_ns, side="left") - 1
    found = np.full(len(waits), ABSENT, dtype=np.int64)
    # Records of the own stream and of the same moment stand between: each turn looks one further back.
    for back in range(_CANDIDATES):
        place = np.where(lasted, in_time, in_order) - back
        candidate = np.where(lasted, by_end[np.maximum(place, 0)], by_call[np.maximum(place, 0)])
        other = (found == ABSENT) & (place >= 0) & (events.track[candidate] != events.track[waits])
        late_ns = events.end_ns[waits] - events.end_ns[candidate]
        other &= np.where(lasted, (late_ns >= 0) & (late_ns <= COINCIDENCE_NS), late_ns >= 0)
        found[other] = candidate[other]
        if not np.any((found == ABSENT) & (place > 0)):
            break
    return found


def _queue_of_tracks(trace: Trace, tasks: DeviceTasks, kinds: UInt8Array) -> Int64Array:
    """Returns the queue whose tasks run on each track, int64, shape (tracks,); −1 for none.

    HCCL's streams show the parts of collectives; their queue is that of the collectives around the parts.
    """
    queue = np.full(len(trace.tracks), ABSENT, dtype=np.int64)
    shown = tasks.event >= 0
    queue[trace.events.track[tasks.event[shown]][::-1]] = tasks.queue[shown][::-1]
    talking = np.flatnonzero(tasks.collective >= 0)
    for track in trace.tracks_of(TrackKind.DEVICE_STREAM).tolist():
        if queue[track] >= 0 or len(talking) == 0:
            continue
        part = trace.track_slices[track]
        rows = np.arange(part.start, part.stop)
        middle_ns = trace.events.start_ns[rows[kinds[rows] == Activity.NONE]]
        around = {}
        for number in np.unique(tasks.queue[talking]).tolist():
            own = talking[tasks.queue[talking] == number]
            place = np.searchsorted(tasks.start_ns[own], middle_ns, side="right") - 1
            around[number] = int(((place >= 0) & (middle_ns < tasks.end_ns[own[np.maximum(place, 0)]])).sum())
        best = max(around, key=lambda number: around[number])
        if around[best] > 0:
            queue[track] = best
    return queue


def _named_waits(trace: Trace, tasks: DeviceTasks, rows: Int32Array, launch: Int32Array) -> Pairs:
    """Pairs Kineto's wait rows, which name the record and both streams."""
    queue_of_stream = {
        trace.tracks[track].stream: int(queue)
        for track, queue in enumerate(_queue_of_tracks(trace, tasks, np.zeros(len(trace.events), dtype=np.uint8)))
        if queue >= 0
    }
    call_of = _calls_by_correlation(trace)
    queues, moments = [], []
    # Arguments are read one by one; a capture has one such row per wait of a stream.
    for row in rows.tolist():
        told = trace.arguments(row)
        waited = call_of.get(int(trace.events.correlation[row]), ABSENT)
        recorded = call_of.get(_number(told.get("wait_on_cuda_event_record_corr_id")), waited)
        queues.append(
            (
                queue_of_stream.get(_number(told.get("wait_on_stream")), ABSENT),
                queue_of_stream.get(_number(told.get("stream")), ABSENT),
            )
        )
        moments.append((recorded, waited))
    queue, call = np.array(queues, dtype=np.int64), np.array(moments, dtype=np.int64)
    known = (queue >= 0).all(axis=1) & (call >= 0).all(axis=1)
    queue, called_ns = queue[known], trace.events.start_ns[call[known]]
    launched = launch[np.maximum(tasks.event, 0)]
    launched_ns = np.where((tasks.event >= 0) & (launched >= 0), trace.events.start_ns[launched], 0)
    times = QueueTimes.of(tasks, launched_ns)
    before = times.last_before(queue[:, 0], called_ns[:, 0])
    after = times.first_from(queue[:, 1], called_ns[:, 1])
    return Pairs.agreeing(tasks, before, after)


def _calls_by_correlation(trace: Trace) -> dict[int, int]:
    rows = trace.events_of(TrackKind.HOST_THREAD)
    rows = rows[trace.events.correlation[rows] >= 0]
    return dict(zip(trace.events.correlation[rows].tolist(), rows.tolist(), strict=True))


def _number(value: object) -> int:
    return value if isinstance(value, int) else ABSENT
