"""Interval unions of device work over a whole trace."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity, activities, activity_intervals
from engine.core.arrays import UInt8Array
from engine.trace.intervals import Intervals, clip, difference, intersection, join
from engine.trace.trace import TimeRange, Trace
from engine.trace.tracks import TrackKind


@dataclass(frozen=True, slots=True)
class DeviceTotals:
    """Measures of unions, in ns; see CLI.md ``device``.

    Attributes:
        span_ns: From the first start to the last end of device work.
        busy_ns: |computing ∪ communication ∪ memory|.
        idle_ns: span − busy.
        compute_ns: |computing|.
        communication_ns: |communication|.
        memory_ns: |memory|.
        overlap_ns: |communication ∩ computing|.
        exposed_communication_ns: |communication − computing|.
        overlap_ratio: overlap ÷ communication; None where there is no communication.
    """

    span_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    communication_ns: int
    memory_ns: int
    overlap_ns: int
    exposed_communication_ns: int
    overlap_ratio: float | None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceWork:
    """The unions of what the device did, ns from the trace start.

    Attributes:
        computing: Tasks on cores.
        communication: Collectives and transfers between ranks, waiting inside them included.
        memory: Copies and fills.
    """

    computing: Intervals
    communication: Intervals
    memory: Intervals

    @property
    def busy(self) -> Intervals:
        """Everything the device worked on: |computing ∪ communication ∪ memory| is its measure."""
        return join(self.computing, self.communication, self.memory)

    def within(self, window: TimeRange) -> "DeviceWork":
        """Returns the part inside a half-open window."""
        return DeviceWork(
            clip(self.computing, window.start_ns, window.end_ns),
            clip(self.communication, window.start_ns, window.end_ns),
            clip(self.memory, window.start_ns, window.end_ns),
        )


def device_work(trace: Trace, kinds: UInt8Array | None = None) -> DeviceWork:
    """Returns the unions of computing, communication and memory tasks of the whole trace.

    Args:
        trace: The trace.
        kinds: ``activities(trace)`` where the caller has it already.
    """
    kinds = activities(trace) if kinds is None else kinds
    return DeviceWork(
        activity_intervals(trace, kinds, Activity.COMPUTING),
        activity_intervals(trace, kinds, Activity.COMMUNICATION),
        activity_intervals(trace, kinds, Activity.MEMORY),
    )


def device_totals(trace: Trace, window: TimeRange | None = None) -> DeviceTotals | None:
    """Returns the totals of the trace (or of a window of it); None where it recorded no device streams or no work.

    Collectives alone (a rank with ``communication.json`` only) would show computing as zero and idle as all the rest.

    Inside a window the span is the window itself, so busy + idle = window and no share exceeds 100 %. Without one the
    span is that of the work; tasks of zero length stretch it like any other.
    """
    kinds = activities(trace)
    rows = np.flatnonzero(
        (kinds == Activity.COMPUTING) | (kinds == Activity.COMMUNICATION) | (kinds == Activity.MEMORY)
    )
    if len(rows) == 0 or len(trace.events_of(TrackKind.DEVICE_STREAM)) == 0:
        return None
    work = device_work(trace, kinds)
    if window is None:
        first_ns = int(trace.events.start_ns[rows].min())
        return _totals(work, TimeRange(first_ns, int(trace.events.end_ns[rows].max())))
    return _totals(work.within(window), window)


def _totals(work: DeviceWork, span: TimeRange) -> DeviceTotals:
    busy_ns = work.busy.total_ns
    communication_ns = work.communication.total_ns
    overlap_ns = intersection(work.communication, work.computing).total_ns
    return DeviceTotals(
        span_ns=span.duration_ns,
        busy_ns=busy_ns,
        idle_ns=span.duration_ns - busy_ns,
        compute_ns=work.computing.total_ns,
        communication_ns=communication_ns,
        memory_ns=work.memory.total_ns,
        overlap_ns=overlap_ns,
        exposed_communication_ns=difference(work.communication, work.computing).total_ns,
        overlap_ratio=overlap_ns / communication_ns if communication_ns else None,
    )
