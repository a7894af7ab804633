"""The drawing of requests as rows inside a plot."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from profiler_gui.panels.serving.rows import RequestRows, shown_rows, slices_of
from profiler_gui.session.services import NOBODY
from profiler_gui.toolkit.theme import Colours, Theme

GAP_RATIO = 0.14
"""Space between two rows, as a share of a row, where rows are tall enough for one."""
TALL_ROW_PX = 5.0


def phase_colours(colours: Colours) -> tuple[str, str, str, str]:
    """Returns the colours of queued, prefill, decode and preempted."""
    return colours.wait, colours.computing, colours.allocated, colours.error


class RequestLanes(pg.GraphicsObject):
    """Rows of requests; coordinates are ns and rows. Draws as many rows as there are pixels, whatever there are."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: RequestRows | None = None
        self._selected = NOBODY

    @property
    def rows(self) -> RequestRows | None:
        """What is drawn."""
        return self._rows

    def set_rows(self, rows: RequestRows | None) -> None:
        """Draws other requests."""
        self.prepareGeometryChange()
        self._rows = rows
        self.informViewBoundsChanged()
        self.update()

    def select(self, request: int) -> None:
        """Outlines a request; ``NOBODY`` for none."""
        self._selected = request
        self.update()

    def boundingRect(self) -> QRectF:
        """Qt: all rows over the whole time."""
        rows = self._rows
        return QRectF(0, 0, rows.span_ns, len(rows)) if rows is not None else QRectF()

    def viewRangeChanged(self) -> None:
        """pyqtgraph: another stretch is in view."""
        self.update()

    def viewTransformChanged(self) -> None:
        """pyqtgraph: the plot has another size."""
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Qt: paints what is in view."""
        box = self.getViewBox()
        if self._rows is None or not len(self._rows) or box is None:
            return
        (start_ns, end_ns), (top, bottom) = box.viewRange()
        ns_per_px, rows_per_px = box.viewPixelSize()
        shown, size = shown_rows(self._rows, top, bottom, max(round(box.height()), 1))
        slices = slices_of(self._rows, shown, size, start_ns, end_ns, ns_per_px)
        gap = GAP_RATIO if rows_per_px * TALL_ROW_PX < 1 else 0.0
        height = max(size, rows_per_px) - 2 * gap
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)
        for kind, colour in enumerate(phase_colours(self._theme.colours)):
            chosen = slices.kind == kind
            columns = (column[chosen].tolist() for column in (slices.start_ns, slices.top + gap, slices.width_ns))
            painter.setBrush(QColor(colour))
            # At most as many rows as pixels: a few thousand rectangles.
            painter.drawRects([QRectF(x, y, width, height) for x, y, width in zip(*columns, strict=True)])
        self._paint_selected(painter, start_ns, end_ns)

    def _paint_selected(self, painter: QPainter, start_ns: float, end_ns: float) -> None:
        rows = self._rows
        if rows is None or not 0 <= self._selected < len(rows):
            return
        pen = QPen(QColor(self._theme.colours.selection), 2)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(start_ns, float(rows.row[self._selected]), end_ns - start_ns, 1.0))
