"""Stacked bars lying on their side, one per row: a few, with their values written into them."""

from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from profiler_gui.toolkit.fills import Fill, paint_fill, text_colour_on
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.walked_drawing import Place, WalkedDrawing

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


class StackedBars(WalkedDrawing):
    """Bars on one scale. Arrow keys walk over the parts, Enter or a click activates one.

    Signals:
        activated: Number of the bar and id of the part.
    """

    activated = Signal(int, str)

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, name, parent)
        self._bars: tuple[Bar, ...] = ()

    @property
    def bars(self) -> tuple[Bar, ...]:
        """What is shown."""
        return self._bars

    def set_bars(self, bars: tuple[Bar, ...]) -> None:
        """Shows other bars."""
        self._bars = bars
        self.setAccessibleDescription("\n".join(bar.description for bar in bars))
        self.forget_places()

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
        self.paint_outlines(painter)

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

    def row_lengths(self) -> list[int]:
        """Returns how many parts each bar has."""
        return [len(bar.parts) for bar in self._bars]

    def outline_of(self, place: Place) -> QRectF:
        """Returns the inside of a part."""
        return self.part_rect(*place).adjusted(1, 1, -1, -1)

    def tip_of(self, place: Place) -> str:
        """Returns the name of a part, with the bar's title."""
        bar = self._bars[place[0]]
        return f"{bar.title}: {bar.parts[place[1]].text}"

    def activate(self, place: Place) -> None:
        """Says which part was chosen."""
        self.activated.emit(place[0], self._bars[place[0]].parts[place[1]].id)

    def place_at(self, point: QPoint) -> Place | None:
        """Returns the part under a point."""
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
