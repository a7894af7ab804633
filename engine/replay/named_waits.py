"""Waits that newer Kineto captures name: rows that say which stream, and which record of an event, was waited for."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.replay.device_tasks import DeviceTasks
from engine.replay.queue_search import QueueTimes
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

STREAM_WAIT, _STREAM_SYNC, _EVENT_SYNC = "Stream Wait Event", "Stream Sync", "Event Sync"
_STREAM, _RECORD_STREAM, _RECORD = "stream", "wait_on_stream", "wait_on_cuda_event_record_corr_id"


@dataclass(frozen=True, slots=True, eq=False)
class NamedWaits:
    """Reads such rows one by one: arguments stay in the source file, and there is one row per wait.

    Attributes:
        trace: The rank.
        queue_of_stream: The profiler's stream number → queue.
        call: int32 host calls with a correlation number, by it.
        number: int64 the numbers.
        launched: Tasks by the moment they were launched, host clock.
    """

    trace: Trace
    queue_of_stream: Mapping[int, int]
    call: Int32Array
    number: Int64Array
    launched: QueueTimes

    @staticmethod
    def of(trace: Trace, tasks: DeviceTasks, launch: Int32Array, queue_of_track: Int64Array) -> "NamedWaits":
        """Returns a reader of a rank's rows.

        Args:
            trace: The rank.
            tasks: Its device tasks.
            launch: ``launch_events(trace)``.
            queue_of_track: int64, shape (tracks,): queue of each track, −1 for none.
        """
        rows = trace.events_of(TrackKind.HOST_THREAD)
        rows = rows[trace.events.correlation[rows] >= 0]
        rows = rows[np.argsort(trace.events.correlation[rows], kind="stable")]
        call = np.where(tasks.event >= 0, launch[tasks.event], ABSENT)
        launched_ns = np.where(call >= 0, trace.events.start_ns[np.maximum(call, 0)], 0)
        return NamedWaits(
            trace=trace,
            queue_of_stream={
                trace.tracks[track].stream: queue for track, queue in enumerate(queue_of_track.tolist()) if queue >= 0
            },
            call=rows,
            number=trace.events.correlation[rows],
            launched=QueueTimes.of(tasks, launched_ns),
        )

    def of_streams(self, rows: Int32Array) -> tuple[Int64Array, Int64Array]:
        """Returns for each row of a waiting stream the task it waited for and the first task after it, −1 for none."""
        found = np.array([self._stream_wait(row) for row in rows.tolist()], dtype=np.int64).reshape(-1, 4)
        before = self.launched.last_before(found[:, 0], found[:, 1])
        after = self.launched.first_from(found[:, 2], found[:, 3])
        return before, after

    def of_host(self, calls: Int32Array) -> Int32Array:
        """Returns the task each synchronising host call waited for, int32, −1 where no row names its stream."""
        wanted = [self.trace.strings.id_of(word) for word in (_STREAM_SYNC, _EVENT_SYNC)]
        rows = self.trace.events_of(TrackKind.DEVICE_STREAM)
        rows = rows[np.isin(self.trace.events.name[rows], [word for word in wanted if word >= 0])]
        row_of = dict(zip(self.trace.events.correlation[rows].tolist(), rows.tolist(), strict=True))
        correlations = self.trace.events.correlation[calls].tolist()
        named = [row_of.get(number, ABSENT) if number >= 0 else ABSENT for number in correlations]
        found = np.array(
            [self._host_wait(row, call) for row, call in zip(named, calls.tolist(), strict=True)], dtype=np.int64
        ).reshape(-1, 2)
        return self.launched.last_before(found[:, 0], found[:, 1]).astype(np.int32)

    def _stream_wait(self, row: int) -> tuple[int, int, int, int]:
        """Returns the awaited queue and the moment of its record, the waiting queue and the moment it was told."""
        told = self.trace.arguments(row)
        call = self._call(self.trace.events.correlation[row])
        record = self._call(told.get(_RECORD), call)
        awaited = self._queue(told.get(_RECORD_STREAM)) if record >= 0 else ABSENT
        waiting = self._queue(told.get(_STREAM)) if call >= 0 else ABSENT
        return awaited, self._called_ns(record), waiting, self._called_ns(call)

    def _host_wait(self, row: int, call: int) -> tuple[int, int]:
        """Returns the awaited queue and the moment up to which its tasks were waited for."""
        if row < 0:
            return ABSENT, 0
        told = self.trace.arguments(row)
        if int(self.trace.events.name[row]) == self.trace.strings.id_of(_STREAM_SYNC):
            return self._queue(told.get(_STREAM)), self._called_ns(call)
        record = self._call(told.get(_RECORD))
        return (self._queue(told.get(_RECORD_STREAM)), self._called_ns(record)) if record >= 0 else (ABSENT, 0)

    def _call(self, number: object, missing: int = ABSENT) -> int:
        """Returns the last host call of a correlation number."""
        wanted = _number(number)
        place = int(np.searchsorted(self.number, wanted, side="right")) - 1
        return int(self.call[place]) if wanted >= 0 and place >= 0 and self.number[place] == wanted else missing

    def _queue(self, stream: object) -> int:
        return self.queue_of_stream.get(_number(stream), ABSENT)

    def _called_ns(self, call: int) -> int:
        return int(self.trace.events.start_ns[call]) if call >= 0 else 0


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | np.integer) else ABSENT
