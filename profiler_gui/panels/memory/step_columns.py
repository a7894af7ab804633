"""Reserved against allocated, step by step, up to the device's limit where it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.core.number_format import format_bytes
from profiler_gui.toolkit.bars import Bar, Part
from profiler_gui.toolkit.columns import ColumnRow
from profiler_gui.toolkit.fills import ALLOCATED, CACHED, FREE_MEMORY, Fill, LegendEntry
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.memory import StepMemory

_FILLS: dict[str, Fill] = {"allocated": ALLOCATED, "cached": CACHED, "headroom": FREE_MEMORY}


def step_row(steps: Sequence[StepMemory]) -> ColumnRow:
    """Returns a column per step: peak allocated, what was reserved beyond it at most, headroom."""
    return ColumnRow("", tuple(_bar(step, index) for index, step in enumerate(steps)))


def step_legend(row: ColumnRow) -> tuple[LegendEntry, ...]:
    """Returns the legend of what the columns hold."""
    present = {part.id for bar in row.bars for part in bar.parts}
    return tuple(LegendEntry(_title(part), fill) for part, fill in _FILLS.items() if part in present)


def _bar(step: StepMemory, index: int) -> Bar:
    allocated, reserved = step.peak_allocated_bytes, step.peak_reserved_bytes
    sizes = {
        "allocated": allocated,
        "cached": reserved - allocated if reserved is not None and allocated is not None else None,
        "headroom": step.headroom_bytes,
    }
    parts = tuple(
        Part(part, float(size), f"{_title(part)} {format_bytes(size)}", (), _FILLS[part])
        for part, size in sizes.items()
        if size is not None and size > 0
    )
    number = step.step if step.step is not None else index + 1
    return Bar(tr("step {number}", number=number), parts)


def _title(part: str) -> str:
    return {
        "allocated": tr("peak allocated"),
        "cached": tr("peak reserved beyond it (the allocator's cache)"),
    }.get(part) or tr("headroom of the device")
