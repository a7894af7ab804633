"""Levels of memory over the trace's time, on the cursor and the selection of the timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QToolTip, QWidget

from engine.core.number_format import format_bytes
from profiler_gui.panels.memory.axes import BytesAxis, TimeAxis
from profiler_gui.panels.memory.marks import PlotMarks, cosmetic_pen
from profiler_gui.panels.memory.series import MemorySeries, stepped, value_at
from profiler_gui.session.selection import NOTHING, RangeSelection
from profiler_gui.session.viewport import Viewport
from profiler_gui.toolkit.theme import Colours, Theme
from profiler_gui.toolkit.time_axis import time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.memory import MemoryAnalysis
    from engine.core.arrays import Float64Array
    from profiler_gui.session.session import Session

LIMIT_IN_VIEW_RATIO = 2.0
"""A device limit above this many times the highest level would press the lines flat: it is named instead."""
HEAD_ROOM_RATIO = 1.12
"""The axis ends this much above the highest line, so that the peak's text has room."""
ZOOM_STEP = 0.8
PAN_RATIO = 0.15
_ROLES: dict[str, Callable[[Colours], str]] = {
    "allocated": lambda colours: colours.allocated,
    "active": lambda colours: colours.active,
    "reserved": lambda colours: colours.reserved,
    "process": lambda colours: colours.stranded,
}
_STYLES = {
    "allocated": Qt.PenStyle.SolidLine,
    "active": Qt.PenStyle.DashLine,
    "reserved": Qt.PenStyle.SolidLine,
    "process": Qt.PenStyle.DotLine,
}
OTHER_COLOURS = ("#8e6bbf", "#c2577a", "#6f8f3a", "#b07a3c")
"""Of components besides the analysed one, dash-dotted."""


def colour_of(series: tuple[MemorySeries, ...], item: MemorySeries, colours: Colours) -> str:
    """Returns the colour of a line: its quantity's, or one of its own for other components."""
    if item.is_main:
        return _ROLES[item.quantity](colours)
    others = [other.id for other in series if not other.is_main]
    return OTHER_COLOURS[others.index(item.id) % len(OTHER_COLOURS)]


def style_of(item: MemorySeries) -> Qt.PenStyle:
    """Returns the dashes of a line, so that it is told by more than its colour."""
    return _STYLES[item.quantity] if item.is_main else Qt.PenStyle.DashDotLine


class _Area(pg.ViewBox):
    """Turns the mouse over the plot into ranges and zooms of the session.

    Args:
        plot: Receives them.
    """

    def __init__(self, plot: MemoryPlot) -> None:
        super().__init__(enableMenu=False)
        self.setMouseEnabled(x=False, y=False)
        self._plot = plot

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        """Selects the range that is dragged over."""
        ev.accept()
        if ev.button() is Qt.MouseButton.LeftButton:
            begin, end = self.mapToView(ev.buttonDownPos()).x(), self.mapToView(ev.pos()).x()
            self._plot.drag(begin, end, is_finished=ev.isFinish())

    def mouseClickEvent(self, ev: Any) -> None:
        """Takes the selected range back."""
        if ev.button() is Qt.MouseButton.LeftButton:
            ev.accept()
            self._plot.clear_range()

    def wheelEvent(self, ev: Any, axis: int | None = None) -> None:
        """Zooms at the pointer with Ctrl, moves with Shift."""
        if self._plot.wheel(ev.delta(), self.mapToView(ev.pos()).x(), ev.modifiers()):
            ev.accept()
        else:
            ev.ignore()


