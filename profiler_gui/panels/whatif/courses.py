"""Memory of a run as data: what the fullest rank had at its highest, and its course."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.core.number_format import format_bytes
from profiler_gui.toolkit.bars import Bar, Part
from profiler_gui.toolkit.fills import ALLOCATED, CACHED, OTHER_MEMORY
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.core.arrays import Float64Array, Int64Array
    from engine.trace import Trace
    from engine.whatif.results import Side

FEWEST_STEPS = 3
"""A history of fewer steps says less than what happens inside one."""


def memory_bar(title: str, side: Side, *, is_current: bool) -> Bar | None:
    """Returns what the fullest rank had at its highest; None where no memory is known.

    Stranded memory is that of the worst miss, drawn inside what was reserved and not allocated.
    """
    if not side.peak_reserved_bytes:
        return None
    rank = max(side.peak_reserved_bytes, key=side.peak_reserved_bytes.__getitem__)
    reserved = side.peak_reserved_bytes[rank]
    allocated = min(side.peak_allocated_bytes.get(rank, 0), reserved)
    stranded = min(max(side.stranded_bytes.get(rank, 0), 0), reserved - allocated)
    named = (
        ("allocated", tr("allocated"), allocated, ALLOCATED),
        ("stranded", tr("stranded"), stranded, OTHER_MEMORY),
        ("cached", tr("cached"), reserved - allocated - stranded, CACHED),
    )
    parts = tuple(
        Part(key, float(size), f"{word} {format_bytes(size)}", (f"{word} {format_bytes(size)}", word), fill)
        for key, word, size, fill in named
        if size > 0
    )
    return Bar(title, parts, format_bytes(reserved), is_current=is_current)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One line: what holds from each x on.

    Attributes:
        x: float64, shape (n,), ascending.
        y_bytes: int64, shape (n,).
    """

    x: Float64Array
    y_bytes: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCourse:
    """Memory of one rank over a run, or inside its recorded steps.

    Attributes:
        over_steps: Whether x counts steps; else it is ns from the start of the trace.
        allocated: In use.
        reserved: Taken from the driver; None where only its peak is known, as of a replayed capture.
    """

    over_steps: bool
    allocated: Level
    reserved: Level | None


def course_of(trace: Trace | None) -> MemoryCourse | None:
    """Returns the course of a trace's memory: step by step where it keeps that, else its curve; None for neither."""
    if trace is None:
        return None
    from engine.analyses.step_history import step_history

    history = step_history(trace)
    if history is not None and len(history) >= FEWEST_STEPS:
        steps = np.arange(len(history), dtype=np.float64)
        reserved, allocated = history.peak_reserved_bytes, history.peak_allocated_bytes
        return MemoryCourse(True, Level(steps, allocated), Level(steps, reserved))
    curve = max(trace.memory.curves, key=lambda item: (item.component == "PTA", len(item.time_ns)), default=None)
    if curve is None or not len(curve.time_ns):
        return None
    known = (curve.reserved_bytes >= 0) & (curve.allocated_bytes >= 0)
    x = curve.time_ns[known].astype(np.float64)
    return MemoryCourse(False, Level(x, curve.allocated_bytes[known]), Level(x, curve.reserved_bytes[known]))
