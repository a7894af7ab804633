"""The tuning loop as it goes: a bar per round, what was against it, and what was switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QSizePolicy,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.core.number_format import format_ratio
from profiler_gui.panels.whatif.words import signed_ratio, step_text
from profiler_gui.session.rerun_state import Activity, Tuning
from profiler_gui.toolkit.fills import Fill, paint_fill
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from engine.whatif.results import Side

_BASELINE = Fill(lambda colours: colours.baseline)
_ROUND = Fill(lambda colours: colours.candidate)
_NUMBER_ROLE = Qt.ItemDataRole.UserRole
WIDEST_PX = 90


class TuningView(QWidget):
    """A live chart of rounds above their list.

    Signals:
        tune_wanted: The user wants to begin.
        cancel_wanted: The user has seen enough.
        round_wanted: Number of a round (from 1) whose toggles are to be set.
    """

    tune_wanted = Signal()
    cancel_wanted = Signal()
    round_wanted = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.note = QLabel()
        self.note.setWordWrap(True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        self.tune = QPushButton(tr("T&une"))
        self.tune.setToolTip(tr("Finds the largest loss, tries what is made for it, keeps the best, and begins again"))
        self.tune.clicked.connect(self.tune_wanted)
        self.stop = QPushButton(tr("&Stop"))
        self.stop.clicked.connect(self.cancel_wanted)
        self.chart = RoundsChart(theme)
        self.rounds = QTreeWidget()
        self.rounds.setAccessibleName(tr("Rounds"))
        self.rounds.setRootIsDecorated(False)
        self.rounds.setHeaderLabels([tr("Round"), tr("Largest loss"), tr("Switched on"), tr("Step"), tr("Gain")])
        self.rounds.header().setStretchLastSection(False)
        self.rounds.header().setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        self.rounds.itemActivated.connect(lambda item: self._activate(item.data(0, _NUMBER_ROLE)))
        self.rounds.setToolTip(tr("A double click sets the toggles of a round"))
        bar = QHBoxLayout()
        bar.addWidget(self.note, 1)
        bar.addWidget(self.tune)
        bar.addWidget(self.stop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(bar)
        layout.addWidget(self.chart, 2)
        layout.addWidget(self.rounds, 3)

    def show_tuning(self, tuning: Tuning | None, activity: Activity, *, can_begin: bool) -> None:
        """Shows how far a tuning is."""
        is_tuning = activity is Activity.TUNING
        self.tune.setEnabled(can_begin and not is_tuning)
        self.stop.setVisible(is_tuning)
        self.note.setText(_note(tuning, is_tuning=is_tuning))
        sides = ([tuning.baseline] if tuning.baseline is not None else []) if tuning else []
        sides += [item.side for item in tuning.rounds] if tuning else []
        self.chart.set_sides(sides)
        self._fill(tuning)

    def _fill(self, tuning: Tuning | None) -> None:
        self.rounds.clear()
        for item in tuning.rounds if tuning else ():  # ten at most
            loss = f"{item.bottleneck.loss.value} ({format_ratio(item.bottleneck.share_ratio)})"
            gain = signed_ratio(item.gain_ratio) if item.gain_ratio is not None else tr("runs now")
            row = QTreeWidgetItem([str(item.number), loss, item.added, step_text(item.side), gain])
            row.setData(0, _NUMBER_ROLE, item.number)
            row.setToolTip(2, ", ".join(item.enabled))
            self.rounds.addTopLevelItem(row)
        for column in (0, 1, 3, 4):
            self.rounds.resizeColumnToContents(column)

    def _activate(self, number: int) -> None:
        self.round_wanted.emit(number)


def _note(tuning: Tuning | None, *, is_tuning: bool) -> str:
    if tuning is None:
        return tr("Finds the largest loss, tries what is made for it, keeps the best; until nothing gives 1 %.")
    if is_tuning:
        return tr("Trying… each round appears here as soon as it is found.")
    if tuning.reasons is None:
        return tr("Stopped. A double click on a round sets its toggles.")
    if not tuning.rounds:
        return tr("Nothing gives one percent.")
    from engine.advisor.tuning import total_speedup_ratio

    total = tr("All rounds together: {ratio}×.", ratio=f"{total_speedup_ratio(tuning.rounds):.2f}")
    return f"{tr('Nothing gives one percent any more.')} {total}"


class RoundsChart(QWidget):
    """A column per round, as high as its throughput: tokens or, of a job without and of a service, steps per second."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._sides: list[Side] = []
        self.setAccessibleName(tr("Throughput by round"))
        self.setMinimumHeight(110)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def set_sides(self, sides: list[Side]) -> None:
        """Shows the job as it is, then each round."""
        self._sides = sides
        self.setAccessibleDescription(", ".join(_rate_text(side) for side in sides))
        self.update()

    @property
    def caption(self) -> str:
        """What stands on the columns: their heights are rates whatever that is."""
        if any(_tokens_per_s(side) is not None for side in self._sides):
            return tr("tokens per second")
        return tr("time of a step; higher columns are faster") if self._sides else ""

    def column_rect(self, number: int) -> QRectF:
        """Returns where a column is drawn."""
        line_px = self.fontMetrics().height() + 2
        top_px = 2 * line_px  # the unit, and the number on the highest column
        highest = max((_rate(side) for side in self._sides), default=0.0) or 1.0
        pitch_px = min(self.width() / max(len(self._sides), 1), WIDEST_PX * 1.4)
        room_px = self.height() - top_px - line_px - 4
        height_px = _rate(self._sides[number]) / highest * room_px
        left_px = number * pitch_px + pitch_px * 0.15
        return QRectF(left_px, top_px + room_px - height_px, pitch_px * 0.7, max(height_px, 1.0))

    def sizeHint(self) -> QSize:
        """Qt: a picture."""
        return QSize(420, 180)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        colours, line_px = self._theme.colours, self.fontMetrics().height() + 2
        painter.setPen(QColor(colours.faint))
        corner = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop
        painter.drawText(QRectF(0, 0, self.width(), line_px), corner, self.caption)
        for number, side in enumerate(self._sides):
            rect = self.column_rect(number)
            paint_fill(painter, rect, _ROUND if number else _BASELINE, colours)
            painter.setPen(QColor(colours.text))
            centre = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
            above = QRectF(rect.center().x() - WIDEST_PX, rect.top() - line_px, 2 * WIDEST_PX, line_px)
            painter.drawText(above, centre, _short_text(side))
            below = QRectF(above.left(), self.height() - line_px, above.width(), line_px)
            painter.drawText(below, centre, tr("round {number}", number=number) if number else tr("as it is"))


def _tokens_per_s(side: Side) -> float | None:
    """Returns the throughput in tokens; None of a run that did not end, of a job without tokens and of a service.

    A service answers what is asked: only how long that takes can be won.
    """
    return side.tokens_per_s if side.status.value == "done" and side.serving is None else None


def _rate(side: Side) -> float:
    if side.status.value != "done":
        return 0.0
    return _tokens_per_s(side) or (1e9 / side.mean_step_ns if side.mean_step_ns else 0.0)


def _short_text(side: Side) -> str:
    tokens = _tokens_per_s(side)
    return step_text(side) if tokens is None else f"{tokens:,.0f}"


def _rate_text(side: Side) -> str:
    tokens = _tokens_per_s(side)
    return step_text(side) if tokens is None else tr("{count} tokens/s", count=f"{tokens:,.0f}")
