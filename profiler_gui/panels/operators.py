"""Device time by operator type; opening one finds its tasks on the timeline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from engine.core.number_format import format_count, format_duration_ns
from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.summary_tables import operator_table
from profiler_gui.item_models.table_model import SORT_ROLE
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.session.calls import LatestCall
from profiler_gui.session.filters import SearchQuery
from profiler_gui.session.selection import EventSelection, OperatorSelection
from profiler_gui.toolkit.share_bars import ShareDelegate
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.operators import OperatorStatistic
    from engine.trace import Trace


_SHARE_PLACE = 4
"""Behind type, core, count and total."""


def task_names(trace: Trace, operator_type: str) -> tuple[str, ...]:
    """Returns the distinct names of the device tasks of an operator type, in order of their ids."""
    wanted = trace.strings.id_of(operator_type)
    kernels = trace.kernels
    typed = kernels.event[(kernels.op_type == wanted) & (kernels.event >= 0)]
    ids = np.unique(trace.events.name[typed])
    return tuple(trace.strings.texts(ids)) or (operator_type,)


def query_of(trace: Trace, operator_type: str) -> SearchQuery:
    """Returns the search that hits exactly the events named as the tasks of an operator type."""
    names = task_names(trace, operator_type)
    return SearchQuery("^(?:" + "|".join(re.escape(name) for name in names) + ")$", regex=True, match_case=True)


def operator_type_of(trace: Trace, event: int) -> str:
    """Returns the operator type of a device task, its name where the capture has no types."""
    kernel = int(trace.kernel_row_of_event[event])
    recorded = int(trace.kernels.op_type[kernel]) if kernel >= 0 else -1
    return trace.strings.text(recorded) if recorded >= 0 else trace.name(event)


class OperatorsTable(QWidget):
    """Operator types of the step in view, or of the whole trace.

    A click selects an operator, a double click (or Enter, or the button) searches for its tasks, so that the timeline
    highlights them.
    """

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._operators: tuple[OperatorStatistic, ...] = ()
        self._wants_match_in_view = False
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._find = QPushButton(tr("&Find on Timeline"))
        self._find.setToolTip(tr("Searches for the tasks of the selected operator and shows the timeline"))
        self._find.clicked.connect(self._find_selected)
        self._table = FilteredTable(tr("Operators"))
        self._table.view.row_chosen.connect(self._choose)
        self._table.view.row_opened.connect(self._open)
        self._shares = ShareDelegate(context.theme, SORT_ROLE, self)
        self._table.add_control(self._find)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(4)
        layout.addWidget(self._note)
        layout.addWidget(self._table, 1)
        self._call = LatestCall(self)
        self._call.finished.connect(self._show)
        self._call.failed.connect(context.session.failed)
        context.closing.requested.connect(self._call.close)
        for signal in (
            self._session.document_changed,
            self._session.summary_changed,
            self._session.rank_changed,
            self._session.step_changed,
        ):
            signal.connect(self._update)
        self._session.selection_changed.connect(self._follow)
        self._session.search_changed.connect(self._take_matches)
        self._update()

    def _take_matches(self) -> None:
        if self._wants_match_in_view:
            self._bring_a_match_into_view()

    def _update(self) -> None:
        trace, summary, step = self._session.trace, self._session.summary, self._session.step
        self._call.cancel()
        if trace is None or summary is None:
            text = tr("Open a capture to see its operators here.") if trace is None else tr("Analyses are running…")
            self._show((), text)
        elif step is None:
            self._show(summary.operators)
        else:
            window = summary.steps[step].range

            def compute() -> tuple[OperatorStatistic, ...]:
                from engine.analyses.operators import operator_statistics

                return operator_statistics(trace, window)

            self._call.start(compute)

    def _show(self, operators: tuple[OperatorStatistic, ...], note: str = "") -> None:
        self._operators = operators
        self._table.setVisible(bool(operators))
        self._find.setVisible(bool(operators))
        self._note.setText(note or self._summary_text())
        if operators:
            self._table.set_table(operator_table(operators))
            share = self._columns().index("share")
            self._table.view.setItemDelegateForColumn(share, self._shares)
            header = self._table.view.horizontalHeader()
            if header.visualIndex(share) == share:  # where nobody has moved it: in view without scrolling
                header.moveSection(share, _SHARE_PLACE)
            self._follow()

    def _columns(self) -> list[str]:
        table = self._table.view.table
        return [] if table is None else [column.id for column in table.columns]

    def _summary_text(self) -> str:
        if not self._operators:
            return tr("This rank's trace holds no computing on a device.")
        return tr(
            "{total} of computing in {count} tasks, {where}",
            total=format_duration_ns(sum(item.total_ns for item in self._operators)),
            count=format_count(sum(item.count for item in self._operators)),
            where=tr("whole trace") if self._session.step is None else tr("step in view"),
        )

    def _choose(self, row: int) -> None:
        self._session.select(OperatorSelection(self._session.rank, self._operators[row].type))

    def _find_selected(self) -> None:
        table, index = self._table.view.table, self._table.view.currentIndex()
        if table is not None and index.isValid():
            self._open(table.source_row(index))
        elif self._operators:
            self._open(0)

    def _open(self, row: int) -> None:
        trace = self._session.trace
        if trace is not None:
            self._choose(row)
            self._session.set_query(query_of(trace, self._operators[row].type))
            self._bring_a_match_into_view()
            self._context.show_pane("timeline")

    def _bring_a_match_into_view(self) -> None:
        """Shows the whole trace where no match lies in the viewport: everything in it would be dimmed."""
        trace = self._session.trace
        # In a large trace the matches are still to come: they say so themselves.
        self._wants_match_in_view = self._session.is_searching
        if trace is None or self._wants_match_in_view:
            return
        matches, viewport = self._session.matches.events, self._session.viewport
        starts_ns, ends_ns = trace.events.start_ns[matches], trace.events.end_ns[matches]
        if not np.any((starts_ns < viewport.end_ns) & (ends_ns > viewport.start_ns)):
            self._session.show_all()

    def _follow(self) -> None:
        """Marks the row of what is selected elsewhere."""
        trace, selection = self._session.trace, self._session.selection
        if isinstance(selection, OperatorSelection):
            wanted = selection.type
        elif isinstance(selection, EventSelection) and trace is not None:
            wanted = operator_type_of(trace, selection.event)
        else:
            return
        row = next((row for row, item in enumerate(self._operators) if item.type == wanted), None)
        if row is not None and not self._is_current(wanted):
            self._table.view.reveal(row)

    def _is_current(self, operator_type: str) -> bool:
        """Whether a row of this type is current already: a type may have a row per core."""
        table, index = self._table.view.table, self._table.view.currentIndex()
        return table is not None and index.isValid() and self._operators[table.source_row(index)].type == operator_type
