"""The compiled rasteriser of the address map: rectangles of blocks over segments into one image of 32-bit pixels.

Every pixel shows what fills it: its strength is the share that is covered, its colour that of the block that covers
most of it. A block thinner than a pixel tints one and is never lost.

Kernels take ``Any``: numba compiles them for the array types it meets.
"""

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from engine.core.arrays import UInt8Array

Image = NDArray[np.uint32]
"""0xffRRGGBB, shape (height, width)."""

Edges = tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]
"""Left, right, top and bottom of rectangles in pixels, float64, shape (n,)."""

MIN_STRENGTH_RATIO = 0.3
"""How strongly a pixel is tinted by a block of nearly no size: it must be seen."""
HATCH_PX = 7
HATCH_LINE_PX = 2


@dataclass(eq=False)
class Layer:
    """What one kind of rectangle covers of each pixel.

    Attributes:
        height: Device pixels.
        width: Device pixels.
        covered: float32, shape (height, width): share of the pixel.
        most: float32, likewise: share of the rectangle that covers most.
        hue: uint8, likewise: its colour.
    """

    height: int
    width: int
    covered: NDArray[np.float32] = field(init=False)
    most: NDArray[np.float32] = field(init=False)
    hue: UInt8Array = field(init=False)

    def __post_init__(self) -> None:
        self.covered = np.zeros((self.height, self.width), dtype=np.float32)
        self.most = np.zeros((self.height, self.width), dtype=np.float32)
        self.hue = np.zeros((self.height, self.width), dtype=np.uint8)


def fill_layer(layer: Layer, edges_px: Edges, hue: UInt8Array) -> None:
    """Puts rectangles (shape (n,), clipped to the image here) into a layer."""
    _fill(layer.covered, layer.most, layer.hue, *edges_px, hue)


def compose(image: Image, layers: tuple[Layer, Layer, Layer], palette: NDArray[np.uint32]) -> None:
    """Writes layers into the image.

    Args:
        image: Is overwritten.
        layers: Where memory is (elsewhere the background shows), where a whole segment is free, and blocks.
        palette: Background, what is free in a whole free segment, pale and strong of the hatching of all else that is
            free; then one colour per hue.
    """
    segments, releasable, blocks = layers
    _compose(image, segments.covered, releasable.covered, (blocks.covered, blocks.hue), palette)


def warm_up() -> None:
    """Runs every kernel once on next to nothing, with the array types that pictures use."""
    layer, edges = Layer(2, 2), np.zeros(1, dtype=np.float64)
    fill_layer(layer, (edges, edges + 1, edges, edges + 1), np.zeros(1, dtype=np.uint8))
    compose(np.zeros((2, 2), dtype=np.uint32), (layer, layer, layer), np.zeros(16, dtype=np.uint32))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill(covered: Any, most: Any, hue: Any, left: Any, right: Any, top: Any, bottom: Any, hues: Any) -> Any:
    height, width = covered.shape
    for item in range(len(left)):
        x0, x1 = max(left[item], 0.0), min(right[item], np.float64(width))
        y0, y1 = max(top[item], 0.0), min(bottom[item], np.float64(height))
        if x1 <= x0 or y1 <= y0:
            continue
        last_x, last_y = min(np.int64(np.ceil(x1)), width), min(np.int64(np.ceil(y1)), height)
        for row in range(np.int64(y0), last_y):
            down = min(y1, row + 1.0) - max(y0, np.float64(row))
            for column in range(np.int64(x0), last_x):
                share = down * (min(x1, column + 1.0) - max(x0, np.float64(column)))
                covered[row, column] += share
                if share > most[row, column]:
                    most[row, column] = share
                    hue[row, column] = hues[item]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _mixed(above: Any, below: Any, ratio: Any) -> Any:
    share = np.int64(ratio * 256.0)
    result = np.int64(0xFF)
    for shift in (16, 8, 0):
        high = (np.int64(above) >> shift) & 0xFF
        low = (np.int64(below) >> shift) & 0xFF
        result = (result << 8) | (low + (((high - low) * share) >> 8))
    return np.uint32(result)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _compose(image: Any, segments: Any, releasable: Any, blocks: Any, palette: Any) -> Any:
    covered, hue = blocks
    height, width = image.shape
    for row in range(height):
        for column in range(width):
            share = covered[row, column]
            if share >= 1.0:  # most pixels: nothing to mix
                image[row, column] = palette[4 + hue[row, column]]
                continue
            below = palette[0]
            if segments[row, column] > 0.0:
                if releasable[row, column] > 0.5:
                    free = palette[1]
                elif (row + column) % HATCH_PX < HATCH_LINE_PX:
                    free = palette[3]
                else:
                    free = palette[2]
                below = free if segments[row, column] >= 1.0 else _mixed(free, below, segments[row, column])
            if share > 0.0:
                strength = MIN_STRENGTH_RATIO + (1.0 - MIN_STRENGTH_RATIO) * share
                below = _mixed(palette[4 + hue[row, column]], below, strength)
            image[row, column] = below
