"""Blocks of memory as tables: those alive at the peak by operator, and all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QSplitter, QVBoxLayout, QWidget

from engine.core.number_format import format_bytes, format_count
from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.table_model import SORT_ROLE
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.item_models.trace_tables import allocation_table
from profiler_gui.panels.memory.tables import alive_table
from profiler_gui.session.selection import AllocationSelection, EventSelection
from profiler_gui.toolkit.preferences import TIME_UNIT
from profiler_gui.toolkit.share_bars import ShareDelegate
from profiler_gui.toolkit.time_axis import TimeUnit
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from collections.abc import Sequence

    from engine.analyses.memory import LiveAtPeak
    from engine.core.arrays import Int64Array
    from engine.trace import Trace


class BlockTable(QWidget):
    """Blocks, in step with the selection. A click selects a block, opening one shows its operator on the timeline."""

    def __init__(self, context: PaneContext, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._trace: Trace | None = None
        self._table = FilteredTable(name)
        self._table.view.row_chosen.connect(self._choose)
        self._table.view.row_opened.connect(self._open)
        self._show = QPushButton(tr("&Show on Timeline"))
        self._show.setToolTip(
            tr("Shows the operator that allocated the selected block, or the block's lifetime where none is recorded")
        )
        self._show.clicked.connect(self._open_selected)
        self._table.add_control(self._show)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._table)
        self._session.selection_changed.connect(self._follow)

    @property
    def table(self) -> FilteredTable:
        """The table."""
        return self._table

    def set_blocks(self, trace: Trace | None, rows: Int64Array | None = None) -> None:
        """Shows some rows (int64, ascending) of a trace's allocations; all for None."""
        if trace is None:
            self._trace = None
            return
        if trace is not self._trace:
            self._trace = trace
            unit = TimeUnit(self._context.settings.value(TIME_UNIT))
            self._table.set_table(allocation_table(trace, unit))
            self._hide_empty_columns(trace)
        table = self._table.view.table
        if table is not None:
            table.set_rows(rows)
        self._follow()

    def _hide_empty_columns(self, trace: Trace) -> None:
        """Hides columns that the source leaves empty in every row."""
        blocks, table = trace.memory.allocations, self._table.view.table
        empty = {
            "address": not bool(np.any(blocks.address >= 0)),
            "requested": not bool(np.any(blocks.requested_bytes >= 0)),
            "stream": not bool(np.any(blocks.stream >= 0)),
            "device": len(np.unique(blocks.device)) < 2,
        }
        for number, column in enumerate(table.columns if table is not None else ()):
            self._table.view.setColumnHidden(number, empty.get(column.id, False))

    def _choose(self, row: int) -> None:
        self._session.select(AllocationSelection(self._session.rank, row), reveal=True)

    def _open_selected(self) -> None:
        table, index = self._table.view.table, self._table.view.currentIndex()
        if table is not None and index.isValid():
            self._open(table.source_row(index))

    def _open(self, row: int) -> None:
        session = self._session
        event = int(self._trace.memory.allocations.event[row]) if self._trace is not None else -1
        if event >= 0:
            session.select(EventSelection(session.rank, event), reveal=True)
        else:
            self._choose(row)
        session.show_selection()
        self._context.show_pane("timeline")

    def _follow(self) -> None:
        """Makes the selected block current, or the first one that the selected event allocated."""
        selection, table = self._session.selection, self._table.view.table
        if self._trace is None or table is None or self._trace is not self._session.trace:
            return
        if isinstance(selection, AllocationSelection) and selection.row < table.total_count:
            self._table.view.reveal(selection.row)
        elif isinstance(selection, EventSelection):
            rows = np.flatnonzero(self._trace.memory.allocations.event == selection.event)
            if len(rows):
                self._table.view.reveal(int(rows[0]))


class AliveAtPeak(QSplitter):
    """Operators whose blocks were alive at the peak; one of them leads to its blocks."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._trace: Trace | None = None
        self._alive: Sequence[LiveAtPeak] = ()
        self._operators = FilteredTable(tr("Alive at the peak, by operator"))
        self._operators.view.row_chosen.connect(self._show_operator)
        self._shares = ShareDelegate(context.theme, SORT_ROLE, self)
        self._blocks = BlockTable(context, tr("Blocks alive at the peak"))
        self.addWidget(self._operators)
        self.addWidget(self._blocks)
        self.setSizes([100, 100])
        self.setChildrenCollapsible(False)

    @property
    def operators(self) -> FilteredTable:
        """The table of operators."""
        return self._operators

    @property
    def blocks(self) -> BlockTable:
        """The table of their blocks."""
        return self._blocks

    def set_alive(self, trace: Trace, alive: Sequence[LiveAtPeak]) -> None:
        """Shows other operators, and the blocks of all of them."""
        self._trace, self._alive = trace, alive
        self._operators.set_table(alive_table(alive))
        self._operators.view.setItemDelegateForColumn(2, self._shares)
        self._show_blocks(alive)

    def _show_operator(self, row: int) -> None:
        self._show_blocks([self._alive[row]])

    def _show_blocks(self, alive: Sequence[LiveAtPeak]) -> None:
        rows = [row for item in alive for row in item.allocations]
        self._blocks.set_blocks(self._trace, np.sort(np.array(rows, dtype=np.int64)))
        what = tr(
            "{count} blocks, {size}",
            count=format_count(len(rows)),
            size=format_bytes(sum(item.bytes for item in alive)),
        )
        self._blocks.setAccessibleDescription(what)
