"""Occurrences of a candidate as small lanes on one scale."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from engine.core.number_format import format_duration_ns, format_ratio
from profiler_gui.panels.fusion.occurrences import LaneSlice, OccurrenceLane
from profiler_gui.toolkit.fills import COMPUTING, Fill, mixed, text_colour_on
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.time_axis import time_text
from profiler_gui.toolkit.translations import tr

GAP_PX = 6
MIN_TEXT_PX = 26
TYPICAL_RATIO = 0.005
"""Lengths nearer to the median than this are not called longer or shorter."""


class OccurrenceLanes(QWidget):
    """Lanes with the kernels of one occurrence each, names, durations and shapes where they fit.

    Arrow keys walk over lanes and kernels, Enter opens the lane.

    Signals:
        lane_chosen: Index of an occurrence: its title or its empty space was clicked.
        event_chosen: Index of an occurrence and the event row of a kernel in it.
        lane_opened: Index of an occurrence: double click or Enter.
    """

    lane_chosen = Signal(int)
    event_chosen = Signal(int, int)
    lane_opened = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lanes: tuple[OccurrenceLane, ...] = ()
        self._count = 0
        self._selected: tuple[int | None, int | None] = (None, None)
        self._at: tuple[int, int] | None = None
        self.setAccessibleName(tr("Occurrences"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def lanes(self) -> tuple[OccurrenceLane, ...]:
        """What is shown, from the top."""
        return self._lanes

    @property
    def selected_occurrence(self) -> int | None:
        """Index of the occurrence that is marked."""
        return self._selected[0]

    def set_lanes(self, lanes: tuple[OccurrenceLane, ...], count: int) -> None:
        """Shows other lanes, out of ``count`` occurrences."""
        self._lanes, self._count, self._at = lanes, count, None
        self.setAccessibleDescription("\n".join(self.title_of(lane) for lane in lanes))
        self.updateGeometry()
        self.update()

    def set_selected(self, occurrence: int | None, event: int | None) -> None:
        """Marks a lane and outlines a kernel."""
        self._selected = (occurrence, event)
        self.update()

    def title_of(self, lane: OccurrenceLane) -> str:
        """Returns ``"12 of 56 · 234 µs, 35 % longer"``."""
        number = tr("{number} of {count}", number=lane.index + 1, count=f"{self._count:,}")
        return f"{number} · {format_duration_ns(lane.length_ns)}, {difference_text(lane.difference_ratio)}"

    def slice_rect(self, row: int, number: int) -> QRectF:
        """Returns where a kernel is drawn."""
        return self._slice_rect(row, number, self._strip())

    def _slice_rect(self, row: int, number: int, strip: tuple[float, float]) -> QRectF:
        """As ``slice_rect``; measuring the strip once serves all kernels."""
        left_px, width_px = strip
        longest_ns = max((lane.length_ns for lane in self._lanes), default=1) or 1
        item = self._lanes[row].slices[number]
        top_px = row * self._lane_px() + 3
        scale = width_px / longest_ns
        shown_px = max(item.duration_ns * scale, 1.0)
        return QRectF(left_px + item.offset_ns * scale, top_px, shown_px, self._lane_px() - 6)

    def sizeHint(self) -> QSize:
        """Qt: all lanes."""
        return QSize(480, len(self._lanes) * self._lane_px() + 2)

    def minimumSizeHint(self) -> QSize:
        """Qt: all lanes, whatever the width."""
        return QSize(200, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        colours = self._theme.colours
        strip = left_px, width_px = self._strip()
        for row, lane in enumerate(self._lanes):
            band = QRectF(0, row * self._lane_px(), self.width(), self._lane_px())
            if lane.index == self._selected[0]:
                painter.fillRect(band, mixed(QColor(colours.range), QColor(colours.background), 0.8))
            self._paint_title(painter, lane, QRectF(4, band.top(), left_px - GAP_PX - 4, band.height()))
            painter.fillRect(QRectF(left_px, band.center().y() - 0.5, width_px, 1), QColor(colours.grid))
            for number, item in enumerate(lane.slices):
                self._paint_slice(painter, item, self._slice_rect(row, number, strip), is_odd=number % 2 == 1)
        self._paint_outlines(painter)

    def _paint_title(self, painter: QPainter, lane: OccurrenceLane, rect: QRectF) -> None:
        painter.setPen(QColor(self._theme.colours.text))
        half = QRectF(rect.left(), rect.top() + 2, rect.width(), rect.height() / 2)
        metrics = self.fontMetrics()
        first, _, second = self.title_of(lane).partition(", ")
        for text, place in ((first, half), (second, half.translated(0, rect.height() / 2 - 2))):
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, round(rect.width()))
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)

    def _paint_slice(self, painter: QPainter, item: LaneSlice, rect: QRectF, *, is_odd: bool) -> None:
        colours = self._theme.colours
        colour = QColor(COMPUTING.role(colours))
        # Neighbours differ in lightness, so that kernels without a gap between them stay apart.
        painter.fillRect(rect, mixed(colour, QColor(colours.background), 0.25) if is_odd else colour)
        if rect.width() < MIN_TEXT_PX:
            return
        painter.setPen(text_colour_on(_fill_of(is_odd=is_odd), colours))
        metrics = self.fontMetrics()
        room_px = round(rect.width()) - 6
        duration = format_duration_ns(item.duration_ns)
        whole = f"{item.name} {duration}"
        fits = metrics.horizontalAdvance(whole) <= room_px
        lines = [whole, item.shapes] if fits else [item.name, duration]
        height_px = rect.height() / 2
        for number, text in enumerate(lines[:2]):
            place = QRectF(rect.left() + 3, rect.top() + number * height_px, room_px, height_px)
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room_px)
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)

    def _paint_outlines(self, painter: QPainter) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._theme.colours.selection), 2))
        for row, lane in enumerate(self._lanes):
            for number, item in enumerate(lane.slices):
                if item.event == self._selected[1] or (self.hasFocus() and self._at == (row, number)):
                    painter.drawRect(self.slice_rect(row, number).adjusted(1, 1, -1, -1))

    def event(self, event: QEvent) -> bool:
        """Qt: tooltips name the kernel under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            row, number = self._place_at(event.pos())
            if row is None:
                QToolTip.hideText()
            else:
                lane = self._lanes[row]
                text = self.title_of(lane) if number is None else slice_text(lane, lane.slices[number])
                QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Qt: everything in a lane can be clicked."""
        row, _ = self._place_at(event.position().toPoint())
        self.setCursor(Qt.CursorShape.ArrowCursor if row is None else Qt.CursorShape.PointingHandCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Qt: chooses a kernel or a lane."""
        row, number = self._place_at(event.position().toPoint())
        if row is None or event.button() is not Qt.MouseButton.LeftButton:
            return
        lane = self._lanes[row]
        self._at = (row, number or 0)
        if number is None:
            self.lane_chosen.emit(lane.index)
        else:
            self.event_chosen.emit(lane.index, lane.slices[number].event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Qt: opens a lane."""
        row, _ = self._place_at(event.position().toPoint())
        if row is not None:
            self.lane_opened.emit(self._lanes[row].index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Qt: walks over lanes and kernels."""
        steps = {Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0), Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1)}
        key = Qt.Key(event.key())
        if not self._lanes or key not in {*steps, Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            super().keyPressEvent(event)
            return
        row, number = self._at or (0, -1 if key is Qt.Key.Key_Right else 0)
        if key not in steps:
            self.lane_opened.emit(self._lanes[row].index)
            return
        row = min(max(row + steps[key][0], 0), len(self._lanes) - 1)
        number = min(max(number + steps[key][1], 0), len(self._lanes[row].slices) - 1)
        self._at = (row, number)
        lane = self._lanes[row]
        self.event_chosen.emit(lane.index, lane.slices[number].event)
        self.update()

    def _place_at(self, point: QPoint) -> tuple[int | None, int | None]:
        """Returns the lane and the kernel under a point, or nearly under it."""
        row = point.y() // self._lane_px()
        if not 0 <= row < len(self._lanes):
            return None, None
        strip = self._strip()
        for number in range(len(self._lanes[row].slices)):
            if self._slice_rect(row, number, strip).adjusted(-1, 0, 1, 0).contains(point):
                return row, number
        return row, None

    def _lane_px(self) -> int:
        return self.fontMetrics().height() * 2 + 12

    def _strip(self) -> tuple[float, float]:
        """Returns where kernels begin, and the width they have."""
        metrics = self.fontMetrics()
        titles = [part for lane in self._lanes for part in self.title_of(lane).split(", ")]
        widest_px = max((metrics.horizontalAdvance(text) for text in titles), default=0) + 12
        left_px = min(widest_px, self.width() * 0.35) + GAP_PX
        return left_px, max(self.width() - left_px - 4, 1.0)


def difference_text(difference_ratio: float) -> str:
    """Returns how an occurrence's length compares with the median one."""
    if abs(difference_ratio) < TYPICAL_RATIO:
        return tr("typical")
    share = format_ratio(abs(difference_ratio))
    return tr("{share} longer", share=share) if difference_ratio > 0 else tr("{share} shorter", share=share)


def slice_text(lane: OccurrenceLane, item: LaneSlice) -> str:
    """Returns everything of a kernel, a line each."""
    lines = [
        item.name if item.name == item.full_name else f"{item.name} ({item.full_name})",
        tr(
            "{duration}, from {start}",
            duration=format_duration_ns(item.duration_ns),
            start=time_text(lane.start_ns + item.offset_ns),
        ),
    ]
    return "\n".join([*lines, item.shapes] if item.shapes else lines)


def _fill_of(*, is_odd: bool) -> Fill:
    """Returns a fill as light as a kernel is painted, for the colour of the text on it."""
    if not is_odd:
        return COMPUTING
    return Fill(lambda colours: mixed(QColor(colours.computing), QColor(colours.background), 0.25).name())
