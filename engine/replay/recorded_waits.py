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
from engine.replay.named_waits import STREAM_WAIT, NamedWaits
from engine.replay.queue_search import QueueTimes
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

WAITED_NS = NS_PER_US
"""A wait row that lasts longer did wait: its end is that of the record (0.4 µs later in the CNN captures)."""
COINCIDENCE_NS = 2 * NS_PER_US
_CANDIDATES = 64
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


def recorded_waits(
    trace: Trace,
    tasks: DeviceTasks,
    kinds: UInt8Array,
    launch: Int32Array,
    queue: Int64Array,
    named_waits: NamedWaits,
) -> Pairs:
    """Returns every recorded wait that can be told and does not contradict the recorded times.

    Args:
        trace: The rank.
        tasks: Its device tasks.
        kinds: ``activities(trace)``.
        launch: ``launch_events(trace)``.
        queue: ``queue_of_tracks(trace, tasks, kinds)``.
        named_waits: Of the rank.
    """
    rows = np.flatnonzero(kinds == Activity.SYNCHRONIZATION).astype(np.int32)
    if len(rows) == 0 or len(tasks) == 0:
        nothing = np.empty(0, dtype=np.int64)
        return Pairs(nothing, nothing)
    cuda = rows[trace.events.name[rows] == trace.strings.id_of(STREAM_WAIT)]
    if len(cuda):
        before, after = named_waits.of_streams(cuda)
        return Pairs.agreeing(tasks, before, after)
    return _event_rows(trace, tasks, queue, rows, launch)


def _event_rows(trace: Trace, tasks: DeviceTasks, queue: Int64Array, rows: Int32Array, launch: Int32Array) -> Pairs:
    """Pairs Ascend's EVENT_RECORD and EVENT_WAIT rows."""
    words = [text.strip().casefold().replace(" ", "_") for text in trace.strings.texts(trace.events.name[rows])]
    starts = (
        np.array([word.startswith(_RECORD) for word in words]),
        np.array([word.startswith(_WAIT) for word in words]),
    )
    records, waits = rows[starts[0]], rows[starts[1]]
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


def queue_of_tracks(trace: Trace, tasks: DeviceTasks, kinds: UInt8Array) -> Int64Array:
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
