"""One frame of the timeline as an image: rows, lanes, counters, grid and names, in device pixels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtGui import QFont, QImage

from engine.core.arrays import Int64Array
from profiler_gui.timeline.counters import Counter, paint_counter
from profiler_gui.timeline.labels import MAX_LABELS, MIN_LABEL_PX, LabelAtlas, Labels
from profiler_gui.timeline.lanes import Lanes
from profiler_gui.timeline.layout import Layout, Row, RowKind, rows_between
from profiler_gui.timeline.palette import SlicePalette, mix, rgb
from profiler_gui.timeline.raster import Columns, Image, fill_columns, paint_columns
from profiler_gui.toolkit.theme import Colours
from profiler_gui.toolkit.time_axis import TimeScale, ticks

GRID_SPACING_PX = 110
"""Logical pixels between two grid lines, at least."""
_LABEL_FONT_PX = 11


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Everything a frame shows.

    Attributes:
        layout: The rows.
        scroll_px: How far the rows below the pinned ones are scrolled.
        start_ns: Left edge.
        end_ns: Right edge.
        origin_ns: What grid lines are counted from.
        lanes_of: Lanes of a row; None while they are made.
        counters: Named by index in the rows.
        names: int32, shape (events,): string id per event.
        palette: Of slices.
        colours: Of everything else.
    """

    layout: Layout
    scroll_px: int
    start_ns: int
    end_ns: int
    origin_ns: int
    lanes_of: Callable[[Row], Lanes | None]
    counters: Sequence[Counter]
    names: np.ndarray
    palette: SlicePalette
    colours: Colours


