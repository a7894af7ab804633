"""One recommendation: what to do, what it wins, and buttons that show, try and copy it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from profiler_gui.toolkit.flow_box import FlowBox
from profiler_gui.toolkit.labels import bold, sentence, text_label
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the advisor is imported after the first paint
    from engine.advisor.recommendations import Recommendation


class RecommendationCard(QFrame):
    """A recommendation.

    Args:
        place: Counts from 1, the best first.
        recommendation: What it says.

    Signals:
        show_wanted: The user wants to see its evidence.
        try_wanted: The user wants its toggle pressed.
    """

    show_wanted = Signal()
    try_wanted = Signal()

    def __init__(self, place: int, recommendation: Recommendation, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.recommendation = recommendation
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setBackgroundRole(self.backgroundRole().Base)
        self.setAutoFillBackground(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.setAccessibleName(recommendation.title)
        title = narrow_label(f"{place}. {recommendation.title}")
        title.setFont(bold(title.font()))
        self.gain = narrow_label(gain_line(recommendation))
        self.problem = narrow_label(sentence(recommendation.problem))
        self.details = narrow_label()
        self.details.setTextFormat(Qt.TextFormat.RichText)
        self.details.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 7, 10, 8)
        layout.setSpacing(3)
        for widget in (title, self.gain, self.problem, self._buttons(), self.details):
            layout.addWidget(widget)

    def _buttons(self) -> FlowBox:
        item = self.recommendation
        self.show_button = QPushButton(tr("Show"))
        self.show_button.setToolTip(tr("Go to where this shows"))
        self.show_button.clicked.connect(self.show_wanted)
        self.try_button = QPushButton(tr("Try"))
        self.try_button.setToolTip(tr("Presses its toggle: the job is run again with it"))
        self.try_button.setEnabled(bool(item.enabled))
        self.try_button.clicked.connect(self.try_wanted)
        self.copy_button = QPushButton(tr("Copy Switch"))
        self.copy_button.setEnabled(bool(item.how_to_apply))
        self.copy_button.clicked.connect(self._copy)
        self.more = QToolButton()
        self.more.setText(tr("More"))
        self.more.setCheckable(True)
        self.more.setAutoRaise(True)
        self.more.toggled.connect(self._show_details)
        box = FlowBox(6)
        for number, button in enumerate((self.show_button, self.try_button, self.copy_button, self.more)):
            button.setAccessibleName(f"{button.text()}: {item.title}")
            box.insert(number, button)
        return box

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(switch.switch for switch in self.recommendation.how_to_apply))

    def _show_details(self, shown: bool) -> None:
        if shown and not self.details.text():
            self.details.setText(details_html(self.recommendation))
        self.details.setVisible(shown)


def gain_line(item: Recommendation) -> str:
    """Returns the severity and the predicted gain, in the words of every output."""
    from engine.report.advice_words import gain_text

    label = f" · {tr('simulator only')}" if item.simulator_only else ""
    return f"{severity_word(item.severity.value)} · {gain_text(item.gain)}{label}"


def severity_word(severity: str) -> str:
    """Returns a severity with a mark, so that it is not told by colour."""
    words = {"high": tr("▲ high"), "medium": tr("◆ medium"), "low": tr("▽ low")}
    return words.get(severity) or severity


def details_html(item: Recommendation) -> str:
    """Returns cause, evidence, switches, conflicts, risk, undo and how to verify; texts of captures are escaped."""
    from engine.report.advice_words import evidence_text

    finding = item.findings[0]
    rows = [(tr("Cause"), sentence(item.root_cause))]
    rows += [(tr("Evidence"), sentence(evidence_text(one))) for one in finding.evidence]
    for switch in item.how_to_apply:
        where = " ".join(filter(None, (switch.framework, switch.versions)))
        rows.append((tr("Set"), switch.switch))
        rows.append(("", "; ".join(filter(None, (where, switch.note, switch.documented_in)))))
    rows += [(tr("Conflicts"), f"{one.other}: {one.reason}") for one in item.conflicts]
    rows += [(tr("Rests on"), sentence(one)) for one in item.gain.assumptions]
    rows += [(tr("Risk"), item.risk), (tr("Undo"), item.undo), (tr("Verify"), item.verify)]
    return "".join(
        f"<p style='margin:3px 0'><b>{escape(name, quote=False)}</b> {escape(text, quote=False)}</p>"
        for name, text in rows
        if text
    )


def narrow_label(text: str = "") -> QLabel:
    """Returns a label of running text that any width will do for."""
    label = text_label(text)
    label.setMinimumWidth(1)
    return label
