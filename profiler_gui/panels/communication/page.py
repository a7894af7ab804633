"""The Communication page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QStackedWidget, QTabWidget, QVBoxLayout, QWidget

from engine.core.number_format import format_count, format_duration_ns, format_ratio
from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.summary_tables import collective_table, link_table
from profiler_gui.item_models.table_view import FilteredTable, TableView
from profiler_gui.panels.communication import overlap_bars
from profiler_gui.panels.communication.arrival_panel import ArrivalPanel, selected_collective
from profiler_gui.panels.communication.lanes import Lane, index_of_event, lanes_of
from profiler_gui.panels.communication.late_rank import unsplit_text
from profiler_gui.panels.communication.strip import RankStrip
from profiler_gui.session.calls import LatestCall
from profiler_gui.session.selection import CollectiveSelection, EventSelection, StepSelection
from profiler_gui.toolkit.bars import StackedBars
from profiler_gui.toolkit.columns import ColumnRow, StackedColumns
from profiler_gui.toolkit.fills import TRANSFER, UNSPLIT, WAIT, Legend, LegendEntry
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication import Collective
    from engine.analyses.summary import JobSummary

MAX_LYING_BARS = 12
"""More steps than this stand as columns."""
MIN_SHOWN_LANES = 8
MAX_SHOWN_LANES = 10
"""Beyond this the lanes scroll."""
VENDOR_COLUMNS = ("vendor_wait", "vendor_transit", "vendor_idle")


class CommunicationPage(QStackedWidget):
    """Ranks over time, the collectives as a table, the arrivals of the selected one, and the overlap of each step."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._shown: tuple[object, ...] = ()
        self.setAccessibleName(tr("Communication"))
        self._note = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._note.setWordWrap(True)
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._strip = RankStrip(context.session, context.theme)
        self._strip.chosen.connect(self._choose)
        self._arrivals = ArrivalPanel(context)
        self._make_tabs()
        self.addWidget(self._note)
        self.addWidget(_scrolled(self._make_body()))
        self._call = LatestCall(self)
        self._call.finished.connect(self._take_lanes)
        self._call.failed.connect(context.session.failed)
        context.closing.requested.connect(self._call.close)
        for signal in (self._session.document_changed, self._session.summary_changed):
            signal.connect(self._update_job)
        self._session.rank_changed.connect(self._update_rank)
        self._session.step_changed.connect(self._update_overlap)
        self._session.selection_changed.connect(self._update_selection)
        self._update_job()

    def _make_body(self) -> QWidget:
        legend = Legend(self._context.theme)
        legend.set_entries(
            (
                LegendEntry(tr("transfer"), TRANSFER),
                LegendEntry(tr("waiting for the last member"), WAIT),
                LegendEntry(tr("waiting and transfer unsplit"), UNSPLIT),
            )
        )
        half_height = QLabel(tr("Half height: hidden behind computing"))
        key = QHBoxLayout()
        key.addWidget(legend, 1)
        key.addWidget(half_height)
        self._strip_area = _scrolled(self._strip)
        body = QWidget()
        layout = QVBoxLayout(body)
        layout.setContentsMargins(10, 8, 10, 8)
        layout.addWidget(self._sentence)
        layout.addWidget(self._strip_area)
        layout.addLayout(key)
        layout.addWidget(self._arrivals)
        layout.addWidget(self._tabs, 1)
        return body

    def _make_tabs(self) -> None:
        theme = self._context.theme
        self._table = FilteredTable(tr("Collectives"))
        self._table.view.row_chosen.connect(lambda row: self._choose(self._session.rank, row))
        self._links = TableView(tr("Links"))
        self._bars = StackedBars(theme, tr("Overlap per step"))
        self._bars.activated.connect(lambda row, _: self._choose_step(row))
        self._columns = StackedColumns(theme, tr("Overlap per step"))
        self._columns.activated.connect(lambda _, index: self._choose_step(index))
        legend = Legend(theme)
        legend.set_entries(overlap_bars.legend())
        overlap = QWidget()
        layout = QVBoxLayout(overlap)
        for widget in (self._bars, self._columns, legend):
            layout.addWidget(widget)
        layout.addStretch(1)
        self._tabs = QTabWidget()
        self._tabs.setMinimumHeight(self.fontMetrics().height() * 8)
        self._tabs.setAccessibleName(tr("Collectives, overlap and links"))
        self._tabs.addTab(self._table, tr("Collectives"))
        self._tabs.addTab(_scrolled(overlap), tr("Overlap per step"))
        self._tabs.addTab(self._links, tr("Links"))

    def _update_job(self) -> None:
        document, summary = self._session.document, self._session.job_summary
        self._call.cancel()
        self._strip.set_lanes((), None)
        if document is None:
            self._show_note(tr("Open a capture to see its communication here."))
        elif summary is None:
            self._show_note(tr("The analyses are still running."))
        elif not any(summary.communication.collectives.values()):
            self._show_note(tr("This capture holds no communication: no collective ran in it."))
        else:
            self.setCurrentIndex(1)
            job, joined = document.job, summary.communication
            self._call.start(lambda: lanes_of(job, joined))
        self._update_rank()

    def _show_note(self, text: str) -> None:
        self._note.setText(text)
        self.setCurrentIndex(0)

    def _take_lanes(self, lanes: tuple[Lane, ...]) -> None:
        summary = self._session.job_summary
        if summary is not None:
            self._strip.set_lanes(lanes, summary.communication)
            self._strip_area.setMinimumHeight(self._strip.height_of(min(len(lanes), MIN_SHOWN_LANES)))
            self._strip_area.setMaximumHeight(self._strip.height_of(min(len(lanes), MAX_SHOWN_LANES)))
            self._update_selection()

    def _update_rank(self) -> None:
        summary, rank = self._session.job_summary, self._session.rank
        if summary is None:
            return
        collectives = summary.communication.collectives.get(rank, ())
        self._sentence.setText(sentence_of(summary, rank))
        self._table.set_table(collective_table(collectives))
        table = self._table.view.table
        for number, column in enumerate(table.columns if table else ()):
            self._table.view.setColumnHidden(number, column.id in VENDOR_COLUMNS)
        links = summary.communication.links.get(rank, ())
        self._links.set_table(link_table(links))
        self._tabs.setTabVisible(2, bool(links))
        self._update_overlap()
        self._update_selection()

    def _update_overlap(self) -> None:
        summary = self._session.summary
        if summary is None:
            return
        bars = overlap_bars.overlap_bars(summary.steps, self._session.step)
        lies = len(bars) <= MAX_LYING_BARS
        self._bars.setVisible(lies)
        self._columns.setVisible(not lies)
        if lies:
            self._bars.set_bars(bars)
        else:
            self._columns.set_rows((ColumnRow("", bars),))

    def _update_selection(self) -> None:
        found = self._collective_of_selection()
        self._arrivals.set_collective(found)
        if found is None:
            self._strip.set_selected(self._session.rank, None)
            return
        self._strip.set_selected(*found)
        if found[0] == self._session.rank:
            self._table.view.reveal(found[1])

    def _collective_of_selection(self) -> tuple[int, int] | None:
        """Returns rank and index of the selected collective; an event of the timeline may stand for one."""
        summary, selection = self._session.job_summary, self._session.selection
        if summary is None:
            return None
        if isinstance(selection, EventSelection):
            index = index_of_event(summary.communication.collectives, selection.rank, selection.event)
            return None if index is None else (selection.rank, index)
        return selected_collective(selection)

    def _choose(self, rank: int, index: int) -> None:
        self._session.select(CollectiveSelection(rank, index), reveal=True)

    def _choose_step(self, index: int) -> None:
        self._session.select(StepSelection(self._session.rank, index), reveal=True)


