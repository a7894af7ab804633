"""Addresses stacked: ranges that ever had memory behind them one above another, empty address space left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.core.arrays import Int64Array
    from engine.runtime.addresses.address_map import AddressMap

LONG_BLOCK_BYTES = 32 << 20
"""Longer blocks are looked at for every segment: they are few, and may begin far before it."""


@dataclass(frozen=True, slots=True, eq=False)
class StackedSpace:
    """Ranges of addresses and where each begins in the stack. int64, shape (ranges,), by address.

    Attributes:
        start: First address.
        end: First address after it.
        offset_bytes: Its place in the stack.
        total_bytes: Height of the stack.
    """

    start: Int64Array
    end: Int64Array
    offset_bytes: Int64Array
    total_bytes: int

    def position_of(self, address: Int64Array) -> Int64Array:
        """Returns the place of addresses in the stack, int64; one outside all ranges is at the nearest range's edge."""
        if len(self.start) == 0:
            return np.zeros_like(address)
        row = np.maximum(np.searchsorted(self.start, address, side="right") - 1, 0)
        inside = np.clip(address - self.start[row], 0, self.end[row] - self.start[row])
        places: Int64Array = self.offset_bytes[row] + inside
        return places

    def address_at(self, position_bytes: int) -> int:
        """Returns the address at a place in the stack."""
        if len(self.start) == 0:
            return 0
        row = max(int(np.searchsorted(self.offset_bytes, position_bytes, side="right")) - 1, 0)
        return int(self.start[row]) + position_bytes - int(self.offset_bytes[row])


def stacked_space(start: Int64Array, size_bytes: Int64Array) -> StackedSpace:
    """Returns the stack of all ranges; ranges that touch or overlap are one."""
    order = np.argsort(start, kind="stable")
    first, end = start[order], (start + size_bytes)[order]
    reach = np.maximum.accumulate(end) if len(end) else end
    begins = np.ones(len(first), dtype=np.bool_)
    begins[1:] = first[1:] > reach[:-1]
    rows = np.flatnonzero(begins)
    lows = first[rows]
    highs = reach[np.append(rows[1:], len(first)) - 1] if len(rows) else reach
    lengths = highs - lows
    return StackedSpace(lows, highs, np.cumsum(lengths) - lengths, int(lengths.sum()))


def releasable_spans(mapped: AddressMap) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns (segment row, first event, last event) of the times in which a segment held no block at all.

    int64, shape (spans,). What is free in a segment that holds a block is pinned; what these spans hold is not.
    """
    segments, blocks = mapped.segments, mapped.blocks
    order = np.argsort(blocks.address, kind="stable")
    address, size = blocks.address[order], blocks.size_bytes[order]
    is_long = size > LONG_BLOCK_BYTES
    long_blocks = np.flatnonzero(is_long)
    spans: list[tuple[int, int, int]] = []
    # A Python loop over segments, of which there are few beside blocks.
    for row in range(len(segments)):
        start = int(segments.address[row])
        end = start + int(segments.size_bytes[row])
        low, high = np.searchsorted(address, (start - LONG_BLOCK_BYTES, end))
        near = np.concatenate((long_blocks[(long_blocks < low) | (long_blocks >= high)], np.arange(low, high)))
        touches = (address[near] < end) & (address[near] + size[near] > start)
        own = order[near[touches]]
        own = own[np.argsort(blocks.first_event[own], kind="stable")]
        born = np.append(blocks.first_event[own], segments.last_event[row])
        reach = np.maximum.accumulate(np.concatenate((segments.first_event[row : row + 1], blocks.last_event[own])))
        empty = born > reach
        spans += [(row, *span) for span in zip(reach[empty].tolist(), born[empty].tolist(), strict=True)]
    table = np.array(spans, dtype=np.int64).reshape(-1, 3)
    return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy()
