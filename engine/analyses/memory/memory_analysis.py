"""Device memory: peaks, what was alive at the peak, headroom, leaks, lifetimes."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.memory.memory_blocks import (
    Leak,
    LifetimeBin,
    LiveAtPeak,
    alive_at,
    blocks_of,
    leaks,
    lifetimes,
    live_by_operator,
)
from engine.analyses.steps import Step
from engine.analyses.steps.profiler_steps import host_steps
from engine.core.arrays import Int64Array
from engine.trace.strings import ABSENT
from engine.trace.tables import MemoryCurve
from engine.trace.trace import TimeRange, Trace

__all__ = [
    "NET_CHANGE",
    "Leak",
    "LifetimeBin",
    "LiveAtPeak",
    "MemoryAnalysis",
    "StepMemory",
    "main_curve",
    "memory_analysis",
]

PROCESS_COMPONENT = "APP"
_PREFERRED_COMPONENTS = ("PTA", "MindSpore", "PTA+GE", "MindSpore+GE", "GE")
_NO_ALLOCATOR = (PROCESS_COMPONENT, "WORKSPACE")
NET_CHANGE = "net change"
"""Ends the component's name where the source records no totals, only what was added and taken back since the capture
began: peaks are then lower bounds."""


@dataclass(frozen=True, slots=True)
class StepMemory:
    """One step's extremes of the allocator's curves; None where not recorded."""

    step: int | None
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    peak_active_bytes: int | None
    headroom_bytes: int | None


@dataclass(frozen=True, slots=True)
class MemoryAnalysis:
    """See CLI.md ``memory``; None where the capture does not hold the value.

    Attributes:
        component: Whose curves these are, ``"PTA"`` for PyTorch's allocator; ends in ``"net change"`` where the source
            records no totals: peaks are then the growth since the capture began.
        device: Device number, or −1 for the host.
        peak_allocated_bytes: Highest sum in use by tensors.
        peak_reserved_bytes: Highest sum taken from the driver.
        peak_active_bytes: Highest sum in use or waiting for another stream.
        peak_at_ns: When allocated peaked.
        fragmentation_ratio: 1 − peak allocated ÷ peak reserved. The difference at any other moment is the
            allocator's cache, which it reuses or returns.
        stranded_bytes: Needs addresses or a replay; None here.
        reserved_slope_bytes_per_step: Growth of the reserved peak per step (least squares); None with fewer than two
            steps.
        headroom_bytes: Device capacity − everything the process holds at the reserved peak; None where unknown.
        process_bytes: What the driver sees of the process at most (APP), None where not sampled.
        other_bytes: process − reserved: HCCL buffers, workspaces, the context; None where not sampled.
        alive_at_peak: By operator, the largest first; () where the source records no blocks.
        leaks: The largest first.
        steps: Step by step.
        lifetimes: Of blocks allocated and freed inside the capture, the shortest first.
        unfreed_count: Blocks allocated inside the capture and still alive at its end.
        unfreed_bytes: Their sum.
    """

    component: str
    device: int
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    peak_active_bytes: int | None
    peak_at_ns: int | None
    fragmentation_ratio: float | None
    stranded_bytes: int | None
    reserved_slope_bytes_per_step: float | None
    headroom_bytes: int | None
    process_bytes: int | None
    other_bytes: int | None
    alive_at_peak: tuple[LiveAtPeak, ...]
    leaks: tuple[Leak, ...]
    steps: tuple[StepMemory, ...]
    lifetimes: tuple[LifetimeBin, ...] = ()
    unfreed_count: int = 0
    unfreed_bytes: int = 0


def memory_analysis(trace: Trace, steps: tuple[Step, ...]) -> MemoryAnalysis | None:
    """Returns the analysis of the trace's memory log; None where it has none.

    The allocator lives on the host's clock, so its steps are the host's where the trace has them and the device's
    otherwise.
    """
    curve = analysed_curve(trace)
    if curve is None:
        return None
    ranges, numbers = _step_ranges(trace, steps)
    rows = blocks_of(trace, curve.component, curve.device)
    table = trace.memory.allocations
    peak_row = _peak_row(curve.allocated_bytes)
    peak_at_ns = None if peak_row is None else int(curve.time_ns[peak_row])
    allocated = None if peak_row is None else int(curve.allocated_bytes[peak_row])
    reserved = _peak(curve.reserved_bytes)
    process = _process_peak(trace, curve.device)
    other = process - reserved if process is not None and reserved is not None else None
    capacity = trace.metadata.device_memory_bytes if curve.device >= 0 else None
    step_memory = tuple(
        _step_memory(curve, item, number, capacity, other) for item, number in zip(ranges, numbers, strict=True)
    )
    alive = rows[:0] if peak_at_ns is None else alive_at(table, rows, peak_at_ns)
    unfreed = rows[(table.freed_at_ns[rows] == ABSENT) & (table.allocated_at_ns[rows] != ABSENT)]
    return MemoryAnalysis(
        component=curve.component,
        device=curve.device,
        peak_allocated_bytes=allocated,
        peak_reserved_bytes=reserved,
        peak_active_bytes=_peak(curve.active_bytes),
        peak_at_ns=peak_at_ns,
        fragmentation_ratio=1 - allocated / reserved if allocated is not None and reserved else None,
        stranded_bytes=None,
        reserved_slope_bytes_per_step=_slope([item.peak_reserved_bytes for item in step_memory]),
        headroom_bytes=_headroom(capacity, reserved, other),
        process_bytes=process,
        other_bytes=other,
        alive_at_peak=live_by_operator(trace, alive, allocated or 0) if len(rows) else (),
        leaks=leaks(trace, rows, ranges, numbers),
        steps=step_memory,
        lifetimes=lifetimes(table, rows),
        unfreed_count=len(unfreed),
        unfreed_bytes=int(table.size_bytes[unfreed].sum()),
    )


def analysed_curve(trace: Trace) -> MemoryCurve | None:
    """Returns the curve the analysis is of: the recorded one, or what its blocks add up to; None without either."""
    return main_curve(trace) or _curve_of_blocks(trace)


def main_curve(trace: Trace) -> MemoryCurve | None:
    """Returns the curve of the framework's allocator on the device with the highest peak, None where there is none.

    A curve of the host is taken only where no device has one; the driver's view of the process never.
    """
    curves = [curve for curve in trace.memory.curves if curve.component not in _NO_ALLOCATOR and len(curve)]
    if not curves:
        return None

    def preference(curve: MemoryCurve) -> tuple[bool, int, int]:
        known = curve.component in _PREFERRED_COMPONENTS
        order = _PREFERRED_COMPONENTS.index(curve.component) if known else len(_PREFERRED_COMPONENTS)
        return curve.device < 0, order, -(_peak(curve.allocated_bytes) or 0)

    return min(curves, key=preference)


def main_blocks(trace: Trace, curve: MemoryCurve | None) -> tuple[Int64Array, int]:
    """Returns the rows of the allocation table that ``main_curve(trace)`` counts (int64), and their device.

    Where there is no curve, those of PyTorch's allocator on the device with the highest number.
    """
    device = curve.device if curve is not None else int(trace.memory.allocations.device.max(initial=0))
    return blocks_of(trace, curve.component if curve is not None else "PTA", device), device


def _curve_of_blocks(trace: Trace) -> MemoryCurve | None:
    """Returns the net growth since the capture began, for sources that record blocks but no totals.

    Each block adds its size when it is allocated and takes it back when it is freed, frees of one ns first, as in
    ``alive_at``. Older blocks are unknown, so this is a lower bound of what was allocated.
    """
    table = trace.memory.allocations
    if len(table) == 0:
        return None
    devices, counts = np.unique(table.device, return_counts=True)
    candidates = devices >= 0 if bool(np.any(devices >= 0)) else np.full(len(devices), fill_value=True)
    device = int(devices[candidates][np.argmax(counts[candidates])])
    rows = np.flatnonzero((table.device == device) & (table.allocated_at_ns != ABSENT))
    freed = rows[table.freed_at_ns[rows] != ABSENT]
    time_ns = np.concatenate((table.allocated_at_ns[rows], table.freed_at_ns[freed]))
    change = np.concatenate((table.size_bytes[rows], -table.size_bytes[freed]))
    order = np.lexsort((change, time_ns))
    absent = np.full(len(order), ABSENT, dtype=np.int64)
    return MemoryCurve(NET_CHANGE, device, time_ns[order], np.cumsum(change[order]), absent, absent)


def _step_ranges(trace: Trace, steps: tuple[Step, ...]) -> tuple[tuple[TimeRange, ...], tuple[int | None, ...]]:
    on_host = host_steps(trace)
    if on_host:
        return tuple(item.range for item in on_host), tuple(item.number for item in on_host)
    ordered = sorted(steps, key=lambda step: step.range.start_ns)
    return tuple(step.range for step in ordered), tuple(step.step for step in ordered)


def _step_memory(
    curve: MemoryCurve, step: TimeRange, number: int | None, capacity: int | None, other: int | None
) -> StepMemory:
    """Returns the extremes between the step's bounds, the level it began with included."""
    first = max(int(np.searchsorted(curve.time_ns, step.start_ns, side="right")) - 1, 0)
    last = int(np.searchsorted(curve.time_ns, step.end_ns, side="left"))
    reserved = _peak(curve.reserved_bytes[first:last])
    return StepMemory(
        step=number,
        peak_allocated_bytes=_peak(curve.allocated_bytes[first:last]),
        peak_reserved_bytes=reserved,
        peak_active_bytes=_peak(curve.active_bytes[first:last]),
        headroom_bytes=_headroom(capacity, reserved, other),
    )


