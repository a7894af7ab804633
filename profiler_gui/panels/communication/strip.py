"""Ranks × time: who transfers, who waits, and what computing hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from profiler_gui.panels.communication.descriptions import collective_text
from profiler_gui.panels.communication.lane_image import lane_image
from profiler_gui.panels.communication.lanes import Lane, lane_pixels
from profiler_gui.session.selection import RangeSelection, StepSelection
from profiler_gui.session.session import Session
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.time_axis import TimeScale, ticks, time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication import JobCommunication

TICK_SPACING_PX = 110
CLICK_PX = 4
ZOOM_STEP = 0.8


class RankStrip(QWidget):
    """A lane per rank over the session's viewport.

    Ctrl+wheel and + − zoom, Shift+wheel moves; arrow keys walk over collectives and ranks.

    Signals:
        chosen: Rank, and index of the collective, that the user picked.
    """

    chosen = Signal(int, int)

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._theme = theme
        self._lanes: tuple[Lane, ...] = ()
        self._joined: JobCommunication | None = None
        self._selected: tuple[int, int] | None = None
        self._pressed: tuple[int, int] | None = None
        self._images: dict[tuple[object, ...], QImage] = {}
        self.setAccessibleName(tr("Communication of every rank over time"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._repaint_all)
        session.viewport_changed.connect(self.update)
        session.rank_changed.connect(self.update)
        session.selection_changed.connect(self.update)

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """What is shown, from the top."""
        return self._lanes

    def set_lanes(self, lanes: tuple[Lane, ...], joined: JobCommunication | None) -> None:
        """Shows other lanes."""
        self._lanes = lanes
        self._joined = joined
        self._selected = None
        names = ", ".join(self._title(lane) for lane in lanes)
        self.setAccessibleDescription(tr("Ranks from the top: {ranks}", ranks=names))
        self.updateGeometry()
        self._repaint_all()

    def set_selected(self, rank: int, index: int | None) -> None:
        """Outlines a collective and its members, or nothing."""
        self._selected = None if index is None else (rank, index)
        self.update()

    def sizeHint(self) -> QSize:
        """Qt: a ruler and a lane per rank."""
        return QSize(480, self.height_of(len(self._lanes)))

    def height_of(self, lane_count: int) -> int:
        """Returns the height that so many lanes need."""
        return self._ruler_px() + lane_count * self._lane_px() + 4

    def minimumSizeHint(self) -> QSize:
        """Qt: the same height, whatever the width."""
        return QSize(200, self.sizeHint().height())

    def position_of(self, rank: int, index: int) -> QPointF:
        """Returns where the middle of a collective is drawn."""
        row = next(row for row, lane in enumerate(self._lanes) if lane.rank == rank)
        lane = self._lanes[row]
        middle_ns = int(lane.start_ns[index] + lane.end_ns[index]) // 2 + lane.offset_ns
        return QPointF(self._left_px() + self._scale().x_px(middle_ns), self._lane_rect(row).center().y())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        scale = self._scale()
        self._paint_ruler(painter, scale)
        for row, lane in enumerate(self._lanes):
            rect = self._lane_rect(row)
            if not rect.toAlignedRect().adjusted(-self.width(), 0, 0, 0).intersects(event.rect()):
                continue
            font = self.font()
            font.setBold(lane.rank == self._session.rank)
            painter.setFont(font)
            painter.setPen(QColor(self._theme.colours.text))
            title = QRectF(0, rect.top(), self._left_px() - 8, rect.height())
            painter.drawText(title, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self._title(lane))
            painter.drawImage(rect, self._image(lane, scale, rect))
            painter.setPen(QColor(self._theme.colours.grid))
            painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        self._paint_range(painter, scale)
        self._paint_selection(painter, scale)
        if self.hasFocus():
            painter.setPen(QPen(QColor(self._theme.colours.range), 1, Qt.PenStyle.DotLine))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))

    def _paint_ruler(self, painter: QPainter, scale: TimeScale) -> None:
        marks = ticks(scale, TICK_SPACING_PX)
        for time_ns in marks.times_ns:
            x_px = self._left_px() + scale.x_px(time_ns)
            painter.setPen(QColor(self._theme.colours.grid))
            painter.drawLine(QPointF(x_px, 0), QPointF(x_px, self.height()))
            painter.setPen(QColor(self._theme.colours.faint))
            text = time_text(time_ns, resolution_ns=marks.step_ns)
            place = QRectF(x_px + 3, 0, TICK_SPACING_PX, self._ruler_px())
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

    def _paint_range(self, painter: QPainter, scale: TimeScale) -> None:
        """Shades the time selected anywhere in the window."""
        selection = self._session.selection
        span = self._session.selected_time_range
        if span is None or not isinstance(selection, RangeSelection | StepSelection):
            return
        colour = QColor(self._theme.colours.range)
        colour.setAlpha(50)
        left_px, right_px = (self._left_px() + scale.x_px(moment + self._offset_ns()) for moment in span)
        left_px, right_px = max(left_px, self._left_px()), min(right_px, float(self.width()))
        painter.fillRect(QRectF(left_px, 0, max(right_px - left_px, 1.0), self.height()), colour)

    def _paint_selection(self, painter: QPainter, scale: TimeScale) -> None:
        """Outlines the selected collective, and thinly where its members took part in it."""
        if self._selected is None or self._joined is None:
            return
        rank, index = self._selected
        collective = self._joined.collectives[rank][index]
        painter.setClipRect(QRectF(self._left_px(), 0, self.width() - self._left_px(), self.height()))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        spans = {member.rank: (member.start_ns, member.end_ns) for member in collective.members}
        for row, lane in enumerate(self._lanes):
            own = lane.rank == rank
            start_ns = int(lane.start_ns[index]) + lane.offset_ns if own else spans.get(lane.rank, (0, 0))[0]
            end_ns = int(lane.end_ns[index]) + lane.offset_ns if own else spans.get(lane.rank, (0, 0))[1]
            if not own and lane.rank not in spans:
                continue
            rect = self._lane_rect(row)
            left_px, right_px = (self._left_px() + scale.x_px(moment) for moment in (start_ns, end_ns))
            painter.setPen(QPen(QColor(self._theme.colours.selection), 2.0 if own else 1.0))
            painter.drawRect(QRectF(left_px, rect.top(), max(right_px - left_px, 2.0), rect.height()))

    def event(self, event: QEvent) -> bool:
        """Qt: tooltips say everything of the collective under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            found = self._collective_at(QPointF(event.pos()))
            if found is None or self._joined is None:
                QToolTip.hideText()
            else:
                rank, index = found
                QToolTip.showText(event.globalPos(), collective_text(rank, self._joined.collectives[rank][index]), self)
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Qt: reports the time under the pointer."""
        lane = self._lane_of_session()
        inside = event.position().x() >= self._left_px()
        if lane is not None and inside:
            job_ns = self._scale().time_ns(event.position().x() - self._left_px())
            self._session.report_cursor(job_ns - lane.offset_ns)
        found = self._collective_at(event.position())
        self.setCursor(Qt.CursorShape.PointingHandCursor if found else Qt.CursorShape.ArrowCursor)

    def leaveEvent(self, event: QEvent) -> None:
        """Qt: no time is under the pointer any more."""
        self._session.report_cursor(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Qt: the collective under the pointer is the one a release chooses."""
        self._pressed = self._collective_at(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Qt: chooses the collective that was pressed, if the pointer is still on it."""
        found = self._collective_at(event.position())
        if found is not None and found == self._pressed and event.button() is Qt.MouseButton.LeftButton:
            self.chosen.emit(*found)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Qt: zooms with Ctrl, moves with Shift, else leaves the wheel to the page."""
        degrees = event.angleDelta().y() or event.angleDelta().x()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            x_px = min(max(event.position().x() - self._left_px(), 0.0), self.width() - self._left_px())
            anchor_ns = self._scale().time_ns(x_px) - self._offset_ns()
            self._session.zoom(anchor_ns, ZOOM_STEP if degrees > 0 else 1 / ZOOM_STEP, gesture="wheel")
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            distance_ns = self._session.viewport.duration_ns // 10
            self._session.pan(-distance_ns if degrees > 0 else distance_ns, gesture="wheel")
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Qt: walks over collectives and ranks, zooms."""
        key = Qt.Key(event.key())
        walks = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0)}
        if key in walks and self._lanes:
            self._walk(*walks[key])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            viewport = self._session.viewport
            middle_ns = viewport.start_ns + viewport.duration_ns // 2
            self._session.zoom(middle_ns, 1 / ZOOM_STEP if key is Qt.Key.Key_Minus else ZOOM_STEP, gesture="key")
        else:
            super().keyPressEvent(event)

    def _walk(self, rows: int, collectives: int) -> None:
        if self._selected is None:
            self.chosen.emit(self._lanes[0].rank, 0)
            return
        rank, index = self._selected
        row = next(row for row, lane in enumerate(self._lanes) if lane.rank == rank)
        target = self._lanes[min(max(row + rows, 0), len(self._lanes) - 1)]
        if rows and target.rank != rank:
            moment_ns = int(self._lanes[row].start_ns[index]) + self._lanes[row].offset_ns - target.offset_ns
            found = target.collective_at(moment_ns, 1 << 62)
            self.chosen.emit(target.rank, found or 0)
        elif collectives:
            self.chosen.emit(rank, min(max(index + collectives, 0), len(self._lanes[row].start_ns) - 1))

    def _collective_at(self, point: QPointF) -> tuple[int, int] | None:
        row = int((point.y() - self._ruler_px()) // self._lane_px())
        if not 0 <= row < len(self._lanes) or point.x() < self._left_px():
            return None
        lane, scale = self._lanes[row], self._scale()
        job_ns = scale.time_ns(point.x() - self._left_px())
        index = lane.collective_at(job_ns - lane.offset_ns, round(scale.ns_per_px * CLICK_PX))
        return None if index is None else (lane.rank, index)

    def _image(self, lane: Lane, scale: TimeScale, rect: QRectF) -> QImage:
        ratio = self.devicePixelRatioF()
        columns, rows = max(1, round(rect.width() * ratio)), max(2, round(rect.height() * ratio))
        key = (lane.rank, scale.start_ns, scale.end_ns, columns, rows)
        if key not in self._images:
            if len(self._images) > 2 * len(self._lanes):
                self._images.clear()
            pixels = lane_pixels(lane, scale.start_ns - lane.offset_ns, scale.end_ns - lane.offset_ns, columns)
            self._images[key] = lane_image(pixels, rows, self._theme.colours)
        return self._images[key]

    def _repaint_all(self) -> None:
        self._images.clear()
        self.update()

    def _scale(self) -> TimeScale:
        """Returns the session's viewport in job time over the width of the lanes."""
        viewport, offset_ns = self._session.viewport, self._offset_ns()
        width_px = max(self.width() - self._left_px() - 2, 1.0)
        return TimeScale(viewport.start_ns + offset_ns, viewport.end_ns + offset_ns, width_px)

    def _offset_ns(self) -> int:
        document = self._session.document
        return document.job.rank_trace(self._session.rank).offset_ns if document else 0

    def _lane_of_session(self) -> Lane | None:
        return next((lane for lane in self._lanes if lane.rank == self._session.rank), None)

    def _title(self, lane: Lane) -> str:
        return tr("rank {rank}", rank=lane.rank)

    def _left_px(self) -> float:
        widths = (self.fontMetrics().horizontalAdvance(self._title(lane)) for lane in self._lanes)
        return max(widths, default=0) * 1.15 + 10

    def _ruler_px(self) -> int:
        return self.fontMetrics().height() + 4

    def _lane_px(self) -> int:
        return self.fontMetrics().height() * 2

    def _lane_rect(self, row: int) -> QRectF:
        top_px = self._ruler_px() + row * self._lane_px() + 2
        return QRectF(self._left_px(), top_px, max(self.width() - self._left_px() - 2, 1.0), self._lane_px() - 5)
