"""The dock of recommendations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.core.number_format import format_duration_ns
from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.advice.card import RecommendationCard, narrow_label
from profiler_gui.session.following import evidence_place, toggles_with
from profiler_gui.session.rerun_state import Activity
from profiler_gui.toolkit.fitting_area import FittingArea
from profiler_gui.toolkit.labels import sentence
from profiler_gui.toolkit.stage_bar import StageBar
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the advisor is imported after the first paint
    from engine.advisor.recommendations import Recommendation
    from profiler_gui.session.advising import Advised


class AdvicePanel(QWidget):
    """Recommendations, the best first; then what they give together, and what was checked."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._reruns = context.session.reruns
        self._shown: Advised | None = None
        self.cards: list[RecommendationCard] = []
        self.state = narrow_label()
        self.together, self.checked = narrow_label(), narrow_label()
        self.progress = StageBar(tr("Progress of the advice"))
        self.advise = QPushButton(tr("&Look Again"))
        self.advise.setToolTip(tr("Reruns what could help, one after another"))
        self.advise.clicked.connect(self._reruns.advise)
        self.cancel = QPushButton(tr("Cancel"))
        self.cancel.setAccessibleName(tr("Cancel the advice"))
        self.cancel.clicked.connect(self._reruns.cancel)
        self.export = QPushButton(tr("&Export…"))
        self.export.setToolTip(tr("Writes a report: HTML, Markdown, JSON, CSV or XLSX"))
        self.export.clicked.connect(lambda: self._context.commands.run("advice.export", self._session))
        self._lay_out()
        self._session.document_changed.connect(self._update)
        self._reruns.described.connect(self._update)
        self._reruns.advised.connect(self._update)
        self._reruns.busy_changed.connect(self._update_state)
        self._reruns.progress_changed.connect(self._show_progress)
        self._update()
        self._reruns.want()
        self._reruns.want_advice()

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.addWidget(self.advise)
        bar.addWidget(self.export)
        bar.addWidget(self.progress, 1)
        bar.addWidget(self.cancel)
        self._area = FittingArea()
        self._area.setAccessibleName(tr("Recommendations"))
        self._area.column.setContentsMargins(0, 0, 6, 6)
        self._area.column.setSpacing(6)
        for widget in (self.together, self.checked):
            self._area.column.addWidget(widget)
        self._area.column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 4, 4)
        layout.setSpacing(4)
        layout.addLayout(bar)
        layout.addWidget(self.state)
        layout.addWidget(self._area, 1)

    def _update(self) -> None:
        advice = self._reruns.advice
        if advice is not self._shown:
            self._shown = advice
            self._fill(advice)
        self._update_state()

    def _fill(self, advice: Advised | None) -> None:
        for card in self.cards:
            self._area.column.removeWidget(card)
            card.deleteLater()
        self.cards = []
        for place, item in enumerate(advice.recommendations if advice else (), start=1):
            card = RecommendationCard(place, item)
            card.show_wanted.connect(partial(self._show, item))
            card.try_wanted.connect(partial(self._try, item))
            self._area.column.insertWidget(place - 1, card)
            self.cards.append(card)
        self.together.setText(together_text(advice) if advice else "")
        self.together.setVisible(bool(self.together.text()))
        self.checked.setText(checked_text(advice) if advice else "")
        self._area.fit()

    def _show(self, item: Recommendation) -> None:
        document = self._session.document
        if document is None:
            return
        page, selection = evidence_place(item.findings[0], document)
        if selection is not None:
            self._session.select(selection, reveal=True)
            self._session.show_selection()
        self._context.show_pane(page)

    def _try(self, item: Recommendation) -> None:
        self._session.set_toggles(toggles_with(self._session.toggles, *item.enabled))
        self._context.show_pane("whatif")

    def _update_state(self) -> None:
        reruns = self._reruns
        is_advising = reruns.activity in (Activity.ADVISING, Activity.DESCRIBING, Activity.REPORTING)
        self.progress.setVisible(is_advising)
        self.cancel.setVisible(is_advising)
        for button in (self.advise, self.export):
            button.setVisible(not is_advising)
        self.advise.setText(tr("&Look Again") if reruns.advice is not None else tr("&Try What Could Help"))
        if not is_advising:
            self.progress.clear_stage()
        self.advise.setEnabled(reruns.place is not None and not reruns.is_busy)
        self.export.setEnabled(reruns.advice is not None and not reruns.is_busy)
        self.state.setText(self._state_text())
        self.state.setVisible(bool(self.state.text()))

    def _state_text(self) -> str:
        reruns = self._reruns
        if reruns.place is None:
            return tr("Open a capture or run a simulation to see what to change.")
        if reruns.unusable is not None:
            return tr("Cannot be rerun: {reason}", reason=reruns.unusable.what)
        if reruns.advice is None:
            if reruns.is_busy:
                return tr("Looking for losses, and rerunning what could help…")
            return tr("What could help was not tried yet: a long run takes minutes, as every gain is a rerun.")
        if not reruns.advice.recommendations:
            return tr("Nothing to recommend: no rerun gives one percent.")
        return ""

    def _show_progress(self, ratio: float, what: str) -> None:
        self.progress.show_stage(ratio, what)


def together_text(advice: Advised) -> str:
    """Returns what the recommended set gives when rerun as one; "" where fewer than two can be."""
    from engine.report.advice_words import gain_text

    if advice.combined is None:
        return ""
    return tr(
        "All that fit together, rerun as one: {gain}. Their single gains would add up to {sum}.",
        gain=gain_text(advice.combined.gain),
        sum=format_duration_ns(advice.combined.sum_ns),
    )


def checked_text(advice: Advised) -> str:
    """Returns what was checked and is fine, what could not be checked, what is not recommended, and notes."""
    lines = [f"✓ {title}" for title in advice.fine]
    if lines:
        lines.insert(0, tr("Checked and fine:"))
    lines += [f"– {tr('Not checked')}: {text}" for text in advice.not_checked]
    lines += [f"– {tr('Not recommended')}: {text}" for text in advice.passed]
    return "\n".join((*lines, *map(sentence, advice.notes)))
