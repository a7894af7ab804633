"""A table as people expect it: filter line, sorting by header, copying, columns to choose, a count."""

import json
from collections.abc import Callable, Container, Iterator, Sequence

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QGuiApplication, QHideEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from engine.core.number_format import format_count
from profiler_gui.item_models.export import tsv
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.toolkit.translations import tr

FILTER_DELAY_MS = 150
SAMPLE_ROWS = 60
MAX_COLUMN_PX = 420


class TableView(QTableView):
    """The view of a TableModel.

    Signals:
        row_chosen: The engine's row of the row that became current by the user's doing.
        row_opened: The engine's row of a double-clicked row, or one on which Enter was pressed.
    """

    row_chosen = Signal(int)
    row_opened = Signal(int)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sorted_by: tuple[int, bool] | None = None
        self._kept_layout: dict[str, object] = {}
        self.setAccessibleName(name)
        self.setAlternatingRowColors(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setWordWrap(False)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(self.fontMetrics().height() + 6)
        header = self.horizontalHeader()
        header.setSectionsMovable(True)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        header.setHighlightSections(False)
        header.sectionClicked.connect(self._sort_by)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._choose_columns)
        self.activated.connect(self._open)
        copy = QAction(tr("Copy"), self)
        copy.setShortcut(QKeySequence.StandardKey.Copy)
        copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        copy.triggered.connect(self.copy)
        self.addAction(copy)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    @property
    def table(self) -> TableModel | None:
        """The model."""
        model = self.model()
        return model if isinstance(model, TableModel) else None

    def set_table(self, table: TableModel) -> None:
        """Shows another model, which this view owns from now on; order and widths of columns are kept."""
        before, selection = self.table, self.selectionModel()
        header = self.horizontalHeader()
        same_columns = before is not None and [column.id for column in before.columns] == [
            column.id for column in table.columns
        ]
        table.setParent(self)
        if same_columns and self._sorted_by is not None:
            section, descending = self._sorted_by
            table.sort(section, Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder)
        else:
            self._sorted_by = None
            header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setModel(table)
        if selection is not None:
            selection.deleteLater()
        if before is not None:
            before.deleteLater()
        if not same_columns:
            self._fit_columns(table)
            self._apply_layout(table)
        self.selectionModel().currentRowChanged.connect(self._choose)

    def reveal(self, source_row: int) -> None:
        """Makes a row of the engine's table current and visible, without announcing it or taking the focus."""
        if self.table is None:
            return
        index = self.table.index_of(source_row)
        selection = self.selectionModel()
        was_blocked = self.blockSignals(True)  # row_chosen is for the user's doing
        flags = QItemSelectionModel.SelectionFlag
        selection.setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
        self.blockSignals(was_blocked)
        if index.isValid():
            self.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)

    @property
    def layout_text(self) -> str:
        """Order, widths and choice of the columns as text, by column id; "" before there are any."""
        header = self.horizontalHeader()
        if self.table is None:
            return ""
        return json.dumps(
            {
                column.id: [header.visualIndex(number), self.columnWidth(number), self.isColumnHidden(number)]
                for number, column in enumerate(self.table.columns)
            }
        )

    def restore_layout(self, text: str) -> None:
        """Applies a ``layout_text``, now or when a table is set; what it does not name, or misnames, is left alone."""
        try:
            kept = json.loads(text) if text else {}
        except ValueError:
            return
        self._kept_layout = kept if isinstance(kept, dict) else {}
        if self.table is not None:
            self._apply_layout(self.table)

    def show_at_most(self, row_count: int) -> None:
        """Limits the height to some whole rows."""
        rows_px = row_count * self.verticalHeader().defaultSectionSize()
        self.setMaximumHeight(rows_px + self.horizontalHeader().sizeHint().height() + 2 * self.frameWidth())

    def copy(self) -> None:
        """Puts the selected rows (all rows, where none is selected) on the clipboard as TSV."""
        if self.table is None:
            return
        header = self.horizontalHeader()
        selected = sorted(index.row() for index in self.selectionModel().selectedRows())
        rows: Sequence[int] = selected or range(self.table.rowCount())
        columns = [header.logicalIndex(place) for place in range(header.count())]
        shown = [column for column in columns if not header.isSectionHidden(column)]
        QGuiApplication.clipboard().setText(tsv(self.table, rows, shown))

    def _sort_by(self, section: int) -> None:
        if self.table is None:
            return
        header = self.horizontalHeader()
        # The header has toggled its own indicator already, so what holds is kept here.
        descending = self.table.columns[section].is_number
        if self._sorted_by is not None and self._sorted_by[0] == section:
            descending = not self._sorted_by[1]
        self._sorted_by = (section, descending)
        order = Qt.SortOrder.DescendingOrder if descending else Qt.SortOrder.AscendingOrder
        header.setSortIndicator(section, order)
        self.table.sort(section, order)

    def _choose(self, current: QModelIndex) -> None:
        if current.isValid() and self.table is not None:
            self.row_chosen.emit(self.table.source_row(current))

    def _open(self, index: QModelIndex) -> None:
        if self.table is not None:
            self.row_opened.emit(self.table.source_row(index))

    def _choose_columns(self, position: QPoint) -> None:
        if self.table is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for number, column in enumerate(self.table.columns):
            action = menu.addAction(column.title)
            action.setCheckable(True)
            action.setChecked(not self.isColumnHidden(number))
            action.toggled.connect(self._shower(number))
        menu.popup(self.horizontalHeader().mapToGlobal(position))

    def _shower(self, number: int) -> Callable[[bool], None]:
        return lambda shown: self.setColumnHidden(number, not shown)

    def _apply_layout(self, table: TableModel) -> None:
        header = self.horizontalHeader()
        numbers = {column.id: number for number, column in enumerate(table.columns)}
        wanted = [(place, numbers[name], width, hidden) for name, place, width, hidden in self._kept(numbers)]
        for place, number, width_px, hidden in sorted(wanted):
            header.moveSection(header.visualIndex(number), min(place, header.count() - 1))
            self.setColumnHidden(number, hidden)
            if not hidden:
                self.setColumnWidth(number, width_px)

    def _kept(self, known: Container[str]) -> Iterator[tuple[str, int, int, bool]]:
        for name, value in self._kept_layout.items():
            match value:
                case [int(place), int(width_px), bool(hidden)] if name in known and place >= 0 and width_px >= 0:
                    yield name, place, width_px, hidden

    def _fit_columns(self, table: TableModel) -> None:
        metrics = self.fontMetrics()
        sample = range(min(SAMPLE_ROWS, table.rowCount()))
        for number, column in enumerate(table.columns):
            texts = [column.text(int(table.order[row])) for row in sample]
            width_px = max((metrics.horizontalAdvance(text) for text in texts), default=0)
            width_px = max(width_px, metrics.horizontalAdvance(column.title) + 24)
            self.setColumnWidth(number, min(width_px + 16, MAX_COLUMN_PX))