def _scrolled(widget: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidget(widget)
    return area


def sentence_of(summary: JobSummary, rank: int) -> str:
    """Returns what a rank's communication amounts to, in one line."""
    from engine.analyses.communication.collective_times import collective_times

    collectives = summary.communication.collectives.get(rank, ())
    if not collectives:
        return tr("Rank {rank} takes part in no collective.", rank=rank)
    times = collective_times(collectives)
    parts = [tr("{count} collectives", count=format_count(len(collectives)))]
    if times.wait.total_ns or times.transfer.total_ns:
        parts.append(tr("{duration} waiting", duration=format_duration_ns(times.wait.total_ns)))
        parts.append(tr("{duration} transfer", duration=format_duration_ns(times.transfer.total_ns)))
    device = summary.rank(rank).device
    if device is not None and device.overlap_ratio is not None:
        exposed = format_duration_ns(device.exposed_communication_ns)
        parts.append(tr("{duration} exposed", duration=exposed))
        parts.append(tr("{share} hidden behind computing", share=format_ratio(device.overlap_ratio)))
    text = tr("Rank {rank}: {parts}.", rank=rank, parts=", ".join(parts))
    unsplit = [item for item in collectives if item.wait_ns is None]
    return f"{text} {_unsplit(unsplit)}" if unsplit else text


def _unsplit(unsplit: list[Collective]) -> str:
    missing = tuple(sorted({rank for item in unsplit for rank in item.missing_ranks}))
    return tr("{count} {reason}.", count=format_count(len(unsplit)), reason=unsplit_text(missing))
