"""Whether memory grows over a run, and which of the two it is: live memory (a leak) or holes (fragmentation)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.core.units import MIB

_FEWEST_STEPS = 16
"""Below this a trend says nothing."""
_GROWTH_RATIO = 0.02
"""Growth over the run, as a share of the limit, below which memory counts as steady; a choice, not a measurement."""


_STILL_GROWING_RATIO = 0.25
"""Share of its growth that live memory must gain in the second half to count as a leak: half for a steady leak, next to
nothing for a population that has found its size; a choice, not a measurement."""


class MemoryVerdict(StrEnum):
    """What memory does over a run."""

    STEADY = "steady"
    LEAK = "live_memory_grows"
    FRAGMENTATION = "holes_grow"
    UNKNOWN = "too_few_steps"


class MemoryOverSteps(Protocol):
    """Memory of one rank, step by step; int64 arrays of shape (steps,)."""

    @property
    def peak_reserved_bytes(self) -> Int64Array:
        """Per step."""

    @property
    def end_allocated_bytes(self) -> Int64Array:
        """After each step: what outlives it."""

    @property
    def stranded_bytes(self) -> Int64Array:
        """At the worst miss of each step, −1 where there was none."""

    @property
    def limit_bytes(self) -> int:
        """What could be reserved."""


@dataclass(frozen=True, slots=True)
class MemoryTrend:
    """The trend of one rank's memory.

    Attributes:
        verdict: Leak, fragmentation or neither.
        reserved_slope_bytes_per_step: Robust slope of the peak reserved bytes; None for too few steps.
        live_growth_bytes: What outlives steps, at the end less at the beginning.
        stranded_growth_bytes: Bytes stranded at misses, at the end less at the beginning.
        stranded_bytes: At the worst miss of the run; None where there was none.
        sentence: For people.
    """

    verdict: MemoryVerdict
    reserved_slope_bytes_per_step: float | None
    live_growth_bytes: int
    stranded_growth_bytes: int
    stranded_bytes: int | None
    sentence: str


def memory_trend(memory: MemoryOverSteps) -> MemoryTrend:
    """Returns the trend of a rank's memory after the first step, which warms the allocator up."""
    worst = int(memory.stranded_bytes.max(initial=-1))
    stranded = worst if worst >= 0 else None
    count = len(memory.peak_reserved_bytes) - 1
    if count < _FEWEST_STEPS:
        return MemoryTrend(MemoryVerdict.UNKNOWN, None, 0, 0, stranded, "too few steps to speak of a trend")
    live = _growth(memory.end_allocated_bytes[1:].astype(np.float64))
    holes = _growth(_carried(memory.stranded_bytes)[1:])
    slope = _slope(memory.peak_reserved_bytes[1:])
    enough = _GROWTH_RATIO * memory.limit_bytes
    if live > enough and _late_growth(memory.end_allocated_bytes[1:]) > _STILL_GROWING_RATIO * live:
        verdict, sentence = MemoryVerdict.LEAK, f"live memory grows by {live / MIB:,.0f} MiB over the run: a leak"
    elif holes > enough:
        verdict = MemoryVerdict.FRAGMENTATION
        settled = f"stops growing after {live / MIB:,.0f} MiB" if live > enough else "is steady"
        sentence = f"holes grow by {holes / MIB:,.0f} MiB while live memory {settled}: fragmentation"
    else:
        verdict, sentence = MemoryVerdict.STEADY, "live memory and holes are steady"
    return MemoryTrend(verdict, slope, round(live), round(holes), stranded, sentence)


def _carried(values: Int64Array) -> Float64Array:
    """Returns the values with steps that had no miss taking the last known one, 0 before the first."""
    index = np.where(values >= 0, np.arange(len(values)), -1)
    last = np.maximum.accumulate(index)
    return np.where(last >= 0, values[np.maximum(last, 0)], 0).astype(np.float64)


def _growth(values: Float64Array) -> float:
    """Returns the median of the last eighth less that of the first."""
    part = max(len(values) // 8, 1)
    return float(np.median(values[-part:]) - np.median(values[:part]))


def _late_growth(values: Int64Array) -> float:
    """Returns the median of the last eighth less that of the eighth around the middle."""
    part, middle = max(len(values) // 8, 1), len(values) // 2
    around = values[max(middle - part // 2, 0) : middle + part - part // 2]
    return float(np.median(values[-part:]) - np.median(around))


def _slope(values: Int64Array) -> float:
    """Returns the slope between the medians of the first and the last quarter, per step."""
    part = max(len(values) // 4, 1)
    distance = len(values) - part
    return float(np.median(values[-part:]) - np.median(values[:part])) / max(distance, 1)
