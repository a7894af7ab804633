"""The whole trace in a strip, in the order of the rows, with the part in view as a window that can be dragged."""

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from profiler_gui.session.session import Session
from profiler_gui.timeline.canvas import TimelineCanvas
from profiler_gui.timeline.layout import Row, RowKind
from profiler_gui.timeline.palette import slice_palette
from profiler_gui.timeline.raster import Columns, fill_columns, paint_columns
from profiler_gui.timeline.state import TimelineState
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.time_axis import TimeScale
from profiler_gui.toolkit.translations import tr

HEIGHT_PX = 44
_MIN_WINDOW_PX = 8.0
_EDGE_PX = 5.0
_MIN_LINE_PX = 2


class Minimap(QWidget):
    """Shows where the view is; drag the window, its edges, or a new one."""

    def __init__(
        self,
        session: Session,
        state: TimelineState,
        canvas: TimelineCanvas,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._state = state
        self._canvas = canvas
        self._theme = theme
        self._pixels = np.empty((0, 0), dtype=np.uint32)
        self._image = QImage()
        self._is_stale = True
        self._drag: tuple[str, int] | None = None
        self.setFixedHeight(HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Overview of the whole trace"))
        for signal in (
            session.document_changed,
            session.rank_changed,
            canvas.lanes_changed,
            state.layout_changed,
            theme.changed,
        ):
            signal.connect(self._redraw)
        session.viewport_changed.connect(self.update)

    @property
    def scale(self) -> TimeScale:
        """Time to x, over the whole trace."""
        limits = self._session.limits
        return TimeScale(limits.start_ns, limits.end_ns, max(self.width(), 1))

    @property
    def view_box(self) -> QRectF:
        """Where the part in view is, wide enough to be seen and held."""
        viewport, scale = self._session.viewport, self.scale
        left_px, right_px = scale.x_px(viewport.start_ns), scale.x_px(viewport.end_ns)
        width_px = max(right_px - left_px, _MIN_WINDOW_PX)
        left_px = min(max((left_px + right_px - width_px) / 2, 0), max(self.width() - width_px, 0))
        return QRectF(left_px, 0, width_px, HEIGHT_PX - 1)

    def sizeHint(self) -> QSize:
        """Qt: a strip."""
        return QSize(400, HEIGHT_PX)

    def _redraw(self) -> None:
        self._is_stale = True
        self.update()

    def _rows(self) -> list[Row]:
        return [row for row in self._state.layout.rows if row.lane_count and row.node.kind is not RowKind.COUNTER]

    def _draw(self) -> None:
        """Draws the outermost lane of as many rows as there is room for, evenly chosen from top to bottom."""
        ratio = self.devicePixelRatioF()
        width, height = round(self.width() * ratio), round(HEIGHT_PX * ratio)
        palette = slice_palette(self._theme.colours)
        self._pixels = np.full((height, width), palette.background, dtype=np.uint32)
        columns = Columns(width)
        limits = self._session.limits
        rows = self._rows()
        room = height // round(_MIN_LINE_PX * ratio)
        shown = rows if len(rows) <= room else [rows[index * len(rows) // room] for index in range(room)]
        for place, row in enumerate(shown):
            lanes = self._canvas.lanes_of(row)
            if lanes:
                fill_columns(lanes[0], limits.start_ns, limits.end_ns, columns, 1e12)
                top, bottom = place * height // len(shown), (place + 1) * height // len(shown)
                gap = 1 if bottom - top > 2 else 0
                paint_columns(self._pixels, top, bottom - gap, columns, palette.fill, palette.background)
        self._image = QImage(self._pixels.data, width, height, self._pixels.strides[0], QImage.Format.Format_RGB32)
        self._image.setDevicePixelRatio(ratio)
        self._is_stale = False

    # Qt's overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints the strip, dims what is out of view and frames the window."""
        painter = QPainter(self)
        colours = self._theme.colours
        if self._session.trace is None:
            painter.fillRect(self.rect(), QColor(colours.background))
            painter.end()
            return
        if self._is_stale or self._image.devicePixelRatio() != self.devicePixelRatioF():
            self._draw()
        painter.drawImage(QPointF(0, 0), self._image)
        window = self.view_box
        shade = QColor(colours.background)
        shade.setAlpha(150)
        painter.fillRect(QRectF(0, 0, window.left(), HEIGHT_PX), shade)
        painter.fillRect(QRectF(window.right(), 0, self.width() - window.right(), HEIGHT_PX), shade)
        painter.setPen(QPen(QColor(colours.range), 2))
        painter.drawRect(window.adjusted(1, 1, -1, -1))
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Qt: another width."""
        self._redraw()
        super().resizeEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Qt: takes hold of the window, of one of its edges, or jumps to where there is none."""
        if event.button() != Qt.MouseButton.LeftButton or self._session.trace is None:
            return
        x_px, window = event.position().x(), self.view_box
        time_ns = self.scale.time_ns(x_px)
        viewport = self._session.viewport
        if abs(x_px - window.left()) <= _EDGE_PX and window.width() > 3 * _EDGE_PX:
            self._drag = ("start", viewport.end_ns)
        elif abs(x_px - window.right()) <= _EDGE_PX and window.width() > 3 * _EDGE_PX:
            self._drag = ("end", viewport.start_ns)
        else:
            if not window.contains(event.position()):
                half_ns = viewport.duration_ns // 2
                self._session.show_range(time_ns - half_ns, time_ns - half_ns + viewport.duration_ns, "minimap")
            self._drag = ("move", time_ns - self._session.viewport.start_ns)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Qt: moves the window or one edge of it."""
        if self._drag is None:
            return
        kind, anchor_ns = self._drag
        time_ns = self.scale.time_ns(event.position().x())
        if kind == "move":
            self._session.pan(time_ns - anchor_ns - self._session.viewport.start_ns, "minimap")
        elif time_ns != anchor_ns:
            start_ns, end_ns = sorted((time_ns, anchor_ns))
            self._session.show_range(start_ns, end_ns, "minimap")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Qt: lets go."""
        self._drag = None
