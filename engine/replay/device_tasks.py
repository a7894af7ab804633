"""What one rank's device did, as tasks in the queues a replay runs them in."""

from dataclasses import dataclass

import numba
import numpy as np

from engine.analyses.activity import Activity
from engine.analyses.communication import Collective
from engine.core.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt8Array
from engine.core.units import NS_PER_US
from engine.graph.task_graph import Stream
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

OVERLAP_NS = 2 * NS_PER_US
"""Tasks of one stream that overlap by no more are rounded apart (old Kineto files count whole µs); the first one is
taken to end when the second starts. What overlaps by more did not wait for its stream and gets a queue of its own."""

_FIRST_FURTHER_STREAM = int(Stream.COPY) + 1
_MAX_LANES = 64


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTasks:
    """Device tasks of one rank by queue, then start. Columns of shape (n,).

    Attributes:
        event: int32 event row, −1 for a collective the timeline does not show.
        start_ns: int64 trace time.
        end_ns: int64 trace time.
        queue: int32 number of the stream in the graph.
        collective: int32 index into the rank's collectives, −1 for other tasks.
    """

    event: Int32Array
    start_ns: Int64Array
    end_ns: Int64Array
    queue: Int32Array
    collective: Int32Array

    def __len__(self) -> int:
        return len(self.event)

    @property
    def previous_end_ns(self) -> Int64Array:
        """int64, shape (n,): end of the task before in the queue; of the first one its own start."""
        before = np.concatenate((self.start_ns[:1], self.end_ns[:-1]))
        return np.where(self.is_first, self.start_ns, before)

    @property
    def is_first(self) -> BoolArray:
        """bool, shape (n,): which tasks are the first of their queue."""
        return np.concatenate(([True], self.queue[1:] != self.queue[:-1]))[: len(self)]


def device_tasks(
    trace: Trace, kinds: UInt8Array, collectives: tuple[Collective, ...], log: DiagnosticLog
) -> DeviceTasks:
    """Returns kernels, copies and collectives of a rank.

    Waits and records of events are no tasks: what they order is said by dependencies.

    Args:
        trace: The rank.
        kinds: ``activities(trace)``.
        collectives: The rank's, by start.
        log: Told of what overlaps inside a stream.
    """
    on_streams = _on_tracks(trace, TrackKind.DEVICE_STREAM)
    plain = np.flatnonzero(on_streams & ((kinds == Activity.COMPUTING) | (kinds == Activity.MEMORY)))
    event = np.array([item.event for item in collectives], dtype=np.int64)
    # The last entry answers for collectives without an event, and for a trace without any.
    kinds = np.append(kinds, np.uint8(Activity.NONE))
    index = np.flatnonzero((event < 0) | (kinds[event] == Activity.COMMUNICATION))
    start_ns = np.array([item.start_ns for item in collectives], dtype=np.int64)[index]
    elapsed_ns = np.array([item.elapsed_ns for item in collectives], dtype=np.int64)[index]
    rows = np.concatenate((plain, event[index])).astype(np.int32)
    starts = np.concatenate((trace.events.start_ns[plain], start_ns))
    ends = np.concatenate((trace.events.end_ns[plain], start_ns + elapsed_ns))
    collective = np.concatenate((np.full(len(plain), ABSENT), index)).astype(np.int32)
    stream = _streams(trace, kinds, rows, collective, collectives)
    order = np.lexsort((rows, ends, starts, stream))
    rows, collective, stream = rows[order], collective[order], stream[order]
    starts, ends = starts[order], ends[order]
    lane = lanes(stream, starts, ends, OVERLAP_NS)
    log.add(
        "tasks-beside-their-stream",
        Severity.NOTICE,
        "tasks overlap the one before them on their stream and are replayed beside it",
        count=int(np.count_nonzero(lane)),
    )
    queue = _numbered(stream, lane)
    order = np.lexsort((np.arange(len(rows)), queue))
    rows, collective, queue = rows[order], collective[order], queue[order]
    starts, ends = starts[order], ends[order]
    following = np.concatenate((starts[1:], ends[-1:]))
    last = np.concatenate((queue[1:] != queue[:-1], [True]))[: len(queue)]
    return DeviceTasks(rows, starts, np.where(last, ends, np.minimum(ends, following)), queue, collective)


