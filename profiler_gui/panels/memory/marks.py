"""What lies over and under the lines of the memory plot: peak, limit, cursor, the selected and the shown stretch."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPen

from engine.core.number_format import format_bytes
from profiler_gui.panels.memory.words import mib_text
from profiler_gui.session.viewport import Viewport
from profiler_gui.toolkit.theme import Colours
from profiler_gui.toolkit.time_axis import time_text
from profiler_gui.toolkit.translations import tr


class PlotMarks:
    """The marks of one plot; positions inside are ns from the start of the view.

    Args:
        plot: A pyqtgraph PlotWidget.
    """

    def __init__(self, plot: Any) -> None:
        self._viewport = pg.LinearRegionItem(movable=False)
        self._range = pg.LinearRegionItem(movable=False)
        self._limit = pg.InfiniteLine(angle=0)
        self._cursor = pg.InfiniteLine(angle=90)
        self._limit_text = pg.TextItem(anchor=(1, 1))
        self._peak = pg.ScatterPlotItem(symbol="d", size=11)
        self._peak_text = pg.TextItem()
        self._viewport.setZValue(-20)
        self._range.setZValue(-10)
        for item in (
            self._viewport,
            self._range,
            self._limit,
            self._cursor,
            self._limit_text,
            self._peak,
            self._peak_text,
        ):
            item.setVisible(False)
            plot.addItem(item, ignoreBounds=True)

    @property
    def peak_text(self) -> str:
        """What stands beside the peak, "" where it is not in view."""
        return str(self._peak_text.toPlainText()) if self._peak_text.isVisible() else ""

    @property
    def range_ns(self) -> tuple[float, float] | None:
        """The marked range from the start of the view; None where none is."""
        return self._range.getRegion() if self._range.isVisible() else None

    def show_limit(self, limit_bytes: int | None, top_bytes: float, view: Viewport) -> None:
        """Draws the device's limit, or says at the upper edge that it lies above; nothing for an unknown one.

        Args:
            limit_bytes: What the device holds.
            top_bytes: Upper end of the axis.
            view: The stretch of time in view.
        """
        is_in_view = limit_bytes is not None and limit_bytes <= top_bytes
        self._limit.setVisible(is_in_view)
        self._limit_text.setVisible(limit_bytes is not None)
        if limit_bytes is None:
            return
        self._limit.setPos(limit_bytes)
        text = tr("device: {size}", size=format_bytes(limit_bytes))
        self._limit_text.setText(text if is_in_view else f"{text} ↑")
        self._limit_text.setAnchor((1, 1 if is_in_view else 0))
        self._limit_text.setPos(view.duration_ns, limit_bytes if is_in_view else top_bytes)

    @property
    def limit_text(self) -> str:
        """What stands beside the limit, "" where it is unknown."""
        return str(self._limit_text.toPlainText()) if self._limit_text.isVisible() else ""

    def show_peak(self, time_ns: int | None, size_bytes: int | None, view: Viewport) -> None:
        """Marks the peak where it is in view."""
        is_in_view = time_ns is not None and size_bytes is not None and view.start_ns <= time_ns < view.end_ns
        for item in (self._peak, self._peak_text):
            item.setVisible(is_in_view)
        if time_ns is None or size_bytes is None or not is_in_view:
            return
        x = time_ns - view.start_ns
        self._peak.setData([x], [size_bytes])
        moment = time_text(time_ns, resolution_ns=1000)
        self._peak_text.setText(tr("peak {size} at {moment}", size=mib_text(size_bytes), moment=moment))
        self._peak_text.setAnchor((1 if x > view.duration_ns * 0.6 else 0, 1))
        self._peak_text.setPos(x, size_bytes)

    def show_viewport(self, shown: Viewport | None, view: Viewport) -> None:
        """Shades the stretch the timeline shows, or none."""
        self._viewport.setVisible(shown is not None)
        if shown is not None:
            self._viewport.setRegion((shown.start_ns - view.start_ns, shown.end_ns - view.start_ns))

    def show_range(self, span_ns: tuple[int, int] | None, view: Viewport) -> None:
        """Shades the selected stretch, or none."""
        self._range.setVisible(span_ns is not None)
        if span_ns is not None:
            self._range.setRegion((span_ns[0] - view.start_ns, span_ns[1] - view.start_ns))

    def show_cursor(self, time_ns: int | None, view: Viewport) -> None:
        """Draws the time under the pointer, or none."""
        self._cursor.setVisible(time_ns is not None)
        if time_ns is not None:
            self._cursor.setPos(time_ns - view.start_ns)

    def recolour(self, colours: Colours) -> None:
        """Takes the theme's colours."""
        for band, colour, alpha in ((self._viewport, colours.faint, 26), (self._range, colours.range, 60)):
            shade = QColor(colour)
            shade.setAlpha(alpha)
            band.setBrush(shade)
            for line in band.lines:
                line.setPen(cosmetic_pen(colour))
        self._limit.setPen(cosmetic_pen(colours.limit, 2, Qt.PenStyle.DashLine))
        self._limit_text.setColor(QColor(colours.limit))
        self._cursor.setPen(cosmetic_pen(colours.hover))
        self._peak.setPen(cosmetic_pen(colours.background))
        self._peak.setBrush(QColor(colours.text))
        self._peak_text.setColor(QColor(colours.text))


def cosmetic_pen(colour: str, width_px: float = 1, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """Returns a pen whose width is of pixels, whatever the scale of the plot."""
    pen = QPen(QColor(colour), width_px, style)
    pen.setCosmetic(True)
    return pen
