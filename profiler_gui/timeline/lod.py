"""Level of detail: lanes of slices with a tree of blocks over them, so that a frame costs pixels, not events.

A lane is one depth of one track: its slices follow each other in time. Over it stand blocks of four slices, over those
blocks of two blocks, and so on. Blocks count slices, not time: a burst of a million slices in one millisecond is
resolved as finely as a quiet second, and drawing opens only the blocks that are wider than a pixel.

Kernels take ``Any``: numba compiles them for the array types it meets.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from engine.core.arrays import AnyArray, Float32Array, Int32Array, Int64Array, UInt8Array, read_only

LEAF_SHIFT = 2
LEAF_SLICES = 1 << LEAF_SHIFT
"""Slices of a block of the finest level; finer blocks cost memory and save nothing that can be seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """The slices of one depth of a track, by start, and the blocks over them. All arrays are read-only.

    Attributes:
        events: int32, shape (n,): event rows of the trace.
        start_ns: int64, shape (n,).
        duration_ns: int64, shape (n,).
        color: uint8, shape (n,): palette index of each slice.
        level_start: int64, shape (levels + 1,): where the blocks of each level begin in the block arrays.
        block_start_ns: int64, shape (blocks,): first start in the block.
        block_span_ns: float32, shape (blocks,): from there to the last end in the block.
        block_busy_ns: float32, shape (blocks,): sum of durations.
        block_longest_ns: float32, shape (blocks,): the longest duration (of the slices that are not dimmed, if any).
        block_color: uint8, shape (blocks,): colour of that longest slice.
    """

    events: Int32Array
    start_ns: Int64Array
    duration_ns: Int64Array
    color: UInt8Array
    level_start: Int64Array
    block_start_ns: Int64Array
    block_span_ns: Float32Array
    block_busy_ns: Float32Array
    block_longest_ns: Float32Array
    block_color: UInt8Array

    def __len__(self) -> int:
        return len(self.start_ns)

    def slice_at(self, time_ns: int, tolerance_ns: int = 0) -> int:
        """Returns the lane index of the slice that covers ``time_ns``, else the nearest within the tolerance, or −1."""
        # An int64 key: a float key would make numpy convert the whole column at every call.
        after = int(np.searchsorted(self.start_ns, np.int64(time_ns), side="right"))
        best, best_distance_ns = -1, tolerance_ns + 1
        for index in (after - 1, after):
            if not 0 <= index < len(self):
                continue
            start_ns = int(self.start_ns[index])
            end_ns = start_ns + int(self.duration_ns[index])
            distance_ns = max(start_ns - time_ns, time_ns - end_ns + 1, 0)
            if distance_ns < best_distance_ns:
                best, best_distance_ns = index, distance_ns
        return best


def build_lane(
    events: Int32Array, start_ns: Int64Array, duration_ns: Int64Array, color: UInt8Array, dimmed_from: int = 256
) -> Lane:
    """Returns a lane with its blocks; the columns are of shape (n,), sorted by start.

    Args:
        events: int32 event rows.
        start_ns: int64.
        duration_ns: int64.
        color: uint8 palette index.
        dimmed_from: Colours from here on stand for slices that do not match a search: a block shows one of them only
            if it holds no others, so that a match never vanishes between its neighbours.
    """
    events, start_ns, duration_ns, color = (_plain(column) for column in (events, start_ns, duration_ns, color))
    level: list[AnyArray] = [start_ns, read_only(start_ns + duration_ns), duration_ns, duration_ns, color]
    levels: list[list[AnyArray]] = []
    while len(level[0]) > (1 if levels else 0):
        level = [read_only(column) for column in _fold(2 if levels else LEAF_SLICES, dimmed_from, *level)]
        levels.append(level)
    level_start = np.cumsum([0, *(len(level[0]) for level in levels)], dtype=np.int64)
    empty: list[AnyArray] = [*(np.empty(0, dtype=np.int64) for _ in range(4)), np.empty(0, dtype=np.uint8)]
    first_ns, last_ns, busy_ns, longest_ns, shown = (
        np.concatenate(columns) for columns in zip(*(levels or [empty]), strict=True)
    )
    # Lengths need no more than a float's seven digits, and frames cost what they read from memory.
    lengths = (column.astype(np.float32) for column in (last_ns - first_ns, busy_ns, longest_ns))
    blocks = (read_only(column) for column in (level_start, first_ns, *lengths, shown))
    return Lane(events, start_ns, duration_ns, color, *blocks)


def split_lanes(depth: Int32Array) -> list[Int64Array]:
    """Returns, for the slices of one track, the positions (int64, ascending) on each depth, outermost first."""
    if len(depth) == 0:
        return []
    deepest = int(depth.max())
    if deepest == 0:
        return [np.arange(len(depth), dtype=np.int64)]
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(deepest + 2, dtype=depth.dtype))
    return [order[bounds[level] : bounds[level + 1]] for level in range(deepest + 1)]


def _plain(column: AnyArray) -> AnyArray:
    """Returns the column as a contiguous read-only base array: one array type, hence one compiled kernel."""
    return read_only(np.ascontiguousarray(np.asarray(column)))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fold(group: Any, dimmed_from: Any, start_ns: Any, end_ns: Any, busy_ns: Any, longest_ns: Any, color: Any) -> Any:
    """Returns the five columns of the level above: each row stands for ``group`` neighbours."""
    count = -(-len(start_ns) // group)
    above_start, above_end = np.empty(count, np.int64), np.empty(count, np.int64)
    above_busy, above_longest = np.empty(count, np.int64), np.empty(count, np.int64)
    above_color = np.empty(count, np.uint8)
    for row in range(count):
        first = row * group
        best = first
        end, busy = end_ns[first], busy_ns[first]
        for part in range(first + 1, min(first + group, len(start_ns))):
            end = max(end, end_ns[part])
            busy += busy_ns[part]
            if (color[part] >= dimmed_from) != (color[best] >= dimmed_from):
                best = part if color[part] < dimmed_from else best
            elif longest_ns[part] > longest_ns[best]:
                best = part
        above_start[row], above_end[row], above_busy[row] = start_ns[first], end, busy
        above_longest[row], above_color[row] = longest_ns[best], color[best]
    return above_start, above_end, above_busy, above_longest, above_color
