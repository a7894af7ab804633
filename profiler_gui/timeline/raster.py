"""The compiled rasteriser: lanes and counters into one image of 32-bit pixels.

Every column of pixels shows what fills it: its lightness is the share of the column's time that is covered, its colour
that of the slice that covers most of it. A slice thinner than a pixel tints one column and never becomes a wide one.
Positions are worked out relative to the view in int64 before they become floats.

Kernels take ``Any``: numba compiles them for the array types it meets.
"""

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from engine.core.arrays import Float64Array, Int64Array, UInt8Array
from profiler_gui.timeline.lod import LEAF_SHIFT, Lane

Image = NDArray[np.uint32]
"""0xffRRGGBB, shape (height, width)."""

MIN_LIGHTNESS_RATIO = 0.25
"""How strongly a column is tinted by a slice of (nearly) no width: it must be seen, and seen to be thin."""
BLOCK_PX = 1.0
"""Blocks narrower than this are not opened: their slices cannot be told apart on the screen."""
EDGE_FROM_PX = 4.0
"""Slices from this width on have their first column lightened, so that equal neighbours stay apart."""
TRACE_RATIO = 0.02
"""What crosses from one column into the next shows in the lesser of the two only from this share on: a slice of 1 ns
that happens to lie on a border is one column, not two."""
MAX_LABEL_SITES = 8192


@dataclass(eq=False)
class Columns:
    """Scratch memory of one frame: what each column of a lane holds, and where labels may go.

    Attributes:
        width: Device pixels.
        filled: float64, shape (width,): covered share.
        weight: float64, shape (width,): share covered by the slice whose colour is shown; −1 where nothing is.
        color: uint8, shape (width,).
        edge: uint8, shape (width,): 1 at the first column of a slice wide enough to have one.
        line: uint32, shape (width,): the finished pixels.
        site_event: int64, shape (MAX_LABEL_SITES,): lane index of slices wide enough for a name.
        site_px: float64, shape (MAX_LABEL_SITES, 2): their left and right edge, clipped to the view.
    """

    width: int
    filled: Float64Array = field(init=False)
    weight: Float64Array = field(init=False)
    color: UInt8Array = field(init=False)
    edge: UInt8Array = field(init=False)
    line: NDArray[np.uint32] = field(init=False)
    site_event: Int64Array = field(init=False)
    site_px: Float64Array = field(init=False)

    def __post_init__(self) -> None:
        self.filled = np.empty(self.width, dtype=np.float64)
        self.weight = np.empty(self.width, dtype=np.float64)
        self.color = np.empty(self.width, dtype=np.uint8)
        self.edge = np.empty(self.width, dtype=np.uint8)
        self.line = np.empty(self.width, dtype=np.uint32)
        self.site_event = np.empty(MAX_LABEL_SITES, dtype=np.int64)
        self.site_px = np.empty((MAX_LABEL_SITES, 2), dtype=np.float64)


def fill_columns(
    lane: Lane, view_start_ns: int, view_end_ns: int, columns: Columns, label_px: float, block_px: float = BLOCK_PX
) -> int:
    """Fills ``columns`` with what the view shows of the lane and returns the number of label sites found.

    Args:
        lane: What to draw.
        view_start_ns: Left edge.
        view_end_ns: Right edge, later than the left.
        columns: Is overwritten.
        label_px: Slices at least this wide (inside the view) are label sites.
        block_px: Blocks narrower than this are not opened; 0 opens all.
    """
    sites: int = _fill_columns(
        (lane.start_ns, lane.duration_ns, lane.color),
        (lane.block_start_ns, lane.block_span_ns, lane.block_busy_ns, lane.block_longest_ns, lane.block_color),
        lane.level_start,
        (view_start_ns, view_end_ns),
        (float(block_px), float(label_px)),
        (columns.filled, columns.weight, columns.color, columns.edge),
        (columns.site_event, columns.site_px),
    )
    return sites


