"""Stretches without device work, and the tasks on either side of them."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity, activity_intervals
from engine.core.arrays import Int32Array, Int64Array, UInt8Array
from engine.trace.intervals import join
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

WORK = (Activity.COMPUTING, Activity.COMMUNICATION, Activity.MEMORY)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceGaps:
    """Gaps in the union of device work, in order. Columns of shape (n,).

    Attributes:
        start_ns: int64, end of the work before.
        end_ns: int64, start of the work after.
        previous_event: int32, a device task that ends at the start.
        next_event: int32, a device task that starts at the end (one whose launch is known, where there is one).
    """

    start_ns: Int64Array
    end_ns: Int64Array
    previous_event: Int32Array
    next_event: Int32Array

    def __len__(self) -> int:
        return len(self.start_ns)


def device_gaps(trace: Trace, kinds: UInt8Array, launch: Int32Array, min_gap_ns: int) -> DeviceGaps:
    """Returns the gaps of at least ``min_gap_ns``.

    A capture without device streams has none: what ran between its collectives is not known.

    Args:
        trace: The trace.
        kinds: ``activities(trace)``.
        launch: ``launch_events(trace)``.
        min_gap_ns: Shorter gaps are the device's normal switching.
    """
    busy = join(*(activity_intervals(trace, kinds, activity) for activity in WORK))
    if len(trace.events_of(TrackKind.DEVICE_STREAM)) == 0 or len(busy) < 2:
        nothing = np.empty(0, dtype=np.int64)
        return DeviceGaps(nothing, nothing, nothing.astype(np.int32), nothing.astype(np.int32))
    start_ns, end_ns = busy.end_ns[:-1], busy.start_ns[1:]
    long = end_ns - start_ns >= min_gap_ns
    start_ns, end_ns = start_ns[long], end_ns[long]
    rows = np.flatnonzero(np.isin(kinds, np.array(WORK, dtype=np.uint8)) & (trace.events.duration_ns > 0))
    begins, ends = trace.events.start_ns[rows], trace.events.end_ns[rows]
    by_start = np.lexsort((launch[rows] == ABSENT, begins))
    by_end = np.argsort(ends, kind="stable")
    next_event = rows[by_start[np.searchsorted(begins[by_start], end_ns)]]
    previous_event = rows[by_end[np.searchsorted(ends[by_end], start_ns)]]
    return DeviceGaps(start_ns, end_ns, previous_event.astype(np.int32), next_event.astype(np.int32))