class FilteredTable(QWidget):
    """A table view under a filter line that says how many rows are shown.

    Args:
        name: Accessible name of the table.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = TableView(name)
        self.filter_edit = QLineEdit()
        self.filter_edit.setPlaceholderText(tr("Filter"))
        self.filter_edit.setAccessibleName(tr("Filter {table}", table=name))
        self.filter_edit.setClearButtonEnabled(True)
        self._count = QLabel()
        self._count.setAccessibleName(tr("Rows shown"))
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.setInterval(FILTER_DELAY_MS)
        self._delay.timeout.connect(self._apply)
        self.filter_edit.textChanged.connect(lambda _: self._delay.start())
        self._bar = QHBoxLayout()
        self._bar.addWidget(self.filter_edit, 1)
        self._bar.addWidget(self._count)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(self._bar)
        layout.addWidget(self.view, 1)

    def add_control(self, control: QWidget) -> None:
        """Puts a control in front of the filter line, behind those added before: docks are low, lines are dear."""
        self._bar.insertWidget(self._bar.count() - 2, control)

    def set_table(self, table: TableModel) -> None:
        """Shows another model under the same filter."""
        table.set_filter(self.filter_edit.text())
        self.view.set_table(table)
        table.layoutChanged.connect(self._show_count)
        self._show_count()

    def hideEvent(self, event: QHideEvent) -> None:
        """Qt: out of sight, nothing is waited for."""
        if self._delay.isActive():
            self._delay.stop()
            self._apply()
        super().hideEvent(event)

    def _apply(self) -> None:
        if self.view.table is not None:
            self.view.table.set_filter(self.filter_edit.text())

    def _show_count(self) -> None:
        table = self.view.table
        if table is None:
            return
        shown, total = table.rowCount(), table.total_count
        text = format_count(total) if shown == total else f"{format_count(shown)} / {format_count(total)}"
        self._count.setText(text)
