"""Three plots over the runs of a benchmark: tokens per second, ms per token, peak memory; failed gates marked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QColor, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from profiler_gui.panels.history.words import QUANTITIES, Quantity, entry_text
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's workloads are imported after the first paint
    from engine.workloads.bench.history import HistoryEntry

DOT_PX, FAILED_PX = 8, 15
NEAR_PX = 12.0
HEADROOM_RATIO = 0.35
"""Space above and below the values, as a share of their spread: a change of a few percent is to be seen as one."""


class _QuantityAxis(pg.AxisItem):
    def __init__(self, quantity: Quantity) -> None:
        super().__init__("left")
        self._quantity = quantity
        self.enableAutoSIPrefix(False)

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the numbers as texts."""
        return [self._quantity.text(value) if value >= 0 else "" for value in values]


class _RunAxis(pg.AxisItem):
    """Runs one after another, or moments, in UTC."""

    def __init__(self, *, has_texts: bool) -> None:
        super().__init__("bottom")
        self.setStyle(showValues=has_texts)
        self.moments: Sequence[datetime] = ()
        self.is_by_time = False

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the moments as texts."""
        if self.is_by_time:
            form = "%Y-%m-%d" if spacing >= 86_400 else "%m-%d %H:%M"
            return [datetime.fromtimestamp(value, UTC).strftime(form) for value in values]
        return [
            self.moments[int(value)].strftime("%m-%d %H:%M")
            if float(value).is_integer() and 0 <= value < len(self.moments)
            else ""
            for value in values
        ]


class BenchmarkPlots(pg.GraphicsLayoutWidget):
    """The plots of one scenario's runs.

    Signals:
        run_chosen: Number of the run that was clicked.
    """

    run_chosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._entries: tuple[HistoryEntry, ...] = ()
        self._is_by_time = False
        self._selected = -1
        self.setAccessibleName(tr("Tokens per second, ms per token and peak memory over the runs"))
        self._axes: list[_RunAxis] = []
        self.plots = [self._add_plot(row, quantity) for row, quantity in enumerate(QUANTITIES)]
        self._lines = [plot.plot() for plot in self.plots]
        self._failed = [pg.ScatterPlotItem(size=FAILED_PX, symbol="x", pxMode=True) for _ in QUANTITIES]
        self._marks = [pg.InfiniteLine(angle=90) for _ in QUANTITIES]
        for plot, failed, mark in zip(self.plots, self._failed, self._marks, strict=True):
            plot.addItem(failed)
            plot.addItem(mark, ignoreBounds=True)
            mark.hide()
        self.scene().sigMouseMoved.connect(self._hover)
        self.scene().sigMouseClicked.connect(self._click)
        theme.changed.connect(self._draw)
        self._draw()

    def _add_plot(self, row: int, quantity: Quantity) -> Any:
        axis = _QuantityAxis(quantity)
        self._axes.append(_RunAxis(has_texts=row == len(QUANTITIES) - 1))
        plot = self.addPlot(row=row, col=0, axisItems={"left": axis, "bottom": self._axes[-1]}, enableMenu=False)
        plot.hideButtons()
        plot.setMouseEnabled(x=True, y=False)
        axis.setWidth(self.fontMetrics().horizontalAdvance("0000.00 MiB") + 18)
        axis.setLabel(tr(quantity.title))
        if row:
            plot.setXLink(self.getItem(0, 0))
        return plot

    def show_runs(self, entries: Sequence[HistoryEntry], *, by_time: bool) -> None:
        """Shows runs of one scenario, the oldest first, one after another or where their moments are."""
        self._entries, self._is_by_time, self._selected = tuple(entries), by_time, -1
        for axis in self._axes:
            axis.moments, axis.is_by_time = [entry.recorded_at for entry in entries], by_time
            axis.picture = None
        self._draw()
        xs = self._xs()
        if len(xs):
            margin = max((xs[-1] - xs[0]) * 0.03, 0.5)
            self.plots[0].setXRange(xs[0] - margin, xs[-1] + margin, padding=0)

    def mark(self, number: int) -> None:
        """Marks a run; −1 for none."""
        self._selected = number
        xs = self._xs()
        for line in self._marks:
            line.setVisible(0 <= number < len(xs))
            if 0 <= number < len(xs):
                line.setPos(xs[number])

    @property
    def failed_count(self) -> int:
        """How many runs are marked as failed."""
        return len(self._failed[0].data)

    def _xs(self) -> Any:
        if self._is_by_time:
            return np.array([entry.recorded_at.timestamp() for entry in self._entries])
        return np.arange(len(self._entries), dtype=np.float64)

    def _draw(self) -> None:
        colours = self._theme.colours
        self.setBackground(colours.background)
        xs = self._xs()
        failed = np.array([not entry.passed for entry in self._entries], dtype=np.bool_)
        for plot, quantity, line, crosses, mark in zip(
            self.plots, QUANTITIES, self._lines, self._failed, self._marks, strict=True
        ):
            for side in ("left", "bottom"):
                plot.getAxis(side).setPen(QColor(colours.grid))
                plot.getAxis(side).setTextPen(QColor(colours.text))
            found = [quantity.value(entry) for entry in self._entries]
            values = np.array([np.nan if value is None else value for value in found])
            line.setData(xs, values, connect="finite")
            line.setPen(_pen(colours.candidate))
            line.setSymbol("o")
            line.setSymbolSize(DOT_PX)
            line.setSymbolPen(None)
            line.setSymbolBrush(QColor(colours.candidate))
            crosses.setData(xs[failed], values[failed])
            crosses.setPen(_pen(colours.error, 2.5))
            crosses.setBrush(QColor(colours.error))
            mark.setPen(_pen(colours.hover, 1.0, Qt.PenStyle.DotLine))
            _fit(plot, values[np.isfinite(values)])

    def run_at(self, point: QPointF) -> int:
        """Returns the run nearest to a point of the scene, −1 for none near it."""
        box = next((plot.getViewBox() for plot in self.plots if plot.sceneBoundingRect().contains(point)), None)
        xs = self._xs()
        if box is None or not len(xs):
            return -1
        number = int(np.abs(xs - box.mapSceneToView(point).x()).argmin())
        x_px = box.mapViewToScene(QPointF(float(xs[number]), 0.0)).x()
        return number if abs(x_px - point.x()) <= NEAR_PX else -1

    def _hover(self, point: QPointF) -> None:
        number = self.run_at(point)
        if number < 0:
            QToolTip.hideText()
        else:
            QToolTip.showText(self.mapToGlobal(self.mapFromScene(point)), entry_text(self._entries[number]), self)

    def _click(self, event: Any) -> None:
        number = self.run_at(event.scenePos())
        if number >= 0:
            self.run_chosen.emit(number)


def _fit(plot: Any, values: Any) -> None:
    """Leaves room above and below the values, and shows no noise of a thousandth as if it were a mountain."""
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    room = max((high - low) * HEADROOM_RATIO, abs(high) * 0.05, 1e-9)
    plot.setYRange(max(low - room, 0.0), high + room, padding=0)


def _pen(colour: str, width_px: float = 1.5, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    pen = QPen(QColor(colour), width_px, style)
    pen.setCosmetic(True)
    return pen
