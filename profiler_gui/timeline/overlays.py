"""What is painted over the slices: selection, hover, range, marks, flows. A handful of lines per frame."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from engine.core.arrays import Int64Array
from engine.core.number_format import format_duration_ns
from engine.trace import Trace
from profiler_gui.session.annotations import Mark
from profiler_gui.timeline.layout import Row
from profiler_gui.timeline.places import Places
from profiler_gui.toolkit.theme import Colours
from profiler_gui.toolkit.translations import tr

MAX_FLOWS = 100
"""Arrows drawn for one selection; the rest is counted in words beside them."""


@dataclass(frozen=True, slots=True)
class DraggedRange:
    """A range while it is dragged.

    Attributes:
        start_ns: Where the drag began.
        end_ns: Where the pointer is; may lie before the start.
        snapped_ns: Edges the ends hold on to.
    """

    start_ns: int
    end_ns: int
    snapped_ns: tuple[int, ...] = ()


def flows_of(trace: Trace, event: int) -> Int64Array:
    """Returns the rows (int64, ascending) of the flow table that begin or end at an event."""
    return np.flatnonzero((trace.flows.source == event) | (trace.flows.target == event))


def paint_outline(painter: QPainter, rectangle: QRectF, colour: str, width_px: float) -> None:
    """Outlines a slice."""
    pen = QPen(QColor(colour), width_px)
    pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(rectangle)


def paint_range(painter: QPainter, places: Places, height_px: int, range_ns: tuple[int, int], colours: Colours) -> None:
    """Shades a range (start, end) over all rows and writes its length at the top of it."""
    start_ns, end_ns = range_ns
    left_px = min(max(places.scale.x_px(start_ns), -10.0), places.scale.width_px + 10)
    right_px = min(max(places.scale.x_px(end_ns), -10.0), places.scale.width_px + 10)
    shade = QColor(colours.range)
    shade.setAlpha(40)
    painter.fillRect(QRectF(left_px, 0, right_px - left_px, height_px), shade)
    painter.setPen(QPen(QColor(colours.range), 1))
    painter.drawLines([QLineF(left_px, 0, left_px, height_px), QLineF(right_px, 0, right_px, height_px)])
    text = format_duration_ns(end_ns - start_ns)
    width_px = painter.fontMetrics().horizontalAdvance(text) + 12
    middle_px = (max(left_px, 0) + min(right_px, places.scale.width_px)) / 2
    box = QRectF(min(max(middle_px - width_px / 2, 0), places.scale.width_px - width_px), 3, width_px, 18)
    painter.fillRect(box, QColor(colours.range))
    painter.setPen(QColor(colours.background))
    painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)


def paint_snaps(painter: QPainter, places: Places, height_px: int, times_ns: Iterable[int], colours: Colours) -> None:
    """Draws a dashed line where an end of a dragged range holds on to an edge."""
    painter.setPen(QPen(QColor(colours.text), 1, Qt.PenStyle.DashLine))
    for time_ns in times_ns:
        x_px = places.scale.x_px(time_ns)
        painter.drawLine(QLineF(x_px, 0, x_px, height_px))


def paint_marks(painter: QPainter, places: Places, height_px: int, marks: Sequence[Mark], colours: Colours) -> None:
    """Draws a line through all rows at every mark; stretches get two and a shade."""
    colour = QColor(colours.mark)
    shade = QColor(colours.mark)
    shade.setAlpha(26)
    painter.setPen(QPen(colour, 1))
    for mark in marks:
        xs_px = [places.scale.x_px(mark.start_ns), places.scale.x_px(mark.end_ns)]
        if xs_px[1] < 0 or xs_px[0] > places.scale.width_px:
            continue
        left_px, right_px = max(xs_px[0], -10.0), min(xs_px[1], places.scale.width_px + 10)
        if right_px > left_px:
            painter.fillRect(QRectF(left_px, 0, right_px - left_px, height_px), shade)
        painter.drawLines([QLineF(x_px, 0, x_px, height_px) for x_px in {left_px, right_px}])


def paint_flows(
    painter: QPainter, places: Places, trace: Trace, rank: int, event: int, flows: Int64Array, colours: Colours
) -> None:
    """Draws the arrows that begin or end at an event; pinned rows are preferred where both kinds show the other end."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    # A loop over the arrows of one event, MAX_FLOWS at most.
    for flow in flows[:MAX_FLOWS].tolist():
        source, target = int(trace.flows.source[flow]), int(trace.flows.target[flow])
        arrives_ns = int(trace.events.start_ns[target])
        source_ns = int(trace.events.start_ns[source])
        # From the end of the source, so that its name stays readable; never backwards only for that.
        leaves_ns = max(min(source_ns + int(trace.events.duration_ns[source]), arrives_ns), source_ns)
        begin = _anchor(places, trace, rank, source, leaves_ns)
        end = _anchor(places, trace, rank, target, arrives_ns)
        if begin is None or end is None:
            continue
        painter.save()
        if not begin[0].is_pinned and not end[0].is_pinned:
            pinned_px = places.layout.pinned_height_px
            painter.setClipRect(QRectF(0, pinned_px, places.scale.width_px, 1e5))
        _paint_arrow(painter, begin[1], end[1], colours, is_incoming=target == event)
        painter.restore()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    if len(flows) > MAX_FLOWS:
        text = tr("{shown} of {count} arrows", shown=MAX_FLOWS, count=len(flows))
        painter.setPen(QColor(colours.text))
        painter.drawText(QPointF(6, places.layout.pinned_height_px + 14), text)


def _anchor(places: Places, trace: Trace, rank: int, event: int, time_ns: int) -> tuple[Row, QPointF] | None:
    """Returns in which row (the pinned one where there is one) and where an arrow meets an event."""
    events = trace.events
    x_px = places.scale.x_px(time_ns)
    x_px = min(max(x_px, -4000.0), places.scale.width_px + 4000.0)
    for row, top_px in places.rows_of((rank, int(events.track[event]))):
        lane = min(row.lane_of(int(events.depth[event])), max(row.lane_count - 1, 0))
        return row, QPointF(x_px, top_px + (lane + 0.5) * (row.lane_px or row.height_px))
    return None


def _paint_arrow(painter: QPainter, begin: QPointF, end: QPointF, colours: Colours, *, is_incoming: bool) -> None:
    colour = QColor(colours.baseline if is_incoming else colours.selection)
    path = QPainterPath(begin)
    reach_px = min(max(abs(end.x() - begin.x()) / 2, 24.0), 160.0)
    path.cubicTo(begin + QPointF(reach_px, 0), end - QPointF(reach_px, 0), end)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    # A halo of the background keeps the arrow apart from slices of any colour.
    halo = QColor(colours.background)
    halo.setAlpha(200)
    painter.setPen(QPen(halo, 4))
    painter.drawPath(path)
    painter.setPen(QPen(colour, 1.6))
    painter.drawPath(path)
    painter.setBrush(colour)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawPolygon([end, end + QPointF(-8, -4), end + QPointF(-8, 4)])
