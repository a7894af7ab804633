"""Latency over rate: how fast a service may be asked before its users wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPen
from PySide6.QtWidgets import QLabel, QPushButton, QToolTip, QVBoxLayout, QWidget

from engine.core.number_format import format_duration_ns
from profiler_gui.panels.serving.axes import DurationAxis
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.serving.latency import Spread
    from profiler_gui.session.serving_runs import RatePoint

NEAR_PX = 12.0


class RateCurve(QWidget):
    """Mean and p99 of whole requests over the rate they come at: run A grey, the run with toggles coloured."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._points: tuple[RatePoint, ...] = ()
        self.sweep_button = QPushButton(tr("Find Latency over &Rate"))
        self.sweep_button.setToolTip(tr("Serves the same requests at ever higher rates, as they come at random"))
        self.state = QLabel()
        self.state.setWordWrap(True)
        self.state.setAccessibleName(tr("What latency over rate says"))
        self.plot: Any = pg.PlotWidget(axisItems={"left": DurationAxis(), "bottom": pg.AxisItem("bottom")})
        self.plot.setAccessibleName(tr("Latency over rate"))
        self.plot.getPlotItem().hideButtons()
        self.plot.setMenuEnabled(False)
        self.plot.setMouseEnabled(x=False, y=False)
        self.plot.setLabel("bottom", tr("Requests asked per second"))
        self.plot.setLabel("left", tr("Whole request"))
        self.plot.getAxis("left").setWidth(self.fontMetrics().horizontalAdvance("000.000 ms") + 18)
        self._legend = self.plot.addLegend(offset=(10, 5))
        names = {"before": tr("mean, as it is"), "mean": tr("mean"), "p99": "p99"}
        self._lines = {key: self.plot.plot(name=name) for key, name in names.items()}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(self.sweep_button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.state)
        layout.addWidget(self.plot, 1)
        self.plot.scene().sigMouseMoved.connect(self._hover)
        theme.changed.connect(self._recolour)
        self._recolour()
        self.show_points((), ())

    @property
    def points(self) -> tuple[RatePoint, ...]:
        """What is drawn of the run in view."""
        return self._points

    def show_points(self, points: Sequence[RatePoint], before: Sequence[RatePoint]) -> None:
        """Shows points of the run in view, and those of the service as it is where these are others."""
        self._points = tuple(points)
        drawn = (("before", before, "mean_ns"), ("mean", points, "mean_ns"), ("p99", points, "p99_ns"))
        for key, chosen, name in drawn:
            found = [(point.rate_per_s, getattr(point.analysis.e2e, name)) for point in chosen if point.analysis.e2e]
            self._lines[key].setData([rate for rate, _ in found], [latency for _, latency in found])
        self.state.setText(curve_text(self._points))
        self.plot.setAccessibleDescription("\n".join(map(point_text, self._points)))

    def _recolour(self) -> None:
        colours = self._theme.colours
        self.plot.setBackground(colours.background)
        for side in ("left", "bottom"):
            self.plot.getAxis(side).setPen(QColor(colours.grid))
            self.plot.getAxis(side).setTextPen(QColor(colours.text))
        self._legend.setLabelTextColor(QColor(colours.text))
        for key, colour, style in (
            ("before", colours.baseline, Qt.PenStyle.SolidLine),
            ("mean", colours.candidate, Qt.PenStyle.SolidLine),
            ("p99", colours.candidate, Qt.PenStyle.DashLine),
        ):
            pen = QPen(QColor(colour), 2, style)
            pen.setCosmetic(True)
            line = self._lines[key]
            line.setPen(pen)
            line.setSymbol("o")
            line.setSymbolSize(6)
            line.setSymbolPen(None)
            line.setSymbolBrush(QColor(colour))

    def _hover(self, point: QPointF) -> None:
        box = self.plot.getPlotItem().getViewBox()
        near = [
            item
            for item in self._points
            if item.analysis.e2e
            and abs(box.mapViewToScene(QPointF(item.rate_per_s, item.analysis.e2e.mean_ns)).x() - point.x()) < NEAR_PX
        ]
        if near and box.sceneBoundingRect().contains(point):
            QToolTip.showText(self.plot.mapToGlobal(self.plot.mapFromScene(point)), point_text(near[0]), self.plot)
        else:
            QToolTip.hideText()


def point_text(point: RatePoint) -> str:
    """Returns what one point says."""
    return tr(
        "{rate} requests per second: whole request {mean} on average, {p99} at the 99th percentile",
        rate=f"{point.rate_per_s:,.2f}",
        mean=_of(point.analysis.e2e, lambda spread: spread.mean_ns),
        p99=_of(point.analysis.e2e, lambda spread: spread.p99_ns),
    )


def curve_text(points: Sequence[RatePoint]) -> str:
    """Returns what the points say of the highest rate without much waiting: mean latency at most twice the lowest."""
    known = [(point, point.analysis.e2e) for point in points if point.analysis.e2e is not None]
    if len(known) < 2:
        return ""
    lowest_ns = min(spread.mean_ns for _, spread in known)
    held = max((point for point, spread in known if spread.mean_ns <= 2 * lowest_ns), key=lambda item: item.rate_per_s)
    return tr(
        "Up to {rate} requests per second a request takes at most twice as long as unhurried ({latency}).",
        rate=f"{held.rate_per_s:,.2f}",
        latency=format_duration_ns(lowest_ns),
    )


def _of(spread: Spread | None, value: Any) -> str:
    return "–" if spread is None else format_duration_ns(value(spread))
