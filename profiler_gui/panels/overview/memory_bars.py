"""Where a rank's device memory is at its highest, up to the device's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.number_format import format_bytes
from profiler_gui.toolkit.bars import Bar, Part
from profiler_gui.toolkit.fills import ALLOCATED, CACHED, FREE_MEMORY, OTHER_MEMORY, Fill, LegendEntry
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.memory import MemoryAnalysis
    from engine.analyses.summary import JobSummary

_FILLS = {"allocated": ALLOCATED, "cached": CACHED, "other": OTHER_MEMORY, "free": FREE_MEMORY}


def memory_bars(summary: JobSummary, current_rank: int) -> tuple[tuple[int, Bar], ...]:
    """Returns (rank, bar) of every rank whose memory was recorded."""
    return tuple(
        (entry.rank, _bar(entry.rank, entry.memory, is_current=entry.rank == current_rank and len(summary.ranks) > 1))
        for entry in summary.ranks
        if entry.memory is not None and entry.memory.peak_allocated_bytes is not None
    )


def memory_parts(memory: MemoryAnalysis) -> tuple[tuple[str, int], ...]:
    """Returns (id, bytes) of the parts the capture knows, from the bottom.

    ``cached`` is the highest reserved sum minus the highest allocated one: what the allocator keeps for reuse.
    """
    allocated, reserved = memory.peak_allocated_bytes or 0, memory.peak_reserved_bytes
    parts = [
        ("allocated", allocated),
        ("cached", reserved - allocated if reserved is not None else 0),
        ("other", memory.other_bytes or 0),
        ("free", memory.headroom_bytes or 0),
    ]
    return tuple((part, size) for part, size in parts if size > 0)


def legend_of(bars: tuple[Bar, ...]) -> tuple[LegendEntry, ...]:
    """Returns the legend of what the bars hold."""
    present = {part.id for bar in bars for part in bar.parts}
    return tuple(LegendEntry(_title(part), fill) for part, fill in _FILLS.items() if part in present)


def _title(part: str) -> str:
    return {
        "allocated": tr("allocated by tensors at the peak"),
        "cached": tr("reserved, not allocated (the allocator's cache)"),
        "other": tr("HCCL, workspaces and other memory of the process"),
    }.get(part) or tr("free")


def _short_title(part: str) -> str:
    return {"allocated": tr("allocated"), "cached": tr("cache"), "other": tr("HCCL, other")}.get(part) or tr("free")


def _bar(rank: int, memory: MemoryAnalysis, *, is_current: bool) -> Bar:
    parts = memory_parts(memory)
    total = sum(size for _, size in parts)
    limit_is_known = memory.headroom_bytes is not None
    value = tr("{size} device", size=format_bytes(total)) if limit_is_known else format_bytes(total)
    return Bar(
        tr("rank {rank}", rank=rank), tuple(_part(part, size, _FILLS[part]) for part, size in parts), value, is_current
    )


def _part(part: str, size: int, fill: Fill) -> Part:
    text = format_bytes(size)
    return Part(part, float(size), f"{_title(part)} {text}", (f"{_short_title(part)} {text}", text), fill)
