"""Memory before and after as curves on the same axes."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from engine.core.number_format import format_bytes, format_count, format_duration_ns
from profiler_gui.panels.whatif.courses import Level, MemoryCourse
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

GAP_ALPHA = 60
MARKS = 6
"""On the axis of sizes, at most: a power of two apart, so that they are round in every binary unit."""


class MemoryCourses(QWidget):
    """A in grey and B in colour on the same axes: reserved as thick lines with the gap between them filled."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._before: MemoryCourse | None = None
        self._after: MemoryCourse | None = None
        self._shows = (True, True)
        self._peaks_bytes: tuple[int | None, int | None] = (None, None)
        self.setAccessibleName(tr("Memory before and after"))
        self.setMinimumHeight(140)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def set_courses(
        self,
        before: MemoryCourse | None,
        after: MemoryCourse | None,
        shows: tuple[bool, bool],
        peaks_bytes: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """Shows others.

        Args:
            before: Of A.
            after: Of B; of another kind than A's it is not drawn: their axes differ.
            shows: Whether A and B are drawn.
            peaks_bytes: Most that the rank reserves in A and B: drawn as a level where the course is not known.
        """
        differs = before is not None and after is not None and before.over_steps != after.over_steps
        self._before, self._after, self._shows = before, None if differs else after, shows
        self._peaks_bytes = peaks_bytes
        self.setAccessibleDescription(" → ".join(format_bytes(peak) for peak in peaks_bytes if peak is not None))
        self.update()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return self._before is None and self._after is None and not any(self._peaks_bytes)

    def sizeHint(self) -> QSize:
        """Qt: a picture."""
        return QSize(480, 260)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        colours = self._theme.colours
        painter.fillRect(self.rect(), QColor(colours.background))
        if self.is_empty:
            painter.setPen(QColor(colours.faint))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, tr("No memory is known of these runs."))
            return
        self._paint_grid(painter)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        levels = [course.reserved if course is not None else None for course in (self._before, self._after)]
        if all(self._shows) and levels[0] is not None and levels[1] is not None:
            self._paint_gap(painter, levels[0], levels[1])
        for course, role, shown in (
            (self._before, colours.baseline, self._shows[0]),
            (self._after, colours.candidate, self._shows[1]),
        ):
            if course is not None and shown:
                painter.setPen(QPen(QColor(role), 1, Qt.PenStyle.DashLine))
                painter.drawPolyline(self._line(course.allocated))
                if course.reserved is not None:
                    painter.setPen(QPen(QColor(role), 2))
                    painter.drawPolyline(self._line(course.reserved))
        self._paint_peaks(painter)

    def _paint_peaks(self, painter: QPainter) -> None:
        """Draws a level for a run of which only the peak of what is reserved is known."""
        colours, plot = self._theme.colours, self._plot()
        sides = (
            (self._before, self._peaks_bytes[0], colours.baseline, self._shows[0], tr("A")),
            (self._after, self._peaks_bytes[1], colours.candidate, self._shows[1], tr("B")),
        )
        for course, peak, role, shown, letter in sides:
            if (course is None or course.reserved is None) and peak is not None and shown:
                y_px = plot.bottom() - peak / self._limits()[1] * plot.height()
                painter.setPen(QPen(QColor(role), 2, Qt.PenStyle.DotLine))
                painter.drawLine(QPointF(plot.left(), y_px), QPointF(plot.right(), y_px))
                text = tr("{run}: at most {size} reserved", run=letter, size=format_bytes(peak))
                x_px = plot.left() + 8 if role == colours.baseline else plot.center().x()
                painter.drawText(QPointF(x_px, y_px - 4), text)

    def _paint_grid(self, painter: QPainter) -> None:
        plot, colours, metrics = self._plot(), self._theme.colours, self.fontMetrics()
        _, highest = self._limits()
        mark_bytes = 1 << max(math.ceil(math.log2(highest / MARKS)), 0)
        for level in range(0, int(highest) + 1, mark_bytes):  # a handful
            y_px = plot.bottom() - level / highest * plot.height()
            painter.setPen(QColor(colours.grid))
            painter.drawLine(QPointF(plot.left(), y_px), QPointF(plot.right(), y_px))
            painter.setPen(QColor(colours.faint))
            text = QRectF(0, y_px - metrics.height() / 2, plot.left() - 6, metrics.height())
            painter.drawText(text, Qt.AlignmentFlag.AlignRight, format_bytes(level))
        course = self._before or self._after
        last, _ = self._limits()
        if course is not None:
            end = (
                tr("step {number}", number=format_count(round(last))) if course.over_steps else format_duration_ns(last)
            )
            words = QRectF(plot.left(), plot.bottom() + 2, plot.width(), metrics.height())
            painter.drawText(words, Qt.AlignmentFlag.AlignRight, end)
            legend = tr("A grey, B coloured · reserved thick, allocated dashed")
            if course.reserved is None:
                legend = tr("A grey, B coloured · reserved at most when replayed · allocated as recorded, dashed")
            painter.drawText(words, Qt.AlignmentFlag.AlignLeft, legend)

    def _paint_gap(self, painter: QPainter, before: Level, after: Level) -> None:
        """Fills what lies between the two lines: the saving, or the loss."""
        outline = self._line(before)
        back = self._line(after)
        for index in range(back.size() - 1, -1, -1):  # as many points as pixels
            outline.append(back.at(index))
        saves = after.y_bytes.max(initial=0) <= before.y_bytes.max(initial=0)
        colour = QColor(self._theme.colours.computing if saves else self._theme.colours.error)
        colour.setAlpha(GAP_ALPHA)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawPolygon(outline)
        painter.setBrush(Qt.BrushStyle.NoBrush)

    def _line(self, level: Level) -> QPolygonF:
        """Returns a level as points, one per pixel at most: the highest of what falls into it."""
        plot = self._plot()
        last, highest = self._limits()
        if not len(level.x):
            return QPolygonF()
        pixels = np.clip(level.x / max(last, 1.0) * (plot.width() - 1), 0, plot.width() - 1).astype(np.int64)
        starts = np.flatnonzero(np.diff(pixels, prepend=-1))
        tops = np.maximum.reduceat(level.y_bytes, starts)
        ends = level.y_bytes[np.append(starts[1:], len(pixels)) - 1]
        points = []
        for pixel, top, end in zip(pixels[starts].tolist(), tops.tolist(), ends.tolist(), strict=True):  # one per pixel
            for value in (top, end):
                points.append(QPointF(plot.left() + pixel, plot.bottom() - value / highest * plot.height()))
        return QPolygonF(points)

    def event(self, event: QEvent) -> bool:
        """Qt: tooltips read both curves under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip and not self.is_empty:
            plot = self._plot()
            last, _ = self._limits()
            x = (event.pos().x() - plot.left()) / max(plot.width() - 1, 1) * last
            lines = [
                f"{name}: {_levels_text(course, x)}"
                for name, course in ((tr("A"), self._before), (tr("B"), self._after))
                if course is not None and len(course.allocated.x)
            ]
            QToolTip.showText(event.globalPos(), "\n".join(lines), self)
            return True
        return super().event(event)

    def _limits(self) -> tuple[float, float]:
        courses = [item for item in (self._before, self._after) if item is not None and len(item.allocated.x)]
        last = max((float(item.allocated.x[-1]) for item in courses), default=1.0)
        drawn = (level for item in courses for level in (item.reserved, item.allocated) if level is not None)
        levels = [float(level.y_bytes.max(initial=0)) for level in drawn]
        levels += [float(peak) for peak in self._peaks_bytes if peak is not None]
        return last or 1.0, max(levels, default=1.0) * 1.05 or 1.0

    def _plot(self) -> QRectF:
        metrics = self.fontMetrics()
        left_px = metrics.horizontalAdvance("00.00 GiB") + 8
        top_px, bottom_px = metrics.height() / 2 + 2, metrics.height() + 4
        return QRectF(left_px, top_px, max(self.width() - left_px - 6, 10), max(self.height() - top_px - bottom_px, 10))


def _levels_text(course: MemoryCourse, x: float) -> str:
    levels = (course.reserved, course.allocated)
    return " · ".join(format_bytes(_at(level, x)) for level in levels if level is not None)


def _at(level: Level, x: float) -> int:
    """Returns what holds at an x."""
    place = int(np.searchsorted(level.x, x, side="right")) - 1
    return int(level.y_bytes[max(place, 0)])
