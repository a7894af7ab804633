"""Stacked bars lying on their side, one per row: a few, with their values written into them."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from profiler_gui.toolkit.fills import Fill, paint_fill, text_colour_on
from profiler_gui.toolkit.theme import Theme

GAP_PX = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a stacked bar; texts are already translated.

    Attributes:
        id: What ``activated`` says.
        value: In the unit of all bars of one widget; not negative.
        text: Read in the tooltip and by screen readers: ``"waiting 312 ms (39 %)"``.
        short_texts: Written into the part, the first that fits: ``("waiting 39 %", "39 %")``.
        fill: How it is drawn.
    """

    id: str
    value: float
    text: str
    short_texts: tuple[str, ...]
    fill: Fill


@dataclass(frozen=True, slots=True)
class Bar:
    """One stacked bar.

    Attributes:
        title: In front of it.
        parts: From the left (bottom).
        value_text: Behind it.
        is_current: Whether it is marked as the one the rest of the window shows.
    """

    title: str
    parts: tuple[Part, ...]
    value_text: str = ""
    is_current: bool = False

    @property
    def total(self) -> float:
        """The sum of its parts."""
        return sum(part.value for part in self.parts)

    @property
    def description(self) -> str:
        """Everything it says, as one text."""
        parts = ", ".join(part.text for part in self.parts)
        return f"{self.title} {self.value_text}: {parts}".strip()