class FrameRenderer:
    """Owns the memory that frames are drawn in; one per canvas.

    Args:
        font: Family of the names in slices.
        text_of: Returns the text of a string id.
        name_count: How many string ids there are.
    """

    def __init__(self, font: QFont, text_of: Callable[[int], str], name_count: int) -> None:
        self._font = font
        self._text_of = text_of
        self._name_count = name_count
        self._pixels: Image = np.empty((0, 0), dtype=np.uint32)
        self._columns = Columns(0)
        self._atlas: LabelAtlas | None = None
        self._ratio = 0.0
        self.is_complete = True

    def render(self, scene: Scene, width_px: int, height_px: int, ratio: float) -> QImage:
        """Returns the frame; it is valid until the next call.

        ``is_complete`` afterwards says whether every name could be written (else ask for another frame).

        Args:
            scene: What to show.
            width_px: Logical width.
            height_px: Logical height.
            ratio: Device pixels per logical pixel.
        """
        self._prepare(round(width_px * ratio), round(height_px * ratio), ratio)
        self.is_complete = True
        self._pixels[:] = scene.palette.background
        edge = min(round(scene.layout.pinned_height_px * ratio), self._pixels.shape[0])
        self._paint_area(scene, self._pixels[edge:], scene.layout.rows, scene.scroll_px, ratio)
        if scene.layout.pinned:
            self._paint_area(scene, self._pixels[:edge], scene.layout.pinned, 0, ratio)
            self._pixels[max(edge - round(ratio), 0) : edge] = rgb(scene.colours.faint)
        image = QImage(
            self._pixels.data,
            self._pixels.shape[1],
            self._pixels.shape[0],
            self._pixels.strides[0],
            QImage.Format.Format_RGB32,
        )
        image.setDevicePixelRatio(ratio)
        return image

    def _prepare(self, width: int, height: int, ratio: float) -> None:
        if self._pixels.shape != (height, width):
            self._pixels = np.empty((height, width), dtype=np.uint32)
            self._columns = Columns(width)
        if self._atlas is None or ratio != self._ratio:
            font = QFont(self._font)
            font.setPixelSize(max(round(_LABEL_FONT_PX * ratio), 1))
            self._atlas = LabelAtlas(font, self._text_of, self._name_count)
            self._ratio = ratio

    def _paint_area(self, scene: Scene, image: Image, rows: Sequence[Row], scroll_px: int, ratio: float) -> None:
        if image.size == 0:
            return
        scale = TimeScale(scene.start_ns, scene.end_ns, image.shape[1])
        lines = ticks(scale, GRID_SPACING_PX * ratio, scene.origin_ns).times_ns
        xs = np.unique([min(max(int(scale.x_px(time_ns)), 0), image.shape[1] - 1) for time_ns in lines]).astype(
            np.int64
        )
        image[:, xs] = rgb(scene.colours.grid)
        sites: list[_Sites] = []
        for row in rows_between(rows, scroll_px, scroll_px + image.shape[0] / ratio):
            top = round((row.top_px - scroll_px) * ratio)
            bottom = round((row.bottom_px - scroll_px) * ratio)
            if row.node.kind is RowKind.GROUP:
                image[max(top, 0) : max(bottom, 0)] = rgb(scene.colours.alternate)
            if row.node.kind is RowKind.COUNTER:
                self._paint_counter(scene, image, row, top, bottom)
            elif row.lane_count:
                self._paint_lanes(scene, image, row, scroll_px, ratio, sites)
        self._write_names(scene, image, sites, ratio)

    def _paint_counter(self, scene: Scene, image: Image, row: Row, top: int, bottom: int) -> None:
        roles, background = scene.colours, scene.palette.background
        colors = {
            title: mix(rgb(color), background, 0.3)
            for title, color in (
                ("", roles.allocated),
                ("allocated", roles.allocated),
                ("active", roles.active),
                ("reserved", roles.reserved),
            )
        }
        counter = scene.counters[row.node.counter]
        paint_counter(image, top, bottom, counter, scene.start_ns, scene.end_ns, colors, background)

    def _paint_lanes(
        self, scene: Scene, image: Image, row: Row, scroll_px: int, ratio: float, sites: "list[_Sites]"
    ) -> None:
        lanes = scene.lanes_of(row)
        if lanes is None:
            return
        gap = max(1, round(ratio)) if row.lane_px >= 5 else 0
        columns = self._columns
        for depth, lane in enumerate(lanes[: row.lane_count]):
            top = round((row.top_px + depth * row.lane_px - scroll_px) * ratio)
            bottom = round((row.top_px + (depth + 1) * row.lane_px - scroll_px) * ratio) - gap
            if bottom <= 0 or top >= image.shape[0] or len(lane) == 0:
                continue
            count = fill_columns(lane, scene.start_ns, scene.end_ns, columns, MIN_LABEL_PX * ratio)
            paint_columns(image, top, bottom, columns, scene.palette.fill, scene.palette.background)
            if count:
                indices = columns.site_event[:count]
                edges = columns.site_px[:count].copy()
                names = scene.names[lane.events[indices]]
                sites.append(_Sites(names, lane.color[indices], edges, top, bottom - top))

    def _write_names(self, scene: Scene, image: Image, sites: "list[_Sites]", ratio: float) -> None:
        if not sites or self._atlas is None:
            return
        counts = [len(site.names) for site in sites]
        edges = np.concatenate([site.edges for site in sites])
        names: Int64Array = np.concatenate([site.names for site in sites]).astype(np.int64)
        labels = Labels(
            name=names,
            left=edges[:, 0],
            right=edges[:, 1],
            top=np.repeat(np.array([site.top for site in sites], dtype=np.int64), counts),
            height=np.repeat(np.array([site.height for site in sites], dtype=np.int64), counts),
            text=scene.palette.text[np.concatenate([site.colors for site in sites])],
        ).widest(MAX_LABELS)
        self.is_complete = self._atlas.write(image, labels, round(3 * ratio)) and self.is_complete


@dataclass(frozen=True, slots=True, eq=False)
class _Sites:
    """Slices of one lane that may carry names."""

    names: np.ndarray
    colors: np.ndarray
    edges: np.ndarray
    top: int
    height: int