class MemoryPlot(pg.PlotWidget):
    """Step lines of the shown series.

    A drag selects a range of the session, a click takes it back. Ctrl+wheel and + − zoom, Shift+wheel and the arrows
    move, 0 shows everything. Positions inside are ns from the start of the view, so that long traces stay exact.
    """

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        self._session = session
        self._theme = theme
        self._series: tuple[MemorySeries, ...] = ()
        self._shown: frozenset[str] = frozenset()
        self._memory: MemoryAnalysis | None = None
        self._limit_bytes: int | None = None
        self._follows = False
        self._dragged: tuple[int, int] | None = None
        self._lines: dict[str, Any] = {}
        self._time_axis, self._bytes_axis = TimeAxis(), BytesAxis()
        axes = {"bottom": self._time_axis, "left": self._bytes_axis}
        super().__init__(parent, viewBox=_Area(self), axisItems=axes, enableMenu=False)
        self.hideButtons()
        self.setFrameShape(self.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Memory over time"))
        self.setMinimumHeight(self.fontMetrics().height() * 7)
        self.marks = PlotMarks(self)
        self.scene().sigMouseMoved.connect(self._hover)
        session.viewport_changed.connect(self._on_viewport)
        session.selection_changed.connect(self._update_bands)
        session.cursor_changed.connect(lambda time_ns: self.marks.show_cursor(time_ns, self.view))
        theme.changed.connect(self._recolour)
        self._recolour()

    @property
    def view(self) -> Viewport:
        """The stretch of time in view."""
        return self._session.viewport if self._follows else self._session.limits

    def set_memory(
        self, series: tuple[MemorySeries, ...], memory: MemoryAnalysis | None, limit_bytes: int | None
    ) -> None:
        """Shows other lines, the peak of ``memory`` and the device's limit where it is known."""
        self._series, self._memory, self._limit_bytes = series, memory, limit_bytes
        for line in self._lines.values():
            self.removeItem(line)
        self._lines = {item.id: self.plot() for item in series}
        for depth, item in enumerate(series):
            self._lines[item.id].setZValue(-depth / 100)  # where lines coincide, the first one is seen
        self._recolour()

    def set_shown(self, ids: frozenset[str]) -> None:
        """Shows some of the lines."""
        self._shown = ids
        self._draw()

    def set_follows(self, follows: bool) -> None:
        """Whether the plot shows the timeline's stretch of time, or the whole trace with that stretch marked."""
        self._follows = follows
        self._draw()

    def points(self, series_id: str) -> tuple[Float64Array, Float64Array]:
        """Returns the corners that are drawn of a line: ns from the start of the view, bytes."""
        x, y = self._lines[series_id].getOriginalDataset()
        return x, y

    def _draw(self) -> None:
        """Draws the shown lines in as many points as the width can show."""
        view = self.view
        columns = max(round(self.getViewBox().width()), 100)
        highest, lowest = 1.0, 0.0
        for item in self._series:
            line = self._lines[item.id]
            line.setVisible(item.id in self._shown)
            if item.id in self._shown:
                x, y = stepped(item.time_ns, item.value_bytes, view.start_ns, view.end_ns, columns)
                line.setData(x, y)
                highest = max(highest, float(y.max(initial=0)))
                lowest = min(lowest, float(y.min(initial=0)))
        limit = self._limit_bytes
        if limit is not None and limit <= highest * LIMIT_IN_VIEW_RATIO:
            highest = max(highest, limit)
        top = highest * HEAD_ROOM_RATIO
        self._time_axis.set_view(view)
        self.setXRange(0, view.duration_ns, padding=0)
        self.setYRange(lowest, top, padding=0)
        self.marks.show_limit(limit, top, view)
        memory = self._memory
        if memory is None:
            self.marks.show_peak(None, None, view)
        else:
            self.marks.show_peak(memory.peak_at_ns, memory.peak_allocated_bytes, view)
        self._update_bands()

    def _on_viewport(self) -> None:
        if self._follows:
            self._draw()
        else:
            self._update_bands()

    def _update_bands(self) -> None:
        session, view = self._session, self.view
        whole = self._follows or session.viewport == session.limits
        self.marks.show_viewport(None if whole else session.viewport, view)
        self.marks.show_range(self._dragged or session.selected_time_range, view)

    def _recolour(self) -> None:
        colours = self._theme.colours
        self.setBackground(QColor(colours.background))
        for axis in (self._time_axis, self._bytes_axis):
            axis.setPen(cosmetic_pen(colours.grid))
            axis.setTextPen(cosmetic_pen(colours.faint))
        self._bytes_axis.setGrid(60)
        for item in self._series:
            width_px = 1.6 if item.is_main and item.quantity == "allocated" else 1.2
            self._lines[item.id].setPen(cosmetic_pen(colour_of(self._series, item, colours), width_px, style_of(item)))
        self.marks.recolour(colours)
        self._draw()

    # What the user does

    def drag(self, begin: float, end: float, *, is_finished: bool) -> None:
        """Marks the stretch between two positions; selects it when the drag ends."""
        view = self.view
        first, last = sorted((round(begin), round(end)))
        first_ns, last_ns = (
            min(max(view.start_ns + offset_ns, view.start_ns), view.end_ns) for offset_ns in (first, last)
        )
        self._dragged = None if is_finished else (first_ns, last_ns)
        if is_finished and last_ns > first_ns:
            self._session.select(RangeSelection(self._session.rank, first_ns, last_ns))
        self._update_bands()

    def clear_range(self) -> None:
        """Takes a selected range back; other selections stay."""
        if isinstance(self._session.selection, RangeSelection):
            self._session.select(NOTHING)

    def wheel(self, delta: int, position: float, modifiers: Qt.KeyboardModifier) -> bool:
        """Zooms or moves the session's viewport; returns whether it did."""
        if modifiers & Qt.KeyboardModifier.ControlModifier:
            self._session.zoom(self.view.start_ns + round(position), ZOOM_STEP ** (delta / 120), "wheel")
            return True
        if modifiers & Qt.KeyboardModifier.ShiftModifier:
            self._session.pan(round(-delta / 120 * PAN_RATIO * self._session.viewport.duration_ns), "wheel")
            return True
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Qt: + − zoom, arrows move, 0 shows everything."""
        session, viewport = self._session, self._session.viewport
        middle_ns = viewport.start_ns + viewport.duration_ns // 2
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            session.zoom(middle_ns, ZOOM_STEP, "key zoom")
        elif key is Qt.Key.Key_Minus:
            session.zoom(middle_ns, 1 / ZOOM_STEP, "key zoom")
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            direction = 1 if key is Qt.Key.Key_Right else -1
            session.pan(round(direction * PAN_RATIO * viewport.duration_ns), "key pan")
        elif key is Qt.Key.Key_0:
            session.show_all()
        else:
            event.ignore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Qt: another width shows another number of points."""
        super().resizeEvent(event)
        if self._lines:
            self._draw()

    def leaveEvent(self, event: QEvent) -> None:
        """Qt: no time is under the pointer any more."""
        super().leaveEvent(event)
        self._session.report_cursor(None)

    def _hover(self, place: QPointF) -> None:
        if not self._series or not self.getViewBox().sceneBoundingRect().contains(place):
            return
        time_ns = self.view.start_ns + round(self.getViewBox().mapSceneToView(place).x())
        self._session.report_cursor(time_ns)
        QToolTip.showText(self.mapToGlobal(self.mapFromScene(place)), self.reading(time_ns), self)

    def reading(self, time_ns: int) -> str:
        """Returns the levels of the shown lines at a moment, a line each."""
        lines = [time_text(time_ns, resolution_ns=1000)]
        for item in self._series:
            level = value_at(item, time_ns) if item.id in self._shown else None
            if level is not None:
                lines.append(f"{item.title}: {format_bytes(level)}")
        return "\n".join(lines)
