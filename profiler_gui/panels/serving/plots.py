"""Requests as rows, and below them on the same time axis the batch, the blocks of keys and values, and latency."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPen
from PySide6.QtWidgets import QGraphicsSceneWheelEvent, QToolTip, QWidget

from profiler_gui.panels.serving.axes import CountAxis, DurationAxis, MomentAxis, RequestAxis
from profiler_gui.panels.serving.lanes import RequestLanes
from profiler_gui.panels.serving.load import column_maxima, point_maxima
from profiler_gui.panels.serving.rows import Order, request_rows
from profiler_gui.panels.serving.words import request_tip
from profiler_gui.session.services import NOBODY
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.core.arrays import Int64Array
    from profiler_gui.session.serving_runs import Served

FIRST_ROW_PX = 9
"""Height of a row at first."""
COLUMN_PX = 2
"""Width of the columns of the load: filled steps of a pixel each cost more to paint than the rest of the page."""
LEGEND_ROOM = 1.35
"""Upper end of an axis under a legend, as a multiple of the largest value."""
_HEIGHTS = (11, 4, 4, 4)
"""Shares of the height."""
_LINES = ("running", "waiting", "held", "kept", "late")
_ZOOM_PER_NOTCH = 1.25
_ROWS_PER_NOTCH = 0.15
_NOTCH = 120


class _RowsBox(pg.ViewBox):
    """The wheel scrolls rows; with Ctrl it zooms time, with Shift the height of rows."""

    def wheelEvent(self, event: QGraphicsSceneWheelEvent, axis: int | None = None) -> None:
        """Qt: scrolls or zooms."""
        notches = event.delta() / _NOTCH
        factor = _ZOOM_PER_NOTCH**-notches
        center = self.mapToView(event.pos())
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.scaleBy(x=factor, center=center)
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.scaleBy(y=factor, center=center)
        else:
            top, bottom = self.viewRange()[1]
            self.translateBy(y=-notches * _ROWS_PER_NOTCH * (bottom - top))
        event.accept()


class ServicePlots(pg.GraphicsLayoutWidget):
    """The plots of one served run.

    Signals:
        request_chosen: A request that was clicked or walked to.
    """

    request_chosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._served: Served | None = None
        self._waits: tuple[Int64Array, Int64Array] | None = None
        self._order = Order.WAIT
        self._selected = NOBODY
        self.setAccessibleName(tr("Requests as rows, and the load of the service over time"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._request_axis = RequestAxis()
        self.lanes = RequestLanes(theme)
        self.requests = self._add_plot(0, self._request_axis, tr("Request"), _RowsBox())
        self.requests.invertY(True)
        self.requests.setMouseEnabled(x=True, y=True)
        self.requests.addItem(self.lanes)
        self.batch = self._add_plot(1, CountAxis(), tr("Sequences"))
        self.blocks = self._add_plot(2, CountAxis(), tr("KV blocks"))
        self.latency = self._add_plot(3, DurationAxis(), tr("First token"))
        self._lines = {name: pg.PlotDataItem() for name in _LINES}
        self._limit = pg.InfiniteLine(angle=0)
        self._legends = {plot: _legend(plot) for plot in (self.batch, self.blocks)}
        for name in ("running", "waiting"):
            self.batch.addItem(self._lines[name])
        for name in ("kept", "held"):
            self.blocks.addItem(self._lines[name])
        self.blocks.addItem(self._limit, ignoreBounds=True)
        self.latency.addItem(self._lines["late"])
        self.requests.getViewBox().sigXRangeChanged.connect(lambda *_: self._draw_load())
        self.scene().sigMouseMoved.connect(self._hover)
        self.scene().sigMouseClicked.connect(self._click)
        theme.changed.connect(self._recolour)
        self._recolour()

    def _add_plot(self, row: int, axis: pg.AxisItem, title: str, box: pg.ViewBox | None = None) -> Any:
        axes = {"left": axis, "bottom": MomentAxis(has_texts=row == len(_HEIGHTS) - 1)}
        plot = self.addPlot(row=row, col=0, axisItems=axes, enableMenu=False, viewBox=box)
        plot.hideButtons()
        plot.setMouseEnabled(x=True, y=False)
        axis.setWidth(self.fontMetrics().horizontalAdvance("000.000 ms") + 18)
        axis.setLabel(title)
        self.ci.layout.setRowStretchFactor(row, _HEIGHTS[row])
        if row:
            plot.setXLink(self.getItem(0, 0))
        return plot

    # What is shown

    def show_served(self, served: Served | None, order: Order) -> None:
        """Shows a run with its requests in an order; the stretch of time in view stays where it is the same run."""
        is_new = served is not self._served
        if not is_new and order is self._order:
            return
        self._served, self._order = served, order
        self._waits = _waits(served) if served is not None else None
        rows = request_rows(served.run, order) if served is not None else None
        self.lanes.set_rows(rows)
        self._request_axis.set_rows(rows)
        if rows is None or not len(rows):
            self._draw_load()
            return
        box = self.requests.getViewBox()
        # Ranges before limits: limits of the run before would move them.
        box.setLimits(xMin=None, xMax=None, yMin=None, yMax=None)
        if is_new:
            box.setXRange(0, rows.span_ns, padding=0)
        box.setYRange(0, min(len(rows), max(box.height() / FIRST_ROW_PX, 10)), padding=0)
        box.setLimits(xMin=0, xMax=rows.span_ns, minXRange=1_000, yMin=0, yMax=len(rows), minYRange=min(len(rows), 4))
        self._draw_load()
        self._reveal()

    def select(self, request: int) -> None:
        """Outlines a request and brings its row into view; ``NOBODY`` for none."""
        self._selected = request
        self.lanes.select(request)
        self._reveal()

    def show_all(self) -> None:
        """Brings all requests and the whole time into view."""
        rows = self.lanes.rows
        if rows is not None:
            self.requests.getViewBox().setRange(xRange=(0, rows.span_ns), yRange=(0, max(len(rows), 1)), padding=0)

    def show_request(self, request: int) -> None:
        """Zooms to the time of a request, from arrival to its last token."""
        rows = self.lanes.rows
        if rows is None or not 0 <= request < len(rows) or rows.first[request] == rows.first[request + 1]:
            return
        start_ns = int(rows.start_ns[rows.first[request]])
        end_ns = int(rows.end_ns[rows.first[request] : rows.first[request + 1]].max())
        margin_ns = max((end_ns - start_ns) // 10, 1_000)
        self.requests.getViewBox().setXRange(start_ns - margin_ns, end_ns + margin_ns, padding=0)

    @property
    def requests_in_view(self) -> tuple[int, ...]:
        """Numbers of the requests whose rows are in view, from the top."""
        rows = self.lanes.rows
        if rows is None:
            return ()
        top, bottom = self.requests.getViewBox().viewRange()[1]
        return tuple(rows.order[max(int(top), 0) : int(np.ceil(bottom))].tolist())

    def _reveal(self) -> None:
        rows, box = self.lanes.rows, self.requests.getViewBox()
        if rows is None or not 0 <= self._selected < len(rows):
            return
        row = int(rows.row[self._selected])
        top, bottom = box.viewRange()[1]
        if not top <= row <= bottom - 1:
            first = min(max(row - (bottom - top) / 2, 0), max(len(rows) - (bottom - top), 0))
            box.setYRange(first, first + bottom - top, padding=0)

    def _draw_load(self) -> None:
        served = self._served
        if served is None or self._waits is None:
            for line in self._lines.values():
                line.clear()
            self._limit.setVisible(False)
            return
        run, box = served.run, self.batch.getViewBox()
        start_ns, end_ns = box.viewRange()[0]
        count = max(round(box.width() / COLUMN_PX), 100)
        steps = run.iterations
        tops = {}
        for name, values in (
            ("running", steps.running),
            ("waiting", steps.waiting),
            ("held", steps.kv_blocks),
            ("kept", steps.kv_blocks + steps.cached_blocks),
        ):
            edges, largest = column_maxima(steps.start_ns, values, start_ns, end_ns, count)
            self._lines[name].setData(edges, largest, stepMode="center")
            tops[name] = float(largest.max(initial=0))
        moments, waits = point_maxima(*self._waits, start_ns, end_ns, count)
        self._lines["late"].setData(moments, waits)
        self._limit.setVisible(run.kv_block_count > 0)
        self._limit.setPos(run.kv_block_count)
        full = run.kv_block_count if tops["kept"] > run.kv_block_count / 4 else tops["kept"]
        for plot, top in (
            (self.batch, max(tops["running"], tops["waiting"])),
            (self.blocks, full),
            (self.latency, float(waits.max(initial=0))),
        ):
            room = LEGEND_ROOM if plot in self._legends else 1.08
            plot.setYRange(0, max(top, 1) * room, padding=0)

    def _recolour(self) -> None:
        colours = self._theme.colours
        self.setBackground(colours.background)
        for row in range(len(_HEIGHTS)):
            plot = self.getItem(row, 0)
            for side in ("left", "bottom"):
                plot.getAxis(side).setPen(QColor(colours.grid))
                plot.getAxis(side).setTextPen(QColor(colours.text))
        for name, colour, is_filled in (
            ("running", colours.allocated, True),
            ("waiting", colours.communication, False),
            ("kept", colours.active, True),
            ("held", colours.allocated, True),
            ("late", colours.communication, False),
        ):
            line, shade = self._lines[name], QColor(colour)
            line.setPen(_pen(colour, 1.5))
            shade.setAlpha(90)
            line.setFillLevel(0 if is_filled else None)
            line.setFillBrush(shade if is_filled else None)
        for plot, entries in (
            (self.batch, ((colours.allocated, tr("in the batch")), (colours.communication, tr("waiting")))),
            (self.blocks, ((colours.allocated, tr("in use")), (colours.active, tr("kept for later prompts")))),
        ):
            marks = (f"<span style='color:{colour}'>■</span> {escape(text)}" for colour, text in entries)
            self._legends[plot].setText("&nbsp; ".join(marks), color=colours.text)
        late = self._lines["late"]
        late.setPen(_pen(colours.communication, 1.0))
        late.setSymbol("o")
        late.setSymbolSize(4)
        late.setSymbolPen(None)
        late.setSymbolBrush(QColor(colours.communication))
        self._limit.setPen(_pen(colours.limit, 1.5, Qt.PenStyle.DashLine))
        self.lanes.update()

    # Pointer and keys

    def request_at(self, point: QPointF) -> int:
        """Returns the request under a point of the scene; ``NOBODY`` for none."""
        rows, box = self.lanes.rows, self.requests.getViewBox()
        if rows is None or not box.sceneBoundingRect().contains(point):
            return NOBODY
        row = int(np.floor(box.mapSceneToView(point).y()))
        return int(rows.order[row]) if 0 <= row < len(rows) else NOBODY

    def _hover(self, point: QPointF) -> None:
        request = self.request_at(point)
        if request == NOBODY or self._served is None:
            QToolTip.hideText()
            return
        QToolTip.showText(self.mapToGlobal(self.mapFromScene(point)), request_tip(self._served.run, request), self)

    def _click(self, event: Any) -> None:
        request = self.request_at(event.scenePos())
        if request == NOBODY:
            return
        self.request_chosen.emit(request)
        if event.double():
            self.show_request(request)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Qt: Up and Down walk over the rows, Enter zooms to the selected one, Home shows everything."""
        rows, key = self.lanes.rows, Qt.Key(event.key())
        if rows is None or not len(rows):
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            row = int(rows.row[self._selected]) if self._selected >= 0 else -1
            row += 1 if key is Qt.Key.Key_Down else -1
            self.request_chosen.emit(int(rows.order[min(max(row, 0), len(rows) - 1)]))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.show_request(self._selected)
        elif key is Qt.Key.Key_Home:
            self.show_all()
        else:
            super().keyPressEvent(event)


def _waits(served: Served) -> tuple[Int64Array, Int64Array]:
    """Returns arrivals in order and the times to the first token, of requests that got one."""
    asked = served.run.requests
    order = np.argsort(asked.arrival_ns, kind="stable")
    order = order[asked.first_token_ns[order] >= 0]
    return asked.arrival_ns[order], asked.first_token_ns[order] - asked.arrival_ns[order]


def _legend(plot: Any) -> pg.LabelItem:
    """Returns a text in the upper left corner of a plot."""
    legend = pg.LabelItem()
    legend.setParentItem(plot.getViewBox())
    legend.anchor(itemPos=(0, 0), parentPos=(0, 0), offset=(6, -4))
    return legend


def _pen(colour: str, width_px: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    pen = QPen(QColor(colour), width_px, style)
    pen.setCosmetic(True)
    return pen