def _peak_row(column: Int64Array) -> int | None:
    return int(np.argmax(column)) if len(column) and int(column.max()) >= 0 else None


def _peak(column: Int64Array) -> int | None:
    row = _peak_row(column)
    return None if row is None else int(column[row])


def _process_peak(trace: Trace, device: int) -> int | None:
    """Returns the most the driver saw the process hold on the device, None where it was not sampled."""
    peaks = [
        peak
        for curve in trace.memory.curves
        if curve.component == PROCESS_COMPONENT and curve.device == device
        if (peak := _peak(curve.reserved_bytes)) is not None
    ]
    return max(peaks, default=None)


def _headroom(capacity: int | None, reserved: int | None, other: int | None) -> int | None:
    """Returns what is left of the device beside the pool and what the process holds outside it (as far as known)."""
    if capacity is None or reserved is None:
        return None
    return capacity - reserved - (other or 0)


def _slope(peaks: list[int | None]) -> float | None:
    """Returns the slope of the least-squares line through the peaks of the steps."""
    known = np.array([(step, peak) for step, peak in enumerate(peaks) if peak is not None], dtype=np.float64)
    if len(known) < 2:  # a line needs two points
        return None
    step, peak = known[:, 0] - known[:, 0].mean(), known[:, 1] - known[:, 1].mean()
    return float((step * peak).sum() / (step * step).sum())
