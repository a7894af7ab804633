"""The Fusion page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine.core.number_format import format_count, format_duration_ns
from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.summary_tables import candidate_table
from profiler_gui.item_models.table_view import FilteredTable, TableView
from profiler_gui.panels.fusion.kernel_table import kernel_table
from profiler_gui.panels.fusion.lanes import OccurrenceLanes
from profiler_gui.panels.fusion.occurrences import OccurrenceLane, lanes_of
from profiler_gui.session.following import toggles_with
from profiler_gui.session.selection import CandidateSelection, EventSelection
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.fusion import FusionCandidate

COLUMN_ORDER = ("pattern", "expected", "low", "high", "count", "total", "launches", "bound", "replacement")
"""What stands first; the rest follows."""
MAX_NAME_PX = 260
"""Names of GPU kernels are whole signatures: the rest of one stands in its tooltip."""


class FusionPage(QStackedWidget):
    """Candidates as a table; of the one that is chosen, what replaces it and up to six places where it stands."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._candidates: tuple[FusionCandidate, ...] = ()
        self._chosen: int | None = None
        self._listed: OccurrenceLane | None = None
        self.setAccessibleName(tr("Fusion"))
        self._note = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._note.setWordWrap(True)
        self._make_parts()
        self.addWidget(self._note)
        self.addWidget(self._make_body())
        for signal in (self._session.document_changed, self._session.summary_changed, self._session.rank_changed):
            signal.connect(self._update)
        self._session.selection_changed.connect(self._follow)
        self._update()

    def _make_parts(self) -> None:
        self._sentence = _text()
        self._table = FilteredTable(tr("Fusion candidates"))
        self._table.view.row_chosen.connect(self._choose)
        self._title, self._reason = _text(), _text()
        self._replacement = _text()
        self._copy = QPushButton(tr("&Copy Replacement"))
        self._copy.clicked.connect(self._copy_replacement)
        self._try = QPushButton(tr("Tr&y"))
        self._try.setToolTip(tr("Presses its toggle: the job is run again with it"))
        self._try.clicked.connect(self._try_out)
        self._show = QPushButton(tr("&Show on Timeline"))
        self._show.setToolTip(tr("Shows the marked occurrence on the timeline"))
        self._show.clicked.connect(self._show_on_timeline)
        self._lanes = OccurrenceLanes(self._context.theme)
        self._lanes.lane_chosen.connect(self._choose_occurrence)
        self._lanes.event_chosen.connect(self._choose_event)
        self._lanes.lane_opened.connect(self._open_occurrence)
        self._kernels = TableView(tr("Kernels of the marked occurrence"))
        self._kernels.row_chosen.connect(self._choose_kernel)
        self.setFocusProxy(self._table.view)

    def _make_body(self) -> QWidget:
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setWidget(self._lanes)
        bar = QHBoxLayout()
        bar.addWidget(self._title, 1)
        bar.addWidget(self._copy)
        bar.addWidget(self._try)
        bar.addWidget(self._show)
        self._detail = QWidget()
        below = QVBoxLayout(self._detail)
        below.setContentsMargins(0, 4, 0, 0)
        below.setSpacing(3)
        below.addLayout(bar)
        below.addWidget(self._replacement)
        below.addWidget(self._reason)
        below.addWidget(self._area, 3)
        below.addWidget(self._kernels, 2)
        splitter = QSplitter(Qt.Orientation.Vertical)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self._table)
        splitter.addWidget(self._detail)
        splitter.setSizes([100, 220])
        body = QWidget()
        layout = QVBoxLayout(body)
        layout.setContentsMargins(10, 8, 10, 8)
        layout.setSpacing(4)
        layout.addWidget(self._sentence)
        layout.addWidget(splitter, 1)
        return body

    def _update(self) -> None:
        session = self._session
        summary = session.summary
        self._candidates = summary.fusion_candidates if summary is not None else ()
        self._chosen = None
        if session.document is None:
            self._show_note(tr("Open a capture to see what could be fused in it."))
        elif summary is None:
            self._show_note(tr("The analyses are still running."))
        elif not self._candidates:
            self._show_note(empty_text(session.rank, has_kernels=bool(summary.operators)))
        else:
            self.setCurrentIndex(1)
            self._sentence.setText(sentence_of(self._candidates, session.rank))
            self._show_table()
            self._show_candidate(0, None)
            self._table.view.reveal(0)
            self._follow()

    def _show_table(self) -> None:
        """Shows the candidates; at first savings stand beside the pattern, and long texts leave room for numbers."""
        view = self._table.view
        is_first = view.table is None
        self._table.set_table(candidate_table(self._candidates))
        if view.table is None or not is_first:
            return
        numbers = {column.id: number for number, column in enumerate(view.table.columns)}
        for place, column in enumerate(COLUMN_ORDER):
            view.horizontalHeader().moveSection(view.horizontalHeader().visualIndex(numbers[column]), place)
        for column, characters in (("pattern", 40), ("replacement", 34)):
            width_px = min(view.columnWidth(numbers[column]), characters * self.fontMetrics().averageCharWidth())
            view.setColumnWidth(numbers[column], width_px)

    def _show_note(self, text: str) -> None:
        self._note.setText(text)
        self._lanes.set_lanes((), 0)
        self.setCurrentIndex(0)

    def _show_candidate(self, row: int, occurrence: int | None) -> None:
        trace = self._session.trace
        if trace is None:
            return
        candidate = self._candidates[row]
        self._chosen = row
        self._title.setText(title_of(candidate))
        replacement = candidate.replacement or tr("no existing operator is known; it would take a kernel of one's own")
        self._replacement.setText(tr("Replacement: {call}", call=replacement))
        self._reason.setText(candidate.reason)
        self._copy.setEnabled(bool(candidate.replacement))
        self._try.setEnabled(self._optimization is not None)
        self._lanes.set_lanes(lanes_of(trace, candidate, occurrence), len(candidate.occurrences))
        self._area.setMaximumHeight(self._lanes.sizeHint().height() + 4)
        self._mark(occurrence, None)

    def _mark(self, occurrence: int | None, event: int | None) -> None:
        """Marks an occurrence and a kernel in it; the table lists the kernels of the marked one, or of the first."""
        lanes = self._lanes.lanes
        self._lanes.set_selected(occurrence, event)
        lane = next((lane for lane in lanes if lane.index == occurrence), lanes[0] if lanes else None)
        if lane is None:
            return
        if lane is not self._listed:
            self._listed = lane
            self._kernels.set_table(kernel_table(lane))
            self._kernels.resizeColumnToContents(1)
            self._kernels.setColumnWidth(1, min(self._kernels.columnWidth(1), MAX_NAME_PX))
        row = next((row for row, item in enumerate(lane.slices) if item.event == event), None)
        if row is not None:
            self._kernels.reveal(row)

    @property
    def _optimization(self) -> str | None:
        """The id of the toggle that fuses the chosen pattern; None where there is none."""
        from engine.advisor.rules.fusion import optimization_of_pattern

        return None if self._chosen is None else optimization_of_pattern(self._candidates[self._chosen].pattern)

    # What the user does

    def _try_out(self) -> None:
        if self._optimization is not None:
            self._session.set_toggles(toggles_with(self._session.toggles, self._optimization))
            self._context.show_pane("whatif")

    def _choose(self, row: int) -> None:
        self._show_candidate(row, None)
        self._session.select(CandidateSelection(self._session.rank, self._candidates[row].pattern))

    def _choose_occurrence(self, occurrence: int) -> None:
        if self._chosen is not None:
            pattern = self._candidates[self._chosen].pattern
            self._session.select(CandidateSelection(self._session.rank, pattern, occurrence), reveal=True)

    def _choose_event(self, occurrence: int, event: int) -> None:
        self._mark(occurrence, event)
        self._session.select(EventSelection(self._session.rank, event), reveal=True)

    def _choose_kernel(self, row: int) -> None:
        if self._listed is not None:
            self._choose_event(self._listed.index, self._listed.slices[row].event)

    def _open_occurrence(self, occurrence: int) -> None:
        self._choose_occurrence(occurrence)
        self._session.show_selection()
        self._context.show_pane("timeline")

    def _show_on_timeline(self) -> None:
        marked = self._lanes.selected_occurrence
        if marked is None and self._lanes.lanes:
            marked = self._lanes.lanes[0].index
        if marked is not None:
            self._open_occurrence(marked)

    def _copy_replacement(self) -> None:
        if self._chosen is not None:
            QGuiApplication.clipboard().setText(self._candidates[self._chosen].replacement)

    def _follow(self) -> None:
        """Shows the candidate that is selected elsewhere, and outlines the event that is."""
        selection = self._session.selection
        if isinstance(selection, CandidateSelection) and selection.rank == self._session.rank:
            row = next((row for row, item in enumerate(self._candidates) if item.pattern == selection.pattern), None)
            if row is None:
                return
            listed = {lane.index for lane in self._lanes.lanes}
            if row != self._chosen or (selection.occurrence is not None and selection.occurrence not in listed):
                self._show_candidate(row, selection.occurrence)
                self._table.view.reveal(row)
            self._mark(selection.occurrence, None)
        elif isinstance(selection, EventSelection):
            event = selection.event
            owners = (lane.index for lane in self._lanes.lanes if any(item.event == event for item in lane.slices))
            owner = next(owners, None)
            if owner is not None:
                self._mark(owner, event)
            else:
                self._lanes.set_selected(None, None)


def empty_text(rank: int, *, has_kernels: bool) -> str:
    """Returns why a rank has no candidates."""
    if has_kernels:
        return tr("No sequence of kernels was found that an existing operator or call replaces.")
    return tr("The capture of rank {rank} lists no kernels: there is nothing to fuse in it.", rank=rank)


def sentence_of(candidates: tuple[FusionCandidate, ...], rank: int) -> str:
    """Returns how many patterns were found, and what may not be done with their savings."""
    return tr(
        "Rank {rank}: {count} patterns, the largest expected saving first. Savings of patterns that overlap must not "
        "be added up.",
        rank=rank,
        count=format_count(len(candidates)),
    )


def title_of(candidate: FusionCandidate) -> str:
    """Returns name, count, device time and saving of a candidate."""
    saving = candidate.saving_ns
    return tr(
        "{title}: {count} ×, {total} of device time. Saving {expected} expected, {low} at least, {high} at most.",
        title=candidate.title,
        count=format_count(candidate.count),
        total=format_duration_ns(candidate.total_ns),
        low=format_duration_ns(saving.low),
        expected=format_duration_ns(saving.expected),
        high=format_duration_ns(saving.high),
    )


def _text() -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
