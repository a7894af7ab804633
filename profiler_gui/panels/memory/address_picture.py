"""An address map as a picture: rectangles in the stack, ready to be painted at any zoom; no widgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QImage

from profiler_gui.panels.memory.address_raster import Layer, compose, fill_layer
from profiler_gui.panels.memory.address_space import releasable_spans, stacked_space
from profiler_gui.toolkit.fills import mixed
from profiler_gui.toolkit.theme import Colours

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.core.arrays import Int64Array, UInt8Array
    from engine.runtime.addresses.address_map import AddressMap
    from engine.runtime.addresses.misses import MissReport

HUE_COUNT = 6
"""Older than the log, persistent, step, temporary, long-lived, unknown."""
OLDER, UNKNOWN = 0, 5
MIN_WIDTH_EVENTS = 4.0
MIN_HEIGHT_BYTES = 4096.0
MAX_CARETS = 2_000


@dataclass(frozen=True, slots=True)
class View:
    """A part of the map: requests ``left``…``right``, places in the stack ``low``…``high`` (bytes)."""

    left: float
    right: float
    low: float
    high: float

    def zoomed(self, event: float, position: float, event_factor: float, position_factor: float) -> View:
        """Returns the view made wider or higher by factors, with a place staying where it is."""
        return View(
            event - (event - self.left) * event_factor,
            event + (self.right - event) * event_factor,
            position - (position - self.low) * position_factor,
            position + (self.high - position) * position_factor,
        )

    def moved(self, events: float, bytes_up: float) -> View:
        """Returns the view moved."""
        return View(self.left + events, self.right + events, self.low + bytes_up, self.high + bytes_up)

    def inside(self, whole: View) -> View:
        """Returns the view with at least the least size and no part outside ``whole``."""
        left, right = _clamped(self.left, self.right, whole.left, whole.right, MIN_WIDTH_EVENTS)
        low, high = _clamped(self.low, self.high, whole.low, whole.high, MIN_HEIGHT_BYTES)
        return View(left, right, low, high)


def _clamped(low: float, high: float, lowest: float, highest: float, least: float) -> tuple[float, float]:
    length = min(max(high - low, least), highest - lowest)
    start = min(max((low + high - length) / 2, lowest), highest - length)
    return start, start + length


class AddressPicture:
    """A map with everything that painting needs, computed once.

    Args:
        mapped: The map.
    """

    def __init__(self, mapped: AddressMap) -> None:
        self.mapped = mapped
        segments, blocks = mapped.segments, mapped.blocks
        start = np.concatenate((segments.address, blocks.address))
        size = np.concatenate((segments.size_bytes, blocks.size_bytes))
        self.space = stacked_space(start, size)
        self._block_low = self.space.position_of(blocks.address)
        self._segment_low = self.space.position_of(segments.address)
        self._releasable = releasable_spans(mapped)
        self._hue = _hues(mapped)

    @property
    def whole(self) -> View:
        """Everything."""
        return View(0.0, float(max(self.mapped.event_count, 1)), 0.0, float(max(self.space.total_bytes, 1)))

    def render(self, view: View, size: QSize, colours: Colours) -> QImage:
        """Returns the picture of a part of the map in device pixels."""
        width, height = size.width(), size.height()
        blocks, segments = self.mapped.blocks, self.mapped.segments
        row, begin, end = self._releasable
        layers: list[Layer] = []
        for first, last, low, length, hue in (
            (segments.first_event, segments.last_event, self._segment_low, segments.size_bytes, None),
            (begin, end, self._segment_low[row], segments.size_bytes[row], None),
            (blocks.first_event, blocks.last_event, self._block_low, blocks.size_bytes, self._hue),
        ):
            layer = Layer(height, width)
            self._fill(layer, view, (first, last, low, length), hue)
            layers.append(layer)
        pixels = np.empty((height, width), dtype=np.uint32)
        compose(pixels, (layers[0], layers[1], layers[2]), _palette(colours))
        image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        return image.copy()  # the pixels go with this function

    def _fill(
        self,
        layer: Layer,
        view: View,
        rectangles: tuple[Int64Array, Int64Array, Int64Array, Int64Array],
        hue: UInt8Array | None,
    ) -> None:
        first, last, low, length = rectangles
        seen = (first < view.right) & (last > view.left) & (low < view.high) & (low + length > view.low)
        rows = np.flatnonzero(seen)
        x_scale = layer.width / (view.right - view.left)
        y_scale = layer.height / (view.high - view.low)
        left, right = ((column[rows] - view.left) * x_scale for column in (first, last))
        bottom, top = ((view.high - column) * y_scale for column in (low[rows], low[rows] + length[rows]))
        colours = np.zeros(len(rows), dtype=np.uint8) if hue is None else hue[rows]
        fill_layer(layer, (left, right, top, bottom), colours)

    def block_at(self, event: int, position: int) -> int | None:
        """Returns the block at a request and a place in the stack; None where none is."""
        blocks = self.mapped.blocks
        held = (blocks.first_event <= event) & (blocks.last_event > event)
        there = held & (self._block_low <= position) & (self._block_low + blocks.size_bytes > position)
        rows = np.flatnonzero(there)
        return int(rows[-1]) if len(rows) else None

    def is_grave(self, miss: int) -> bool:
        """Returns whether the cache had to be emptied, or memory ran out, rather than only the driver asked."""
        from engine.runtime.allocators.interface import DriverAction

        return int(self.mapped.misses.action[miss]) in (DriverAction.RETRY, DriverAction.OUT_OF_MEMORY)

    def misses_shown(self, view: View, width_px: int) -> list[int]:
        """Returns the misses in view, at most one per pixel, the grave ones first among those of one pixel."""
        misses = self.mapped.misses
        rows = np.flatnonzero((misses.event >= view.left) & (misses.event < view.right))
        pixel = ((misses.event[rows] - view.left) / (view.right - view.left) * width_px).astype(np.int64)
        grave = (
            np.array([self.is_grave(row) for row in rows.tolist()], dtype=np.bool_) if len(rows) < MAX_CARETS else None
        )
        order = np.lexsort((rows, ~grave, pixel)) if grave is not None else np.arange(len(rows))
        _, first = np.unique(pixel[order], return_index=True)
        return [int(row) for row in rows[order[first]]]

    def ruler_position(self, report: MissReport) -> int:
        """Returns where the size of a miss is laid in the stack: at the largest hole it may be compared with."""
        from engine.runtime.addresses.misses import Refusal

        fitting = [hole for hole in report.holes if hole.refusal is Refusal.TOO_SMALL] or list(report.holes)
        if not fitting:
            return 0
        return int(self.space.position_of(np.array([fitting[0].address], dtype=np.int64))[0])


def _hues(mapped: AddressMap) -> UInt8Array:
    tags = mapped.blocks.tag
    hue = np.where((tags >= 0) & (tags < HUE_COUNT - 2), tags + 1, UNKNOWN)
    if not mapped.has_classes:
        hue = np.full(len(tags), UNKNOWN)
    hue = np.where((mapped.blocks.first_event < 0) & (tags < 0), OLDER, hue)
    return hue.astype(np.uint8)


def _palette(colours: Colours) -> NDArray[np.uint32]:
    """Returns background, releasable, pale and strong hatching of stranded memory, then a colour per hue."""
    background, stranded = QColor(colours.background), QColor(colours.stranded)
    chosen = [
        background,
        mixed(QColor(colours.reserved), background, 0.75),
        mixed(stranded, background, 0.86),
        mixed(stranded, background, 0.35),
        *map(QColor, hue_colours(colours)),
    ]
    return np.array([colour.rgb() & 0xFFFFFFFF for colour in chosen], dtype=np.uint32)


def hue_colours(colours: Colours) -> tuple[str, ...]:
    """Returns the colours of classes: older, persistent, step, temporary, long-lived, unknown."""
    return (
        colours.preparing,
        colours.reserved,
        colours.allocated,
        colours.active,
        colours.memory,
        colours.allocated,
    )
