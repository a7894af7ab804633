"""The first screen."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QLabel, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.overview.advised import advised_checklist, advised_findings
from profiler_gui.panels.overview.cards import Card, ChecklistCard, FindingsCard
from profiler_gui.panels.overview.evidence import Evidence, evidence_of
from profiler_gui.panels.overview.findings import checklist_of, findings_of
from profiler_gui.panels.overview.memory_bars import legend_of as memory_legend
from profiler_gui.panels.overview.memory_bars import memory_bars
from profiler_gui.panels.overview.sentence import linked, run_sentence
from profiler_gui.panels.overview.step_bars import legend_of as step_legend
from profiler_gui.panels.overview.step_bars import step_bars
from profiler_gui.session.following import toggles_with
from profiler_gui.session.rerun_state import Activity
from profiler_gui.session.selection import NOTHING
from profiler_gui.toolkit.bars import Bar, StackedBars
from profiler_gui.toolkit.columns import ColumnRow, StackedColumns
from profiler_gui.toolkit.fills import Legend
from profiler_gui.toolkit.fitting_area import FittingArea
from profiler_gui.toolkit.labels import enlarged, text_label
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.summary import JobSummary

MAX_LYING_BARS = 12
"""More bars than this stand as columns."""
WIDE_CHARACTERS = 130
"""In a page as wide as this the findings stand beside the steps, so that they are seen without scrolling."""


class OverviewPage(FittingArea):
    """One sentence in which every number is a link, the steps, the memory, findings and what is fine."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._places: list[tuple[int, int]] = []
        self._memory_ranks: list[int] = []
        self.setAccessibleName(tr("Overview"))
        self._make_sentence()
        self._make_steps()
        self._make_memory()
        self._findings = FindingsCard(self._show, self._try_out, self._session.reruns.advise)
        self._checklist = ChecklistCard()
        self._note = text_label()
        layout = self.column
        layout.setContentsMargins(16, 12, 16, 16)
        layout.setSpacing(12)
        self._cards = (self._steps_card, self._memory_card, self._findings, self._checklist)
        for widget in (self._sentence, self._run_sentence, self._memory_sentence, self._note):
            layout.addWidget(widget)
        self._columns_of_cards = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._columns_of_cards.setSpacing(12)
        for column in ((self._steps_card, self._memory_card), (self._findings, self._checklist)):
            stack = QVBoxLayout()
            stack.setSpacing(12)
            for card in column:
                stack.addWidget(card)
            stack.addStretch(1)
            self._columns_of_cards.addLayout(stack, 1)
        layout.addLayout(self._columns_of_cards)
        layout.addStretch(1)
        for signal in (
            self._session.document_changed,
            self._session.summary_changed,
            self._session.rank_changed,
            self._session.step_changed,
        ):
            signal.connect(self._update)
        reruns = self._session.reruns
        reruns.advised.connect(self._update)
        reruns.busy_changed.connect(lambda _: self._update_advising(""))
        reruns.progress_changed.connect(lambda _, what: self._update_advising(what))
        self._update()
        reruns.want_advice()

    def fit(self) -> None:
        """Puts the cards side by side where there is room, then makes the page as tall as it is."""
        is_wide = self.viewport().width() >= self.fontMetrics().averageCharWidth() * WIDE_CHARACTERS
        direction = QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom
        self._columns_of_cards.setDirection(direction)
        super().fit()

    def _make_sentence(self) -> None:
        self._sentence = self._linked_label()
        self._sentence.setFont(enlarged(self._sentence.font(), 1.5))
        self._memory_sentence = self._linked_label()
        self._run_sentence = self._linked_label()

    def _linked_label(self) -> QLabel:
        label = QLabel()
        label.setTextFormat(Qt.TextFormat.RichText)
        label.setWordWrap(True)
        label.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
            | Qt.TextInteractionFlag.TextSelectableByMouse
        )
        label.linkActivated.connect(self._follow)
        return label

    def _make_steps(self) -> None:
        theme = self._context.theme
        self._steps_card = Card(tr("Where the time of each step went"))
        self._bars = StackedBars(theme, tr("Steps"))
        self._columns = StackedColumns(theme, tr("Steps"))
        self._steps_legend = Legend(theme)
        for widget in (self._bars, self._columns, self._steps_legend):
            self._steps_card.body.addWidget(widget)
        self._bars.activated.connect(lambda row, part: self._show_part(*self._places[row], part))
        self._columns.activated.connect(self._show_column)

    def _make_memory(self) -> None:
        theme = self._context.theme
        self._memory_card = Card(tr("Device memory at its highest"))
        self._memory_bars = StackedBars(theme, tr("Device memory"))
        self._memory_legend = Legend(theme)
        self._memory_card.body.addWidget(self._memory_bars)
        self._memory_card.body.addWidget(self._memory_legend)
        self._memory_bars.activated.connect(lambda row, _: self._show_memory(self._memory_ranks[row]))

    def _update(self) -> None:
        summary, rank = self._session.job_summary, self._session.rank
        for widget in (self._sentence, self._run_sentence, self._memory_sentence, *self._cards):
            widget.setVisible(summary is not None)
        self._note.setVisible(summary is None)
        if summary is None:
            is_open = self._session.document is not None
            self._note.setText(
                tr("The analyses are still running.") if is_open else tr("Open a capture to see it here.")
            )
            return
        self._update_sentence(summary, rank)
        self._update_steps(summary, rank)
        self._update_memory(summary, rank)
        self._update_findings(summary, rank)

    def _update_findings(self, summary: JobSummary, rank: int) -> None:
        """Shows what the analyses say of the rank; once the advisor has rerun what could help, what it says instead."""
        advice, document = self._session.reruns.advice, self._session.document
        if advice is not None and advice.recommendations and document is not None:
            heading = tr("What to change first")
            findings, checklist = advised_findings(advice, document), advised_checklist(advice)
        else:
            heading = tr("What costs the most")
            findings = self._session.derived(("findings", rank), lambda: findings_of(summary, rank))
            checklist = self._session.derived(("checklist", rank), lambda: checklist_of(summary, rank))
        self._update_advising("")
        self._findings.heading.setText(heading)
        self._findings.set_findings(findings)
        self._checklist.set_checklist(checklist)
        self._checklist.setVisible(bool(checklist.fine or checklist.unknown))

    def _update_advising(self, what: str) -> None:
        reruns = self._session.reruns
        is_advising = reruns.activity is Activity.ADVISING
        is_possible = reruns.place is not None and reruns.unusable is None
        can_begin = is_possible and reruns.advice is None and not reruns.is_busy
        progress = tr("Trying what could help… {what}", what=what) if is_advising else ""
        self._findings.show_advising(can_begin=can_begin, progress=progress)

    def _update_sentence(self, summary: JobSummary, rank: int) -> None:
        from engine.analyses.headline import headline

        first = self._session.derived(("headline", rank), lambda: headline(summary, rank))
        self._sentence.setText(linked(first))
        self._sentence.setAccessibleName(first.sentence)
        memory = f'<a href="memory">{first.memory_sentence}</a>' if first.memory_sentence else ""
        self._memory_sentence.setText(memory)
        self._memory_sentence.setAccessibleName(first.memory_sentence)
        self._memory_sentence.setVisible(bool(memory))
        run = self._session.derived(("run sentence", rank), lambda: run_sentence(self._session.trace))
        self._run_sentence.setText(f'<a href="memory">{escape(run, quote=False)}</a>' if run else "")
        self._run_sentence.setAccessibleName(run)
        self._run_sentence.setVisible(bool(run))

    def _update_steps(self, summary: JobSummary, rank: int) -> None:
        rows = [(entry.rank, self._bars_of(summary, entry.rank)) for entry in summary.ranks]
        bars = [(number, index, bar) for number, own in rows for index, bar in enumerate(own)]
        self._steps_card.setVisible(any(bar.parts for _, _, bar in bars))
        lies = len(bars) <= MAX_LYING_BARS
        self._bars.setVisible(lies)
        self._columns.setVisible(not lies)
        several_ranks = len(rows) > 1
        if lies:
            several_steps = any(len(own) > 1 for _, own in rows)
            self._places = [(number, index) for number, index, _ in bars]
            current = (rank, self._session.step if several_steps else 0)
            self._bars.set_bars(
                tuple(
                    replace(
                        bar,
                        title=_title(bar.title, number if several_ranks else None, several_steps),
                        is_current=(number, index) == current and len(bars) > 1,
                    )
                    for number, index, bar in bars
                )
            )
        else:
            titles = [tr("rank {rank}", rank=number) if several_ranks else "" for number, _ in rows]
            self._columns.set_rows(tuple(ColumnRow(title, own) for title, (_, own) in zip(titles, rows, strict=True)))
        self._steps_legend.set_entries(step_legend(tuple(bar for _, _, bar in bars)))

    def _bars_of(self, summary: JobSummary, rank: int) -> tuple[Bar, ...]:
        return self._session.derived(("step bars", rank), lambda: step_bars(summary, rank))

    def _update_memory(self, summary: JobSummary, rank: int) -> None:
        bars = memory_bars(summary, rank)
        self._memory_card.setVisible(bool(bars))
        on_device = any(entry.memory is not None and entry.memory.device >= 0 for entry in summary.ranks)
        title = tr("Device memory at its highest") if on_device else tr("Host memory at its highest")
        self._memory_card.heading.setText(title)
        self._memory_ranks = [number for number, _ in bars]
        self._memory_bars.set_bars(tuple(bar for _, bar in bars))
        self._memory_legend.set_entries(memory_legend(tuple(bar for _, bar in bars)))

    def _follow(self, target: str) -> None:
        summary = self._session.job_summary
        if target in ("memory", "events"):
            self._context.show_pane(target)
        elif summary is not None:
            self._show(evidence_of(summary, self._session.rank, target))

    def _show_part(self, rank: int, step: int, part: str) -> None:
        summary = self._session.job_summary
        if summary is not None:
            only_step = step if len(summary.rank(rank).steps) > 1 else None
            self._show(evidence_of(summary, rank, part, only_step))

    def _show_column(self, row: int, index: int) -> None:
        summary = self._session.job_summary
        if summary is not None:
            self._show_part(summary.ranks[row].rank, index, "step")

    def _show_memory(self, rank: int) -> None:
        self._session.set_rank(rank)
        self._context.show_pane("memory")

    def _try_out(self, optimizations: tuple[str, ...]) -> None:
        self._session.set_toggles(toggles_with(self._session.toggles, *optimizations))
        self._context.show_pane("whatif")

    def _show(self, evidence: Evidence) -> None:
        if evidence.selection != NOTHING:
            self._session.select(evidence.selection, reveal=True)
            if evidence.zooms:
                self._session.show_selection()
        self._context.show_pane(evidence.pane)


def _title(step_title: str, rank: int | None, several_steps: bool) -> str:
    """Returns the title of a bar, with the rank where there are several."""
    if rank is None:
        return step_title
    name = tr("rank {rank}", rank=rank)
    return f"{name}, {step_title}" if several_steps else name
