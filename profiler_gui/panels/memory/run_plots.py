"""Three plots over the steps of a run: step time, memory, and what the allocator cost; one x axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QBrush, QColor
from PySide6.QtWidgets import QToolTip, QWidget

from engine.core.number_format import format_bytes, format_count, format_duration_ns
from profiler_gui.panels.memory.axes import BytesAxis
from profiler_gui.panels.memory.marks import cosmetic_pen
from profiler_gui.toolkit.fills import mixed
from profiler_gui.toolkit.theme import Colours, Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.slowdown import Slowdown
    from engine.analyses.step_history import StepHistory

MEDIAN_STEPS = 31
"""Width of the rolling median, what a usual step takes."""
MEAN_STEPS = 61
"""Width of the rolling mean, what slow steps make of it: they come in bursts that a median does not see."""
MAX_RECORDED = 50
TOKEN_SHADES = 8
DOT_PX = 4.0
_HEIGHTS = (4, 4, 2)
"""Shares of the height."""
TICKS = ("driver", "retry", "caught")
"""What a step's stalls are named after, the gravest last."""


class DurationAxis(pg.AxisItem):
    """Durations as the rest of the window writes them."""

    def __init__(self) -> None:
        super().__init__("left")

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the durations as texts."""
        return [format_duration_ns(value) if value > 0 else "0" for value in values]


class RunPlots(pg.GraphicsLayoutWidget):
    """The plots. Steps are counted from 0, as the profiler numbers them.

    Signals:
        step_opened: 0-based step that was double-clicked.
        steps_shown: First step in view and the first one after it.
    """

    step_opened = Signal(int)
    steps_shown = Signal(int, int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._history: StepHistory | None = None
        self._slowdown: Slowdown | None = None
        self.setAccessibleName(tr("Step time, memory and allocator over the steps of the run"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.times = self._add_plot(0, DurationAxis(), tr("Step time"))
        self.memory = self._add_plot(1, BytesAxis(), tr("Memory"))
        self.stalls = self._add_plot(2, DurationAxis(), tr("Lost"))
        self.stalls.setLabel("bottom", tr("Step"))
        self._dots = pg.ScatterPlotItem(size=DOT_PX, pxMode=True)
        self._median, self._mean = pg.PlotDataItem(), pg.PlotDataItem()
        for item in (self._dots, self._median, self._mean):
            self.times.addItem(item)
        self._recorded: list[Any] = []
        self._lines = {name: pg.PlotDataItem() for name in ("reserved", "usable", "allocated")}
        self._stranded = pg.FillBetweenItem(self._lines["reserved"], self._lines["usable"])
        self._limit = pg.InfiniteLine(angle=0)
        self._beyond = pg.LinearRegionItem(orientation="horizontal", movable=False)
        for item in (self._stranded, *self._lines.values()):
            self.memory.addItem(item)
        for item in (self._beyond, self._limit):
            self.memory.addItem(item, ignoreBounds=True)
        self._ticks = {name: pg.PlotDataItem(connect="pairs") for name in TICKS}
        for item in self._ticks.values():
            self.stalls.addItem(item)
        self._onsets = [pg.InfiniteLine(angle=90) for _ in _HEIGHTS]
        for plot, line in zip((self.times, self.memory, self.stalls), self._onsets, strict=True):
            plot.addItem(line, ignoreBounds=True)
        self._onset_text = pg.TextItem(anchor=(0, 0))
        self.times.addItem(self._onset_text, ignoreBounds=True)
        self.times.getViewBox().sigXRangeChanged.connect(self._on_range)
        self.scene().sigMouseMoved.connect(self._hover)
        self.scene().sigMouseClicked.connect(self._click)
        theme.changed.connect(self._draw)

    def _add_plot(self, row: int, axis: pg.AxisItem, title: str) -> Any:
        plot = self.addPlot(row=row, col=0, axisItems={"left": axis}, enableMenu=False)
        plot.hideButtons()
        plot.setMouseEnabled(x=True, y=False)
        axis.setWidth(self.fontMetrics().horizontalAdvance("0000.00 MiB") + 12)
        axis.setLabel(title)
        axis.enableAutoSIPrefix(False)
        self.ci.layout.setRowStretchFactor(row, _HEIGHTS[row])
        if row:
            plot.setXLink(self.getItem(0, 0))
        return plot

    def set_history(self, history: StepHistory | None, slowdown: Slowdown | None) -> None:
        """Shows a run, with an onset where it slows down."""
        self._history, self._slowdown = history, slowdown
        self._draw()
        if history is not None:
            self.times.setXRange(-0.5, len(history) - 0.5, padding=0)

    def set_recorded(self, steps: Sequence[int]) -> None:
        """Marks the steps whose operators and addresses are kept."""
        for line in self._recorded:
            self.times.removeItem(line)
        pen = cosmetic_pen(self._theme.colours.link, 1.0, Qt.PenStyle.DotLine)
        options = {"position": 0.02, "anchors": [(0, 1), (1, 1)], "color": QColor(self._theme.colours.link)}
        self._recorded = [
            pg.InfiniteLine(pos=step, angle=90, pen=pen, label=tr("recorded"), labelOpts=options)
            for step in steps[:MAX_RECORDED]
        ]
        for line in self._recorded:
            self.times.addItem(line, ignoreBounds=True)

    @property
    def onset_text(self) -> str:
        """What stands at the onset; "" where there is none."""
        return str(self._onset_text.toPlainText()) if self._onset_text.isVisible() else ""

    def ticks_of(self, name: str) -> int:
        """Returns how many steps have a tick of a kind."""
        x, _ = self._ticks[name].getOriginalDataset()
        return 0 if x is None else len(x) // 2

    def _draw(self) -> None:
        history, colours = self._history, self._theme.colours
        self.setBackground(QColor(colours.background))
        for plot in (self.times, self.memory, self.stalls):
            for side in ("left", "bottom"):
                plot.getAxis(side).setPen(cosmetic_pen(colours.grid))
                plot.getAxis(side).setTextPen(cosmetic_pen(colours.faint))
        if history is None:
            return
        step = np.arange(len(history), dtype=np.float64)
        self._draw_times(history, step, colours)
        self._draw_memory(history, step, colours)
        self._draw_ticks(history, step, colours)
        self._draw_onset(history, colours)

    def _draw_times(self, history: StepHistory, step: Any, colours: Colours) -> None:
        from engine.analyses.step_history import rolling_mean, rolling_median

        spread = np.ptp(history.tokens)
        shade = np.zeros(len(history), dtype=np.int64) + TOKEN_SHADES // 2
        if spread:
            shade = (history.tokens - history.tokens.min()) * (TOKEN_SHADES - 1) // spread
        strong, pale = QColor(colours.allocated), QColor(colours.background)
        brushes = [
            QBrush(mixed(strong, pale, 0.75 * (1 - level / (TOKEN_SHADES - 1)))) for level in range(TOKEN_SHADES)
        ]
        self._dots.setData(x=step, y=history.step_ns, pen=None, brush=[brushes[level] for level in shade.tolist()])
        self._median.setData(step, rolling_median(history.step_ns, min(MEDIAN_STEPS, len(history))))
        self._median.setPen(cosmetic_pen(colours.text, 1.4))
        self._mean.setData(step, rolling_mean(history.step_ns, min(MEAN_STEPS, len(history))))
        self._mean.setPen(cosmetic_pen(colours.communication, 2.4))
        self.times.setYRange(0, float(history.step_ns.max()) * 1.08, padding=0)

    def _draw_memory(self, history: StepHistory, step: Any, colours: Colours) -> None:
        reserved = history.peak_reserved_bytes.astype(np.float64)
        self._lines["reserved"].setData(step, reserved)
        self._lines["usable"].setData(step, reserved - np.maximum(history.stranded_bytes, 0))
        self._lines["allocated"].setData(step, history.peak_allocated_bytes.astype(np.float64))
        self._lines["reserved"].setPen(cosmetic_pen(colours.reserved, 1.6))
        self._lines["usable"].setPen(None)
        self._lines["allocated"].setPen(cosmetic_pen(colours.allocated, 1.6))
        self._stranded.setBrush(QBrush(QColor(colours.stranded), Qt.BrushStyle.BDiagPattern))
        limit, top = float(history.limit_bytes), float(max(history.limit_bytes, reserved.max())) * 1.06
        in_view = bool(limit <= reserved.max() * 2)
        self._limit.setVisible(in_view)
        self._beyond.setVisible(in_view)
        self._limit.setPos(limit)
        self._limit.setPen(cosmetic_pen(colours.limit, 1.4, Qt.PenStyle.DashLine))
        self._beyond.setRegion((limit, max(top, limit)))
        self._beyond.setBrush(QBrush(QColor(colours.limit), Qt.BrushStyle.FDiagPattern))
        for line in self._beyond.lines:
            line.setPen(None)
        lowest = float(
            min(history.peak_allocated_bytes.min(), (reserved - np.maximum(history.stranded_bytes, 0)).min())
        )
        highest = top if in_view else float(reserved.max()) * 1.06
        self.memory.setYRange(max(lowest - 0.15 * (highest - lowest), 0), highest, padding=0)

    def _draw_ticks(self, history: StepHistory, step: Any, colours: Colours) -> None:
        kind = np.where(history.caught > 0, 2, np.where(history.retries > 0, 1, 0))
        pens = (colours.faint, colours.warning, colours.error)
        for number, (name, colour) in enumerate(zip(TICKS, pens, strict=True)):
            chosen = (kind == number) & (history.stall_ns > 0)
            x = np.repeat(step[chosen], 2)
            y = np.zeros(len(x))
            y[1::2] = history.stall_ns[chosen]
            self._ticks[name].setData(x, y)
            self._ticks[name].setPen(cosmetic_pen(colour, 1.0 + number * 0.5))
        self.stalls.setYRange(0, max(float(history.stall_ns.max()), 1.0) * 1.08, padding=0)

    def _draw_onset(self, history: StepHistory, colours: Colours) -> None:
        slowdown = self._slowdown
        for line in self._onsets:
            line.setVisible(slowdown is not None)
            line.setPen(cosmetic_pen(colours.mark, 1.6, Qt.PenStyle.DashLine))
        self._onset_text.setVisible(slowdown is not None)
        if slowdown is None:
            return
        for line in self._onsets:
            line.setPos(slowdown.onset)
        text = tr(
            "step {step}: {retries} retries per step, +{loss} %",
            step=format_count(slowdown.onset),
            retries=f"{slowdown.retries_per_step:.1f}",
            loss=f"{slowdown.loss_ratio * 100:.0f}",
        )
        is_late = slowdown.onset > 0.6 * len(history)
        self._onset_text.setAnchor((1 if is_late else 0, 0))
        self._onset_text.setText(text, color=QColor(colours.mark))
        self._onset_text.setPos(slowdown.onset, float(history.step_ns.max()) * 1.06)

    def _on_range(self, area: Any, limits: tuple[float, float]) -> None:
        if self._history is not None:
            low, high = (min(max(round(limit), 0), len(self._history)) for limit in limits)
            self.steps_shown.emit(low, high)

    # Pointer

    def step_at(self, place: QPointF) -> int | None:
        """Returns the 0-based step at a place of the scene; None outside the plots."""
        if self._history is None:
            return None
        for plot in (self.times, self.memory, self.stalls):
            area = plot.getViewBox()
            if area.sceneBoundingRect().contains(place):
                step = round(area.mapSceneToView(place).x())
                return step if 0 <= step < len(self._history) else None
        return None

    def reading(self, step: int) -> str:
        """Returns what is known of a step, a line each."""
        history = self._history
        if history is None:
            return ""
        lines = [
            tr("Step {step}", step=format_count(step)),
            tr(
                "{time}, {tokens} tokens",
                time=format_duration_ns(int(history.step_ns[step])),
                tokens=format_count(int(history.tokens[step])),
            ),
            tr(
                "{allocated} allocated, {reserved} reserved",
                allocated=format_bytes(int(history.peak_allocated_bytes[step])),
                reserved=format_bytes(int(history.peak_reserved_bytes[step])),
            ),
        ]
        if history.stranded_bytes[step] >= 0:
            lines.append(tr("{size} stranded", size=format_bytes(int(history.stranded_bytes[step]))))
        lines.append(
            tr(
                "{calls} driver calls, {retries} retries, {caught} errors caught: {time}",
                calls=int(history.driver_calls[step]),
                retries=int(history.retries[step]),
                caught=int(history.caught[step]),
                time=format_duration_ns(int(history.stall_ns[step])),
            )
        )
        return "\n".join(lines)

    def _hover(self, place: QPointF) -> None:
        step = self.step_at(place)
        text = self.reading(step) if step is not None else ""
        QToolTip.showText(self.mapToGlobal(self.mapFromScene(place)), text, self)

    def _click(self, event: Any) -> None:
        step = self.step_at(event.scenePos())
        if event.double() and step is not None:
            event.accept()
            self.step_opened.emit(step)
