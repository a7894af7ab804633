"""When every member of one collective arrived, and what the last one did before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.core.number_format import format_duration_ns
from profiler_gui.panels.communication.late_rank import LateRankWork
from profiler_gui.toolkit.fills import TRANSFER, WAIT, paint_fill
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.time_axis import TimeScale
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication import Arrival, Collective

MIN_VISIBLE_RATIO = 0.2
"""A column that holds less is drawn this strong: pale, not invisible."""


class ArrivalChart(QWidget):
    """A tick per member at its arrival, the last one red; then light waiting and dark transfer."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._collective: Collective | None = None
        self._work: LateRankWork | None = None
        self.setAccessibleName(tr("Arrival of the members"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def collective(self) -> Collective | None:
        """What is shown."""
        return self._collective

    def set_collective(self, collective: Collective | None, work: LateRankWork | None) -> None:
        """Shows another collective, or none."""
        self._collective = collective if collective is not None and collective.members else None
        self._work = work
        members = self._collective.members if self._collective else ()
        self.setAccessibleDescription("\n".join(f"{self._title(item)} {self._delay(item)}" for item in members))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Qt: a row per member."""
        return QSize(320, self.height_of(1 << 16))

    def height_of(self, max_rows: int) -> int:
        """Returns the height of the rows, of so many at most."""
        count = len(self._collective.members) if self._collective else 0
        return min(count, max_rows) * self._row_px() + 4

    def minimumSizeHint(self) -> QSize:
        """Qt: the same height, whatever the width."""
        return QSize(180, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        if self._collective is None:
            return
        painter = QPainter(self)
        members = self._collective.members
        left_px, right_px = self._plot_range()
        first_ns, last_ns = members[0].start_ns, members[-1].start_ns
        end_ns = max(max(member.end_ns for member in members), first_ns + 1)
        scale = TimeScale(first_ns, end_ns, right_px - left_px)
        for row, member in enumerate(members):
            rect = QRectF(left_px, row * self._row_px() + 4, right_px - left_px, self._row_px() - 6)
            self._paint_texts(painter, member, rect)
            arrived_px, met_px, left_at_px = (
                left_px + scale.x_px(moment) for moment in (member.start_ns, last_ns, member.end_ns)
            )
            bar = rect.adjusted(0, rect.height() * 0.2, 0, -rect.height() * 0.2)
            if member.rank == self._collective.late_rank:
                self._paint_computing(painter, scale, bar)
            met_px = min(met_px, left_at_px)
            wait = QRectF(arrived_px, bar.top(), met_px - arrived_px, bar.height())
            transfer = QRectF(met_px, bar.top(), left_at_px - met_px, bar.height())
            paint_fill(painter, wait, WAIT, self._theme.colours)
            paint_fill(painter, transfer, TRANSFER, self._theme.colours)
            self._paint_tick(painter, arrived_px, rect, is_last=member.rank == self._collective.late_rank)

    def _paint_texts(self, painter: QPainter, member: Arrival, rect: QRectF) -> None:
        painter.setPen(QColor(self._theme.colours.text))
        middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(QRectF(0, rect.top(), rect.left(), rect.height()), middle, self._title(member))
        place = QRectF(rect.right() + 8, rect.top(), self.width() - rect.right() - 8, rect.height())
        painter.drawText(place, middle, self._delay(member))

    def _paint_tick(self, painter: QPainter, x_px: float, rect: QRectF, *, is_last: bool) -> None:
        colours = self._theme.colours
        painter.setPen(QPen(QColor(colours.error if is_last else colours.selection), 4 if is_last else 2))
        x_px = max(x_px, rect.left() + 1)
        painter.drawLine(QPointF(x_px, rect.top()), QPointF(x_px, rect.bottom()))

    def _paint_computing(self, painter: QPainter, scale: TimeScale, bar: QRectF) -> None:
        """Paints what the last member computed before it came, thinner than what belongs to the collective."""
        from engine.trace.intervals import covered_ns

        if self._work is None:
            return
        thin = bar.adjusted(0, bar.height() * 0.25, 0, -bar.height() * 0.25)
        count = max(1, int(thin.width()))
        edges_ns = scale.start_ns + (scale.end_ns - scale.start_ns) * np.arange(count + 1, dtype=np.int64) // count
        edges_ns -= self._work.offset_ns
        filled = covered_ns(self._work.computing, edges_ns[:-1], edges_ns[1:]) / np.maximum(np.diff(edges_ns), 1)
        colour = QColor(self._theme.colours.computing)
        # A loop over pixel columns, not over events: a column is as strong as what lies in it.
        for column in np.flatnonzero(filled > 0).tolist():
            colour.setAlphaF(max(float(filled[column]), MIN_VISIBLE_RATIO))
            painter.fillRect(QRectF(thin.left() + column, thin.top(), 1.0, thin.height()), colour)

    def _title(self, member: Arrival) -> str:
        return tr("rank {rank}", rank=member.rank)

    def _delay(self, member: Arrival) -> str:
        if self._collective is None:
            return ""
        delay_ns = member.start_ns - self._collective.members[0].start_ns
        text = "+" + format_duration_ns(delay_ns)
        return tr("{delay}, last", delay=text) if member.rank == self._collective.late_rank else text

    def _row_px(self) -> int:
        return round(self.fontMetrics().height() * 1.5) + 4

    def _plot_range(self) -> tuple[float, float]:
        metrics = self.fontMetrics()
        members = self._collective.members if self._collective else ()
        left_px = max((metrics.horizontalAdvance(self._title(item)) for item in members), default=0) + 10
        values_px = max((metrics.horizontalAdvance(self._delay(item)) for item in members), default=0) + 12
        return float(left_px), max(float(self.width() - values_px), left_px + 1.0)