def paint_columns(
    image: Image, top: int, bottom: int, columns: Columns, palette: NDArray[np.uint32], background: int
) -> None:
    """Writes the columns into the image rows ``top`` to ``bottom`` (exclusive).

    Empty columns keep what is there; columns filled in part are mixed with ``background``.
    """
    _paint_columns(
        image,
        max(top, 0),
        min(bottom, image.shape[0]),
        columns.filled,
        columns.weight,
        columns.color,
        columns.edge,
        palette,
        np.uint32(background),
        columns.line,
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _deposit(filled: Any, weight: Any, color: Any, column: Any, share: Any, strongest: Any, hue: Any) -> Any:
    if 0 <= column < len(filled):
        filled[column] += share
        if strongest > weight[column]:
            weight[column] = strongest
            color[column] = hue


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _deposit_narrow(
    filled: Any, weight: Any, color: Any, left: Any, right: Any, busy: Any, strongest: Any, hue: Any
) -> Any:
    """Puts what is narrower than a column into its column, or shares it between the two it lies in."""
    first = np.int64(np.floor(left))
    if right <= first + 1:
        _deposit(filled, weight, color, first, busy, strongest, hue)
        return
    part = (first + 1 - left) / (right - left)
    lesser = first if part < 0.5 else first + 1
    for column, share in ((first, part), (first + 1, 1.0 - part)):
        shown = strongest * share if column != lesser or busy * share >= TRACE_RATIO else -1.0
        _deposit(filled, weight, color, column, busy * share, shown, hue)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _deposit_wide(filled: Any, weight: Any, color: Any, edge: Any, left: Any, right: Any, hue: Any) -> Any:
    """Puts a slice of a column or more in; slices of a lane do not overlap, so inner columns are its alone."""
    width = len(filled)
    first, last = np.int64(np.floor(max(left, -1.0))), np.int64(np.floor(min(right, width + 1.0)))
    if left >= 0.0:
        _deposit(filled, weight, color, first, first + 1 - left, first + 1 - left, hue)
        if right - left >= EDGE_FROM_PX and first < width:
            edge[first] = 1
    inner_from, inner_to = max(first + 1, 0), min(max(last, 0), width)
    filled[inner_from:inner_to] = 1.0
    weight[inner_from:inner_to] = 1.0
    color[inner_from:inner_to] = hue
    if right > last:
        _deposit(filled, weight, color, last, right - last, right - last, hue)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill_columns(
    slices: Any, blocks: Any, level_start: Any, view_ns: Any, thresholds_px: Any, columns: Any, label_sites: Any
) -> Any:
    start_ns, duration_ns, slice_color = slices
    block_start_ns, block_span_ns, block_busy_ns, block_longest_ns, block_color = blocks
    view_start_ns, view_end_ns = view_ns
    block_px, label_px = thresholds_px
    filled, weight, color, edge = columns
    site_event, site_px = label_sites
    width = len(filled)
    filled[:] = 0.0
    weight[:] = -1.0
    edge[:] = 0
    px_per_ns = width / np.float64(view_end_ns - view_start_ns)
    widest_block_ns = block_px / px_per_ns
    levels = len(level_start) - 1
    index = max(np.searchsorted(start_ns, view_start_ns, side="right") - 1, 0)
    stop = np.searchsorted(start_ns, view_end_ns)
    sites = 0
    level = -1
    block = np.int64(0)
    while index < stop:
        # The largest block that starts here and is narrow enough; the neighbour's level is where the search begins.
        level = min(level + 1, levels - 1)
        while level >= 0:
            shift = level + LEAF_SHIFT
            if index & ((1 << shift) - 1) == 0:
                block = level_start[level] + (index >> shift)
                if block_span_ns[block] <= widest_block_ns:
                    break
            level -= 1
        if level >= 0:
            left = (block_start_ns[block] - view_start_ns) * px_per_ns
            right = left + block_span_ns[block] * px_per_ns
            busy = block_busy_ns[block] * px_per_ns
            longest = block_longest_ns[block] * px_per_ns
            hue = block_color[block]
            index += 1 << (level + LEAF_SHIFT)
            _deposit_narrow(filled, weight, color, left, right, busy, longest, hue)
            continue
        left = (start_ns[index] - view_start_ns) * px_per_ns
        right = (start_ns[index] + duration_ns[index] - view_start_ns) * px_per_ns
        if right - left < 1.0:
            _deposit_narrow(filled, weight, color, left, right, right - left, right - left, slice_color[index])
        else:
            _deposit_wide(filled, weight, color, edge, left, right, slice_color[index])
            shown_left, shown_right = max(left, 0.0), min(right, np.float64(width))
            if shown_right - shown_left >= label_px and sites < len(site_event):
                site_event[sites] = index
                site_px[sites, 0] = shown_left
                site_px[sites, 1] = shown_right
                sites += 1
        index += 1
    return sites


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _blend(color: Any, background: Any, ratio: float) -> Any:
    share = np.int64(ratio * 256.0)
    mixed = np.int64(0xFF)
    for shift in (16, 8, 0):
        above = (np.int64(color) >> shift) & 0xFF
        below = (np.int64(background) >> shift) & 0xFF
        mixed = (mixed << 8) | (below + (((above - below) * share) >> 8))
    return np.uint32(mixed)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _paint_columns(
    image: Any,
    top: Any,
    bottom: Any,
    filled: Any,
    weight: Any,
    color: Any,
    edge: Any,
    palette: Any,
    background: Any,
    line: Any,
) -> Any:
    width = len(filled)
    for column in range(width):
        if weight[column] < 0.0:
            # What is there already: the background and its grid, the same in all rows of a lane.
            line[column] = image[min(top, image.shape[0] - 1), column]
            continue
        ratio = MIN_LIGHTNESS_RATIO + (1.0 - MIN_LIGHTNESS_RATIO) * min(filled[column], 1.0)
        if edge[column]:
            ratio *= 0.6
        line[column] = _blend(palette[color[column]], background, ratio)
    for row in range(top, bottom):
        for column in range(width):
            image[row, column] = line[column]
