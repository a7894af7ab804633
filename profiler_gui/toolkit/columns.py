"""Stacked columns, many in a row, a few rows above each other: steps of ranks, down to several columns per pixel."""

from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from profiler_gui.toolkit.bars import Bar
from profiler_gui.toolkit.fills import paint_fill
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.walked_drawing import Place, WalkedDrawing

MIN_COLUMN_PX = 3
"""Narrower columns cannot be told apart: several become one with minimum, median and maximum."""


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """Columns on one base line; the title of each bar stands below it where there is room."""

    title: str
    bars: tuple[Bar, ...]


class StackedColumns(WalkedDrawing):
    """Rows of columns on one scale. Arrow keys walk over the columns, Enter or a click activates one.

    Where columns outnumber the pixels, neighbours share one: it shows the parts of the bar with the median total, and a
    line from the smallest to the largest total.

    Signals:
        activated: Number of the row and of the bar in it.
    """

    activated = Signal(int, int)

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, name, parent)
        self._rows: tuple[ColumnRow, ...] = ()
        self._longest: list[Bar] = []

    @property
    def rows(self) -> tuple[ColumnRow, ...]:
        """What is shown."""
        return self._rows

    def set_rows(self, rows: tuple[ColumnRow, ...]) -> None:
        """Shows other rows."""
        self._rows = rows
        self._longest = [max(row.bars, key=lambda bar: bar.total) for row in rows if row.bars]
        self.setAccessibleDescription("\n".join(_description(row) for row in rows))
        self.forget_places()

    def sizeHint(self) -> QSize:
        """Qt: a band per row and a line of titles."""
        return QSize(480, len(self._rows) * self._row_px() + self.fontMetrics().height() + 4)

    def minimumSizeHint(self) -> QSize:
        """Qt: the same height, whatever the width."""
        return QSize(160, self.sizeHint().height())

    def groups(self, row: int) -> list[range]:
        """Returns which bars share a column, in order."""
        count, shown = len(self._rows[row].bars), self._shown_count(row)
        bounds = [index * count // shown for index in range(shown + 1)]
        return [range(first, end) for first, end in pairwise(bounds)]

    def column_rect(self, row: int, position: int) -> QRectF:
        """Returns the whole room of the column at a position (of ``groups``)."""
        left_px, right_px = self._plot_range()
        width_px = (right_px - left_px) / self._shown_count(row)
        gap_px = 2.0 if width_px >= 8 else 1.0 if width_px >= 4 else 0.0
        top_px = row * self._row_px() + 4
        return QRectF(left_px + position * width_px, top_px, width_px - gap_px, self._row_px() - 8)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        largest = max((bar.total for bar in self._longest), default=0) or 1
        for number, row in enumerate(self._rows):
            self._paint_title(painter, number, row)
            if not row.bars:
                continue
            for position, group in enumerate(self.groups(number)):
                self._paint_column(painter, row, group, self.column_rect(number, position), largest)
        self._paint_step_titles(painter)
        self.paint_outlines(painter)

    def _paint_title(self, painter: QPainter, number: int, row: ColumnRow) -> None:
        left_px, right_px = self._plot_range()
        top_px = number * self._row_px() + 4
        painter.setPen(QColor(self._theme.colours.grid))
        base_px = top_px + self._row_px() - 8
        painter.drawLine(round(left_px), round(base_px), round(right_px), round(base_px))
        painter.setPen(QColor(self._theme.colours.text))
        title = self.fontMetrics().elidedText(row.title, Qt.TextElideMode.ElideRight, round(left_px - 8))
        place = QRectF(0, top_px, left_px, self._row_px() - 8)
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, title)
        if row.bars:
            longest = max(row.bars, key=lambda bar: bar.total)
            place = QRectF(right_px + 8, top_px, self.width() - right_px - 8, self._row_px() - 8)
            painter.drawText(place, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft, longest.value_text)

    def _paint_column(self, painter: QPainter, row: ColumnRow, group: range, rect: QRectF, largest: float) -> None:
        bar = row.bars[_median(row, group)]
        bottom_px = rect.bottom()
        for part in bar.parts:
            height_px = part.value / largest * rect.height()
            paint_fill(
                painter,
                QRectF(rect.left(), bottom_px - height_px, rect.width(), height_px),
                part.fill,
                self._theme.colours,
            )
            bottom_px -= height_px
        if len(group) > 1:
            totals = [row.bars[index].total for index in group]
            painter.setPen(QColor(self._theme.colours.selection))
            middle_px = round(rect.center().x())
            highest_px, lowest_px = (
                round(rect.bottom() - value / largest * rect.height()) for value in (max(totals), min(totals))
            )
            painter.drawLine(middle_px, highest_px, middle_px, lowest_px)

    def _paint_step_titles(self, painter: QPainter) -> None:
        """Writes titles of the last row's bars below it, as many as do not touch."""
        if not self._rows or not self._rows[-1].bars:
            return
        number = len(self._rows) - 1
        metrics = self.fontMetrics()
        painter.setPen(QColor(self._theme.colours.faint))
        free_from_px = 0.0
        for position, group in enumerate(self.groups(number)):
            title = self._rows[number].bars[group.start].title
            width_px = metrics.horizontalAdvance(title)
            rect = self.column_rect(number, position)
            left_px = rect.center().x() - width_px / 2
            if left_px >= free_from_px and left_px + width_px <= self.width():
                place = QRectF(left_px, len(self._rows) * self._row_px(), width_px + 2, metrics.height())
                painter.drawText(place, Qt.AlignmentFlag.AlignLeft, title)
                free_from_px = left_px + width_px + 12

    def row_lengths(self) -> list[int]:
        """Returns how many bars each row has."""
        return [len(row.bars) for row in self._rows]

    def outline_of(self, place: Place) -> QRectF:
        """Returns the column a bar stands in, with a margin above and below."""
        return self.column_rect(place[0], self._position_of(*place)).adjusted(0, -2, 0, 2)

    def tip_of(self, place: Place) -> str:
        """Returns everything a bar says."""
        row = self._rows[place[0]]
        return f"{row.title}\n{row.bars[place[1]].description}".strip()

    def activate(self, place: Place) -> None:
        """Says which bar was chosen."""
        self.activated.emit(*place)

    def place_at(self, point: QPoint) -> Place | None:
        """Returns the bar under a point: of several in one column that with the median total."""
        row = point.y() // self._row_px()
        left_px, right_px = self._plot_range()
        if not (0 <= row < len(self._rows) and left_px <= point.x() < right_px and self._rows[row].bars):
            return None
        groups = self.groups(row)
        position = min(int((point.x() - left_px) / (right_px - left_px) * len(groups)), len(groups) - 1)
        return row, _median(self._rows[row], groups[position])

    def _position_of(self, row: int, index: int) -> int:
        return next(position for position, group in enumerate(self.groups(row)) if index in group)

    def _row_px(self) -> int:
        return max(self.fontMetrics().height() * (4 if len(self._rows) <= 2 else 2), 28) + 8

    def _shown_count(self, row: int) -> int:
        left_px, right_px = self._plot_range()
        return max(1, min(len(self._rows[row].bars), int((right_px - left_px) / MIN_COLUMN_PX)))

    def _plot_range(self) -> tuple[float, float]:
        metrics = self.fontMetrics()
        titles_px = max((metrics.horizontalAdvance(row.title) for row in self._rows), default=0)
        values_px = max((metrics.horizontalAdvance(bar.value_text) for bar in self._longest), default=0)
        left_px = min(titles_px, self.width() * 0.3) + 12 if titles_px else 0.0
        return left_px, max(self.width() - values_px - 10, left_px + MIN_COLUMN_PX)


def _median(row: ColumnRow, group: range) -> int:
    """Returns the number of the bar with the median total."""
    middle = median_low(row.bars[index].total for index in group)
    return next(index for index in group if row.bars[index].total == middle)


def _description(row: ColumnRow) -> str:
    totals = sorted(row.bars, key=lambda bar: bar.total)
    if not totals:
        return row.title
    words = (totals[0], totals[(len(totals) - 1) // 2], totals[-1])
    return f"{row.title}: {len(totals)}; " + " – ".join(bar.value_text for bar in words)
