"""How long blocks lived and how large they were, in powers of two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.core.number_format import format_bytes, format_count, format_duration_ns
from profiler_gui.toolkit.bars import Bar, Part
from profiler_gui.toolkit.columns import ColumnRow
from profiler_gui.toolkit.fills import ALLOCATED, CACHED
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.memory import LifetimeBin
    from engine.core.arrays import Int64Array


def lifetime_row(bins: tuple[LifetimeBin, ...], *, by_bytes: bool) -> ColumnRow:
    """Returns a column per power of two between the shortest and the longest lifetime, empty ones included."""
    known = {item.low_ns.bit_length() - 1: item for item in bins}
    bars = []
    for power in _span(list(known)):
        low, high = format_duration_ns(1 << power), format_duration_ns(2 << power)
        item = known.get(power)
        count, size_bytes = (item.count, item.bytes) if item is not None else (0, 0)
        bars.append(_bar(low, tr("lived {low} to {high}", low=low, high=high), count, size_bytes, by_bytes=by_bytes))
    return ColumnRow("", tuple(bars))


def size_row(size_bytes: Int64Array, *, by_bytes: bool) -> ColumnRow:
    """Returns a column per power of two between the smallest and the largest block, empty ones included.

    Args:
        size_bytes: int64, shape (blocks,).
        by_bytes: Whether the height is the sum of sizes instead of the number of blocks.
    """
    positive = size_bytes[size_bytes > 0]
    # frexp is exact: sizes of blocks stay far below 2**53 bytes.
    power = np.frexp(positive.astype(np.float64))[1] - 1
    counts = np.bincount(power, minlength=1)
    sums = np.zeros(len(counts), dtype=np.int64)
    np.add.at(sums, power, positive)
    bars = []
    for exponent in _span(np.flatnonzero(counts).tolist()):
        low, high = format_bytes(1 << exponent), format_bytes(2 << exponent)
        what = tr("{low} to {high}", low=low, high=high)
        bars.append(_bar(low, what, int(counts[exponent]), int(sums[exponent]), by_bytes=by_bytes))
    return ColumnRow("", tuple(bars))


def _span(powers: list[int]) -> range:
    return range(min(powers), max(powers) + 1) if powers else range(0)


def _bar(title: str, what: str, count: int, size_bytes: int, *, by_bytes: bool) -> Bar:
    blocks = tr("{count} blocks, {size}", count=format_count(count), size=format_bytes(size_bytes))
    text = f"{what}: {blocks}"
    value = float(size_bytes if by_bytes else count)
    parts = (Part("blocks", value, text, (), CACHED if by_bytes else ALLOCATED),) if count else ()
    return Bar(title, parts)