class StackedBars(QWidget):
    """Bars on one scale. Arrow keys walk over the parts, Enter or a click activates one.

    Signals:
        activated: Number of the bar and id of the part.
    """

    activated = Signal(int, str)

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._bars: tuple[Bar, ...] = ()
        self._at: tuple[int, int] | None = None
        self._hovered: tuple[int, int] | None = None
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def bars(self) -> tuple[Bar, ...]:
        """What is shown."""
        return self._bars

    def set_bars(self, bars: tuple[Bar, ...]) -> None:
        """Shows other bars."""
        self._bars = bars
        self._at = None
        self._hovered = None
        self.setAccessibleDescription("\n".join(bar.description for bar in bars))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Qt: as tall as the bars."""
        return QSize(480, len(self._bars) * self._row_px() + 4)

    def minimumSizeHint(self) -> QSize:
        """Qt: as tall as the bars, whatever the width."""
        return QSize(160, self.sizeHint().height())

    def part_rect(self, row: int, column: int) -> QRectF:
        """Returns where a part is drawn."""
        left_px, right_px = self._plot_range()
        scale = (right_px - left_px) / (max((bar.total for bar in self._bars), default=0) or 1)
        before = sum(part.value for part in self._bars[row].parts[:column])
        height_px = self._row_px()
        width_px = self._bars[row].parts[column].value * scale
        return QRectF(left_px + before * scale, row * height_px + 4, width_px, height_px - 6)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        left_px, right_px = self._plot_range()
        for row, bar in enumerate(self._bars):
            band = QRectF(0, row * self._row_px() + 4, self.width(), self._row_px() - 6)
            self._paint_titles(painter, bar, band, left_px, right_px)
            for column, part in enumerate(bar.parts):
                self._paint_part(painter, part, self.part_rect(row, column))
        if self.hasFocus() and self._at is None:
            painter.setPen(QPen(QColor(self._theme.colours.range), 1, Qt.PenStyle.DotLine))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        for place, width_px in ((self._hovered, 1.0), (self._at if self.hasFocus() else None, 2.0)):
            if place is not None:
                painter.setPen(QPen(QColor(self._theme.colours.selection), width_px))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(self.part_rect(*place).adjusted(1, 1, -1, -1))

    def _paint_titles(self, painter: QPainter, bar: Bar, band: QRectF, left_px: float, right_px: float) -> None:
        metrics = self.fontMetrics()
        font = self.font()
        font.setBold(bar.is_current)
        painter.setFont(font)
        painter.setPen(QColor(self._theme.colours.text))
        title = metrics.elidedText(bar.title, Qt.TextElideMode.ElideRight, round(left_px - GAP_PX))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRectF(0, band.top(), left_px, band.height()), middle | Qt.AlignmentFlag.AlignLeft, title)
        value = QRectF(right_px + GAP_PX, band.top(), self.width() - right_px - GAP_PX, band.height())
        painter.drawText(value, middle | Qt.AlignmentFlag.AlignLeft, bar.value_text)

    def _paint_part(self, painter: QPainter, part: Part, rect: QRectF) -> None:
        if rect.width() <= 0:
            return
        paint_fill(painter, rect, part.fill, self._theme.colours)
        room_px = rect.width() - 8
        metrics = self.fontMetrics()
        text = next((text for text in part.short_texts if metrics.horizontalAdvance(text) <= room_px), "")
        if text and not part.fill.is_solid:
            width_px = metrics.horizontalAdvance(text) + 6
            painter.fillRect(
                QRectF(rect.center().x() - width_px / 2, rect.top() + 2, width_px, rect.height() - 4),
                QColor(self._theme.colours.background),
            )
        painter.setFont(self.font())
        painter.setPen(text_colour_on(part.fill, self._theme.colours))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)

    def event(self, event: QEvent) -> bool:
        """Qt: tooltips name the part under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            place = self._part_at(event.pos())
            if place is None:
                QToolTip.hideText()
            else:
                bar = self._bars[place[0]]
                QToolTip.showText(event.globalPos(), f"{bar.title}: {bar.parts[place[1]].text}", self)
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Qt: outlines what a click would activate."""
        self._hovered = self._part_at(event.position().toPoint())
        self.setCursor(Qt.CursorShape.PointingHandCursor if self._hovered else Qt.CursorShape.ArrowCursor)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """Qt: nothing is under the pointer any more."""
        self._hovered = None
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Qt: the part under the pointer is the one a release activates."""
        self._at = self._part_at(event.position().toPoint())
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Qt: activates the part that was pressed, if the pointer is still on it."""
        place = self._part_at(event.position().toPoint())
        if place is not None and place == self._at and event.button() is Qt.MouseButton.LeftButton:
            self.activated.emit(place[0], self._bars[place[0]].parts[place[1]].id)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Qt: walks over the parts and activates one."""
        steps = {
            Qt.Key.Key_Left: (0, -1),
            Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_Up: (-1, 0),
            Qt.Key.Key_Down: (1, 0),
        }
        key = Qt.Key(event.key())
        if not any(bar.parts for bar in self._bars) or key not in {
            *steps,
            Qt.Key.Key_Return,
            Qt.Key.Key_Enter,
            Qt.Key.Key_Space,
        }:
            super().keyPressEvent(event)
            return
        row, column = self._at or (0, 0)
        if key in steps:
            if self._at is not None:
                row = min(max(row + steps[key][0], 0), len(self._bars) - 1)
                column += steps[key][1]
            column = min(max(column, 0), len(self._bars[row].parts) - 1)
            self._at = (row, column) if column >= 0 else self._at
            self.update()
        elif self._at is not None:
            self.activated.emit(row, self._bars[row].parts[column].id)

    def _part_at(self, point: QPoint) -> tuple[int, int] | None:
        row = (point.y() - 4) // self._row_px()
        if not 0 <= row < len(self._bars):
            return None
        for column in range(len(self._bars[row].parts)):
            rect = self.part_rect(row, column)
            if rect.left() <= point.x() < rect.right():
                return row, column
        return None

    def _row_px(self) -> int:
        return round(self.fontMetrics().height() * 1.5) + 6

    def _plot_range(self) -> tuple[float, float]:
        metrics = self.fontMetrics()
        titles_px = max((metrics.horizontalAdvance(bar.title) * 1.1 for bar in self._bars), default=0)
        values_px = max((metrics.horizontalAdvance(bar.value_text) * 1.1 for bar in self._bars), default=0)
        left_px = min(titles_px, self.width() * 0.3) + GAP_PX if titles_px else 0.0
        right_px = self.width() - (values_px + GAP_PX if values_px else 0) - 2
        return left_px, max(right_px, left_px + 1)
