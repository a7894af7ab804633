"""What the readers and analyses could not use, counted: nothing disappears silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from engine.core.number_format import format_count
from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.columns import text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.item_models.trace_tables import diagnostic_table
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.trace import Diagnostic
    from profiler_gui.session.document import Document

_ORDER = ("error", "data_loss", "notice")


def diagnostics_of(document: Document) -> tuple[tuple[int | None, Diagnostic], ...]:
    """Returns (rank, diagnostic), the most severe first; the rank is None for what concerns the whole job."""
    found: list[tuple[int | None, Diagnostic]] = [(None, item) for item in document.job.diagnostics]
    for entry in document.job.ranks:
        found += [(entry.rank, item) for item in entry.trace.diagnostics]
    if document.summary is not None:
        found += [(None, item) for item in document.summary.communication.diagnostics]
    return tuple(sorted(found, key=lambda entry: _ORDER.index(entry[1].severity.value)))


class DiagnosticsTable(QWidget):
    """Diagnostics by severity; the number of them stands in the window title of this widget."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = context.session
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._table = FilteredTable(tr("Diagnostics"))
        self._table.view.row_chosen.connect(self._show_whole)
        self._whole = QLabel()
        self._whole.setWordWrap(True)
        self._whole.setAccessibleName(tr("Selected diagnostic"))
        self._whole.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._found: tuple[tuple[int | None, Diagnostic], ...] = ()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(4)
        layout.addWidget(self._note)
        layout.addWidget(self._table, 1)
        layout.addWidget(self._whole)
        self._session.document_changed.connect(self._update)
        self._session.summary_changed.connect(self._update)
        self._update()

    def _update(self) -> None:
        document = self._session.document
        self._found = found = () if document is None else diagnostics_of(document)
        self._whole.hide()
        self._table.setVisible(bool(found))
        self.setWindowTitle(tr("Diagnostics ({count})", count=format_count(len(found))) if found else tr("Diagnostics"))
        if document is None:
            self._note.setText(tr("Open a capture to see here what could not be used of it."))
        elif not found:
            self._note.setText(tr("Everything in the capture was used."))
        else:
            self._note.setText(_summary_text(found))
            self._table.set_table(_table(found))

    def _show_whole(self, row: int) -> None:
        item = self._found[row][1]
        position = str(item.position)
        self._whole.setText(f"{item.message}\n{position}" if position else item.message)
        self._whole.show()


def _summary_text(found: tuple[tuple[int | None, Diagnostic], ...]) -> str:
    counts = dict.fromkeys(_ORDER, 0)
    for _, item in found:
        counts[item.severity.value] += 1
    titles = {"error": tr("errors"), "data_loss": tr("losses of data"), "notice": tr("notices")}
    return ", ".join(f"{titles[severity]}: {format_count(count)}" for severity, count in counts.items() if count)


def _table(found: tuple[tuple[int | None, Diagnostic], ...]) -> TableModel:
    """Returns the engine's table with a column that says whose diagnostic it is."""
    table = diagnostic_table(tuple(item for _, item in found))
    ranks = [tr("job") if rank is None else str(rank) for rank, _ in found]
    columns = (table.columns[0], text_column("rank", tr("Rank"), ranks), *table.columns[1:])
    return TableModel(columns, len(found))
