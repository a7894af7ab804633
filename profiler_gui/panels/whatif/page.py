"""The What-if page."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QTabWidget, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.panels.whatif.courses import MemoryCourse, course_of
from profiler_gui.panels.whatif.history import RunHistory
from profiler_gui.panels.whatif.memory import MemoryCourses
from profiler_gui.panels.whatif.operators import delta_table
from profiler_gui.panels.whatif.summary import ComparisonSummary
from profiler_gui.panels.whatif.timelines import MakeTimeline, PairedTimelines
from profiler_gui.panels.whatif.tuning import TuningView
from profiler_gui.panels.whatif.words import doubts, headline, run_title
from profiler_gui.session.following import toggles_with
from profiler_gui.session.rerun_state import Activity, Shown
from profiler_gui.session.run_tree import BASELINE, TriedRun
from profiler_gui.session.toggles import Toggles
from profiler_gui.toolkit.labels import enlarged, text_label
from profiler_gui.toolkit.translations import tr

HEADLINE_SCALE = 1.4
"""Of the usual text."""
_LONGEST_TITLE = 60


class WhatIfPage(QWidget):
    """Two runs side by side: what was gained in one line, then by toggle, memory, operator and timeline.

    Args:
        context: Of the window.
        make_timeline: Makes a timeline of the session in the context it gets.
    """

    def __init__(self, context: PaneContext, make_timeline: MakeTimeline, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        from engine.optimizations.catalogue import optimization_registry

        self._context = context
        self._session = context.session
        self._reruns = context.session.reruns
        self.setAccessibleName(tr("What-if"))
        titles = {item.id: item.title for item in optimization_registry()}
        self._make_header()
        self.summary = ComparisonSummary(context.theme, titles)
        self.timelines = PairedTimelines(context, make_timeline)
        self.memory = MemoryCourses(context.theme)
        self.operators = FilteredTable(tr("Operators before and after"))
        self.history = RunHistory()
        self.history.wanted.connect(self._reruns.go_to)
        self.history.comparison_wanted.connect(self._reruns.compare)
        self.tuning = TuningView(context.theme)
        self.tuning.tune_wanted.connect(self._reruns.tune)
        self.tuning.cancel_wanted.connect(self._reruns.cancel)
        self.tuning.round_wanted.connect(self._set_round)
        self.tabs = QTabWidget()
        self.tabs.setAccessibleName(tr("Views of the comparison"))
        self.tabs.setDocumentMode(True)
        for widget, title in (
            (self.summary, tr("Gain")),
            (self.timelines, tr("Timelines")),
            (self.memory, tr("Memory")),
            (self.operators, tr("Operators")),
            (self.history, tr("Runs")),
            (self.tuning, tr("Tuning")),
        ):
            self.tabs.addTab(widget, title)
        self._lay_out()
        self._shown_answers: tuple[object, ...] = ()
        for signal in (
            self._session.document_changed,
            self._session.summary_changed,
            self._session.rank_changed,
            self._reruns.described,
            self._reruns.runs_changed,
            self._reruns.busy_changed,
        ):
            signal.connect(self._update)
        self._reruns.tuning_changed.connect(self._update_tuning)
        self._reruns.busy_changed.connect(self._update_tuning)
        self._update()
        self._update_tuning()
        self._reruns.want()

    def _make_header(self) -> None:
        self.headline, self.doubts = text_label(), text_label()
        self.headline.setFont(enlarged(self.headline.font(), HEADLINE_SCALE))
        self.run_a, self.run_b = QComboBox(), QComboBox()
        for box, name in ((self.run_a, tr("Run A of the comparison")), (self.run_b, tr("Run B of the comparison"))):
            box.setAccessibleName(name)
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(14)
            box.activated.connect(self._compare)
        self.blink = QPushButton(tr("&Blink"))
        self.blink.setToolTip(tr("Shows A, then B in its place (T); Shift+T shows both"))
        self.blink.clicked.connect(self._reruns.blink)
        self.both = QPushButton(tr("B&oth"))
        self.both.clicked.connect(self._reruns.show_both)

    def _lay_out(self) -> None:
        choice = QHBoxLayout()
        choice.addWidget(QLabel(tr("A")))
        choice.addWidget(self.run_a, 1)
        choice.addWidget(QLabel(tr("B")))
        choice.addWidget(self.run_b, 1)
        choice.addWidget(self.blink)
        choice.addWidget(self.both)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 10, 6)
        layout.setSpacing(4)
        layout.addWidget(self.headline)
        layout.addWidget(self.doubts)
        layout.addLayout(choice)
        layout.addWidget(self.tabs, 1)

    def _compare(self) -> None:
        before, after = self.run_a.currentData(), self.run_b.currentData()
        if before is not None and after is not None:
            self._reruns.compare(before, after)

    def _set_round(self, number: int) -> None:
        tuning = self._reruns.tuning
        if tuning is not None:
            self._session.set_toggles(toggles_with(Toggles(), *tuning.rounds[number - 1].enabled))

    def _update_tuning(self) -> None:
        reruns = self._reruns
        can_begin = reruns.place is not None and reruns.unusable is None
        self.tuning.show_tuning(reruns.tuning, reruns.activity, can_begin=can_begin)

    def _update(self) -> None:
        before, after = self._reruns.compared
        self.headline.setText(self._headline())
        doubt = doubts(before, after) if before is not after else ""
        self.doubts.setText(doubt)
        self.doubts.setVisible(bool(doubt))
        self._fill_boxes()
        is_compared = after.timeline is not None and before.timeline is not None and before is not after
        self.blink.setEnabled(is_compared)
        self.both.setVisible(self._reruns.shown is not Shown.BOTH)
        shown = self._reruns.shown
        self.timelines.show_runs(before, after, shown, self._missing_text(after))
        self.memory.set_courses(
            self._course(before),
            self._course(after) if after is not before else None,
            (shown is not Shown.B, shown is not Shown.A),
            (self._peak_bytes(before), self._peak_bytes(after)),
        )
        answers = (before.side, after.side, len(self._reruns.tree.runs), self._reruns.tree.current)
        if answers != self._shown_answers:
            self._shown_answers = answers
            self.summary.show_runs(before, after)
            self.history.show_tree(self._reruns.tree)
            if before.side is not None and after.side is not None:
                self.operators.set_table(delta_table(before.side.operator_ns, after.side.operator_ns))

    def _headline(self) -> str:
        reruns = self._reruns
        before, after = reruns.compared
        if reruns.place is None:
            return tr("Open a capture or run a simulation, then switch something on.")
        if reruns.unusable is not None:
            return tr("Cannot be rerun: {reason}", reason=reruns.unusable.what)
        if reruns.refused:
            return tr("Refused: {reason}", reason=reruns.refused[0].reason)
        if reruns.is_pending:
            return tr("Rerunning with {what}…", what=_shortened(", ".join(sorted(self._session.toggles.on))))
        if before is after and after.number != BASELINE:
            return tr("A and B are the same run: choose another one.")
        if before is after:
            return tr("Switch something on at the left: what it gives is shown here.")
        return headline(before, after)

    def _missing_text(self, after: TriedRun) -> str:
        """Returns why there are no two timelines."""
        if self._reruns.activity is Activity.RERUNNING:
            return tr("The timelines are being recorded…")
        if after.number == BASELINE:
            return tr("Switch something on: both timelines are shown here when it was rerun.")
        return tr("One of these runs has no timeline: it did not come to an end, or was given up.")

    def _fill_boxes(self) -> None:
        before, after = self._reruns.compared
        for box, run in ((self.run_a, before), (self.run_b, after)):
            if box.count() != len(self._reruns.tree.runs):
                box.clear()
                for item in self._reruns.tree:  # one per request of the user
                    box.addItem(_shortened(run_title(item)), item.number)
                    box.setItemData(box.count() - 1, run_title(item), Qt.ItemDataRole.ToolTipRole)
            box.setCurrentIndex(box.findData(run.number))
            box.setEnabled(box.count() > 1)

    def _course(self, run: TriedRun) -> MemoryCourse | None:
        """Returns the memory of the rank in view in a run.

        Replayed timelines have none: an allocator is replayed for its peaks. Of the run as it is there is what was
        recorded; what it reserved is left away, since the replay begins with an empty cache and is compared with B.
        """
        recorded = self._session.document if run.number == BASELINE else None
        for document in (run.timeline, recorded):
            if document is not None:
                rank = self._rank_of(document.ranks)
                trace = document.job.rank_trace(rank).trace
                key = ("course", run.number, document is recorded, rank)
                course = self._session.derived(key, partial(course_of, trace))
                if course is not None:
                    return replace(course, reserved=None) if document is recorded else course
        return None

    def _peak_bytes(self, run: TriedRun) -> int | None:
        """Returns the most that the rank in view reserves in a run; None where that is not known."""
        if run.side is None or not run.side.peak_reserved_bytes:
            return None
        return run.side.peak_reserved_bytes[self._rank_of(tuple(run.side.peak_reserved_bytes))]

    def _rank_of(self, ranks: tuple[int, ...]) -> int:
        return self._session.rank if self._session.rank in ranks else ranks[0]


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TITLE else text[: _LONGEST_TITLE - 1] + "…"