def _on_tracks(trace: Trace, kind: TrackKind) -> BoolArray:
    of_track = np.array([track.kind is kind for track in trace.tracks], dtype=np.bool_)
    answer: BoolArray = of_track[trace.events.track] if len(trace.tracks) else np.zeros(0, dtype=np.bool_)
    return answer


def _streams(
    trace: Trace,
    kinds: UInt8Array,
    rows: Int32Array,
    collective: Int32Array,
    collectives: tuple[Collective, ...],
) -> Int32Array:
    """Returns a stream number per task: the one that computes most is COMPUTE, see ``CaptureGraph`` for the others."""
    groups = sorted({item.group for item in collectives})
    own = len(trace.tracks) + np.array([groups.index(item.group) for item in collectives], dtype=np.int64)
    # Collectives the timeline does not show run in a lane of their group.
    hidden = rows < 0
    lane = np.append(trace.events.track, np.int32(0)).astype(np.int64)[rows]
    lane[hidden] = own[collective[hidden]]
    computing_ns = np.zeros(len(trace.tracks) + len(groups) + 1, dtype=np.int64)
    communicating, copying = (np.zeros(len(computing_ns), dtype=np.int64) for _ in range(2))
    shown = ~hidden
    computes = shown & (collective < 0) & (kinds[rows] == Activity.COMPUTING)
    np.add.at(computing_ns, lane[computes], trace.events.duration_ns[rows[computes]])
    np.add.at(communicating, lane[collective >= 0], 1)
    np.add.at(copying, lane[(collective < 0) & ~computes], 1)
    used = np.unique(lane)
    number = np.zeros(len(computing_ns), dtype=np.int32)
    further = _FIRST_FURTHER_STREAM
    free = {Stream.COMPUTE, Stream.COMMUNICATION, Stream.COPY}
    # One turn per stream of the device.
    for place in sorted(used.tolist(), key=lambda place: -int(computing_ns[place])):
        if communicating[place] and not computing_ns[place]:
            wanted = Stream.COMMUNICATION
        elif copying[place] and not computing_ns[place]:
            wanted = Stream.COPY
        else:
            wanted = Stream.COMPUTE
        if wanted in free:
            number[place] = wanted
            free.remove(wanted)
        else:
            number[place] = further
            further += 1
    return number[lane]


def _numbered(stream: Int32Array, lane: AnyArray) -> Int32Array:
    """Returns a queue per task: its stream, or a further number for what runs beside its stream."""
    if len(stream) == 0:
        return stream
    first = max(int(stream.max()), _FIRST_FURTHER_STREAM - 1) + 1
    beside = np.flatnonzero(lane)
    keys = stream[beside].astype(np.int64) * _MAX_LANES + lane[beside]
    queue = stream.copy()
    queue[beside] = first + np.unique(keys, return_inverse=True)[1]
    return queue


@numba.njit(cache=True)
def lanes(stream: Int32Array, start_ns: Int64Array, end_ns: Int64Array, tolerance_ns: int) -> Int32Array:
    """Returns for tasks by (stream, start) the lowest lane of the stream that is free when each starts, int32.

    A lane counts as free when its last task overlaps by no more than ``tolerance_ns`` and started before.
    """
    lane = np.zeros(len(stream), np.int32)
    free_ns = np.zeros(_MAX_LANES, np.int64)
    began_ns = np.zeros(_MAX_LANES, np.int64)
    used = 0
    for task in range(len(stream)):
        if task == 0 or stream[task] != stream[task - 1]:
            used = 0
        place = 0
        while place < used and place < _MAX_LANES - 1:
            begun = began_ns[place] < start_ns[task] or free_ns[place] <= start_ns[task]
            if begun and free_ns[place] <= start_ns[task] + tolerance_ns:
                break
            place += 1
        used = max(used, place + 1)
        free_ns[place] = end_ns[task]
        began_ns[place] = start_ns[task]
        lane[task] = place
    return lane
