"""From the step time of A to that of B, toggle by toggle, as falling and rising bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHelpEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from engine.core.number_format import format_duration_ns
from profiler_gui.panels.whatif.words import signed_duration
from profiler_gui.toolkit.fills import Fill, paint_fill
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from engine.whatif.results import WhatIf

LEAST_INTERACTION_RATIO = 0.0005
"""Of the baseline: what toggles do to each other below this is not drawn."""
LEAST_CHANGE_NS = 0.5
"""Less is none: times are whole ns."""
CUT_BELOW_RATIO = 0.8
"""Where everything happens above this share of the largest value, the axis begins above zero and says so."""
LEAST_CUT_RATIO = 0.005
"""Of the largest value: smaller changes are not blown up to the width of the picture."""
BASELINE = Fill(lambda colours: colours.baseline)
CANDIDATE = Fill(lambda colours: colours.candidate)
SAVED = Fill(lambda colours: colours.computing, Qt.BrushStyle.BDiagPattern)
LOST = Fill(lambda colours: colours.error, Qt.BrushStyle.FDiagPattern)


@dataclass(frozen=True, slots=True)
class Rung:
    """One bar.

    Attributes:
        title: In front of it.
        start_ns: Where the bar before it ends.
        end_ns: Where it ends.
        is_whole: Whether it is a step time and begins at zero.
        tip: Read in the tooltip.
    """

    title: str
    start_ns: float
    end_ns: float
    is_whole: bool
    tip: str

    @property
    def change_ns(self) -> float:
        """What it adds; a step time is no change."""
        return 0.0 if self.is_whole else self.end_ns - self.start_ns

    @property
    def value_text(self) -> str:
        """Behind the bar."""
        if self.is_whole:
            return format_duration_ns(self.end_ns)
        if abs(self.change_ns) < LEAST_CHANGE_NS:
            return tr("= no change")
        return f"{'▼' if self.change_ns <= 0 else '▲'} {signed_duration(self.change_ns)}"


def rungs_of(answer: WhatIf, titles: dict[str, str]) -> tuple[Rung, ...]:
    """Returns the bars from the run as it is to the candidate.

    Contributions are marginal and in the order applied. Where they do not add up to the candidate, the rest is what the
    toggles do to each other.

    Args:
        answer: The engine's.
        titles: What optimizations are called, by id.
    """
    before_ns, after_ns = answer.baseline.mean_step_ns, answer.candidate.mean_step_ns
    if not before_ns or not after_ns:
        return ()
    rungs = [Rung(tr("as it is"), 0.0, before_ns, is_whole=True, tip=tr("the run as it is"))]
    at_ns = before_ns
    for item in answer.contributions:
        tip = tr(
            "{change} after those before it; alone {alone}",
            change=signed_duration(-item.gain_ns),
            alone=signed_duration(-item.alone_ns),
        )
        rungs.append(Rung(titles.get(item.id, item.id), at_ns, at_ns - item.gain_ns, is_whole=False, tip=tip))
        at_ns -= item.gain_ns
    if abs(at_ns - after_ns) >= LEAST_INTERACTION_RATIO * before_ns:
        tip = tr("what they do to each other")
        rungs.append(Rung(tr("interaction"), at_ns, after_ns, is_whole=False, tip=tip))
    rungs.append(Rung(tr("with all of it"), 0.0, after_ns, is_whole=True, tip=tr("the run with everything that is on")))
    return tuple(rungs)


class Waterfall(QWidget):
    """Bars from the top: the run as it is, what each toggle saves (▼) or costs (▲), the run with all of it."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rungs: tuple[Rung, ...] = ()
        self.setAccessibleName(tr("Step time, toggle by toggle"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """What is shown."""
        return self._rungs

    def set_rungs(self, rungs: tuple[Rung, ...]) -> None:
        """Shows other bars."""
        self._rungs = rungs
        self.setAccessibleDescription("\n".join(f"{rung.title}: {rung.value_text}" for rung in rungs))
        self.updateGeometry()
        self.update()

    @property
    def axis_start_ns(self) -> float:
        """Where the axis begins: zero, or shortly below the smallest value where nothing happens further down."""
        ends = [value for rung in self._rungs for value in (rung.start_ns, rung.end_ns) if value > 0]
        lowest, highest = min(ends, default=0.0), max(ends, default=0.0)
        is_cut = CUT_BELOW_RATIO * highest <= lowest <= (1 - LEAST_CUT_RATIO) * highest
        return max(lowest - (highest - lowest) * 0.5, 0.0) if is_cut else 0.0

    def bar_rect(self, number: int) -> QRectF:
        """Returns where a bar is drawn; at least a pixel wide."""
        left_px, right_px = self._plot_range()
        first_ns = self.axis_start_ns
        span_ns = max((rung.end_ns for rung in self._rungs), default=1.0) * 1.001 - first_ns or 1.0
        rung = self._rungs[number]
        low_ns, high_ns = sorted((max(rung.start_ns, first_ns), max(rung.end_ns, first_ns)))
        scale = (right_px - left_px) / span_ns
        x_px = left_px + (low_ns - first_ns) * scale
        width_px = max((high_ns - low_ns) * scale, 1.0)
        return QRectF(x_px, number * self._row_px() + 3, width_px, self._row_px() - 6)

    def sizeHint(self) -> QSize:
        """Qt: as tall as the bars."""
        axis_px = self.fontMetrics().height() + 2 if self._rungs else 0
        return QSize(420, len(self._rungs) * self._row_px() + axis_px)

    def minimumSizeHint(self) -> QSize:
        """Qt: as tall as the bars, whatever the width."""
        return QSize(220, self.sizeHint().height())

    def event(self, event: QEvent) -> bool:
        """Qt: tooltips say what each gives after the others and alone."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            number = event.pos().y() // self._row_px()
            if 0 <= number < len(self._rungs):
                rung = self._rungs[number]
                QToolTip.showText(event.globalPos(), f"{rung.title}: {rung.value_text}\n{rung.tip}", self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        for number in range(len(self._rungs)):
            self._paint_rung(painter, number)
        if self._rungs and self.axis_start_ns > 0:
            self._paint_cut(painter)

    def _paint_rung(self, painter: QPainter, number: int) -> None:
        rung, rect, colours = self._rungs[number], self.bar_rect(number), self._theme.colours
        metrics = self.fontMetrics()
        left_px, _ = self._plot_range()
        painter.setPen(QColor(colours.text))
        title = metrics.elidedText(rung.title, Qt.TextElideMode.ElideRight, round(left_px - 8))
        middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(QRectF(0, rect.top(), left_px - 8, rect.height()), middle, title)
        paint_fill(painter, rect, self._fill(number), colours)
        painter.setPen(QColor(colours.text))
        text_px = metrics.horizontalAdvance(rung.value_text)
        x_px = rect.right() + 6 if rect.right() + 6 + text_px <= self.width() else rect.left() - 6 - text_px
        painter.drawText(QRectF(x_px, rect.top(), text_px + 2, rect.height()), middle, rung.value_text)
        if number + 1 < len(self._rungs):
            self._paint_link(painter, number)

    def _fill(self, number: int) -> Fill:
        rung = self._rungs[number]
        if rung.is_whole:
            return BASELINE if number == 0 else CANDIDATE
        return SAVED if rung.change_ns <= 0 else LOST

    def _paint_link(self, painter: QPainter, number: int) -> None:
        """Draws the thin line from the end of a bar to where the next one starts."""
        rung, rect = self._rungs[number], self.bar_rect(number)
        ends_right = rung.is_whole or rung.change_ns > 0
        x_px = rect.right() if ends_right else rect.left()
        painter.setPen(QPen(QColor(self._theme.colours.faint), 1, Qt.PenStyle.DotLine))
        painter.drawLine(QPointF(x_px, rect.bottom()), QPointF(x_px, rect.bottom() + 6))

    def _paint_cut(self, painter: QPainter) -> None:
        """Marks that the axis does not begin at zero."""
        colours, metrics = self._theme.colours, self.fontMetrics()
        left_px, _ = self._plot_range()
        for number, rung in enumerate(self._rungs):
            if rung.is_whole:
                rect = self.bar_rect(number)
                x_px = rect.left() + 8
                zigzag = QPolygonF(
                    [
                        QPointF(x_px, rect.top()),
                        QPointF(x_px + 4, rect.top() + rect.height() / 3),
                        QPointF(x_px, rect.top() + rect.height() * 2 / 3),
                        QPointF(x_px + 4, rect.bottom()),
                    ]
                )
                painter.setPen(QPen(QColor(colours.background), 3))
                painter.drawPolyline(zigzag)
        painter.setPen(QColor(colours.faint))
        text = tr("the axis begins at {time}", time=format_duration_ns(self.axis_start_ns))
        top_px = len(self._rungs) * self._row_px()
        painter.drawText(QRectF(left_px, top_px, self.width() - left_px, metrics.height()), text)

    def _row_px(self) -> int:
        return self.fontMetrics().height() + 12

    def _plot_range(self) -> tuple[float, float]:
        metrics = self.fontMetrics()
        titles_px = max((metrics.horizontalAdvance(rung.title) for rung in self._rungs), default=0)
        values_px = max((metrics.horizontalAdvance(rung.value_text) for rung in self._rungs), default=0)
        left_px = min(titles_px + 10.0, self.width() * 0.42)
        return left_px, max(self.width() - values_px - 10.0, left_px + 40.0)
