"""The item model of every table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from profiler_gui.item_models.columns import Column

SORT_ROLE = Qt.ItemDataRole.UserRole
"""The value a cell is sorted by."""
UNIT_ROLE = Qt.ItemDataRole.UserRole + 1
"""The unit of a column's copied values (of a cell or a header)."""
ROW_ROLE = Qt.ItemDataRole.UserRole + 2
"""The row of the engine's table that a row shows."""
RAW_ROLE = Qt.ItemDataRole.UserRole + 3
"""What is copied from a cell."""

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class TableModel(QAbstractTableModel):
    """Rows of an engine table in an order of their own; a million rows cost one int64 array.

    Args:
        columns: All over the same number of rows.
        row_count: That number.
    """

    def __init__(self, columns: Sequence[Column], row_count: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._columns = tuple(columns)
        self._total_count = row_count
        self._rows: NDArray[np.int64] | None = None
        self._filter = ""
        self._sorted_by: tuple[int, bool] | None = None
        self._order = np.arange(row_count, dtype=np.int64)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return self._columns

    @property
    def total_count(self) -> int:
        """Rows without any filter."""
        return self._total_count

    @property
    def order(self) -> NDArray[np.int64]:
        """Rows of the engine's table in the order shown, int64, shape (rowCount,)."""
        return self._order

    def source_row(self, index: Index) -> int:
        """Returns the row of the engine's table that an index stands for."""
        return int(self._order[index.row()])

    def index_of(self, source_row: int) -> QModelIndex:
        """Returns the index that shows a row of the engine's table; an invalid one where it is filtered out."""
        found = np.flatnonzero(self._order == source_row)
        return self.index(int(found[0]), 0) if len(found) else QModelIndex()

    def set_filter(self, text: str) -> None:
        """Shows only rows in which a text column contains ``text``; all rows for an empty text."""
        if text != self._filter:
            self._filter = text
            self._rebuild()

    def set_rows(self, rows: NDArray[Any] | None) -> None:
        """Restricts the table to some rows of the engine's table (int, ascending); None for all."""
        self._rows = None if rows is None else rows.astype(np.int64)
        self._rebuild()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Qt: sorts; equal cells keep the engine's order; a column of −1 restores the engine's order."""
        self._sorted_by = None if column < 0 else (column, order is Qt.SortOrder.DescendingOrder)
        self._rebuild()

    def _rebuild(self) -> None:
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        kept = [(int(self._order[index.row()]), index.column()) for index in before]
        self._order = self._sorted(self._filtered())
        if before:  # selected and current cells: a handful
            position = np.full(self._total_count, -1, dtype=np.int64)
            position[self._order] = np.arange(len(self._order))
            after = [
                self.createIndex(int(position[row]), column) if position[row] >= 0 else QModelIndex()
                for row, column in kept
            ]
            self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def _filtered(self) -> NDArray[np.int64]:
        if not self._filter:
            return np.arange(self._total_count, dtype=np.int64) if self._rows is None else self._rows
        matching = np.zeros(self._total_count, dtype=np.bool_)
        for column in self._columns:
            if column.matches is not None:
                matching |= column.matches(self._filter)
        if self._rows is None:
            return np.flatnonzero(matching).astype(np.int64)
        return self._rows[matching[self._rows]]

    def _sorted(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._sorted_by is None:
            return rows
        column, descending = self._sorted_by
        keys = self._columns[column].keys()[rows]
        if not descending:
            return rows[np.argsort(keys, kind="stable")]
        # Reversed twice, so that equal keys keep their order; NaN ("no value") stays last either way.
        order = np.argsort(keys[::-1], kind="stable")[::-1]
        descending_rows = rows[len(rows) - 1 - order]
        if keys.dtype.kind == "f":
            absent_count = int(np.isnan(keys).sum())
            descending_rows = np.concatenate((descending_rows[absent_count:], descending_rows[:absent_count]))
        return descending_rows

    def rowCount(self, parent: Index = _ROOT) -> int:
        """Qt: rows shown."""
        return 0 if parent.isValid() else len(self._order)

    def columnCount(self, parent: Index = _ROOT) -> int:
        """Qt: columns."""
        return 0 if parent.isValid() else len(self._columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Qt: a cell."""
        if not index.isValid():
            return None
        column = self._columns[index.column()]
        row = int(self._order[index.row()])
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return column.text(row)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == SORT_ROLE:
            return column.keys()[row].item()
        if role == RAW_ROLE:
            return column.raw(row)
        return {UNIT_ROLE: column.unit, ROW_ROLE: row}.get(role)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Qt: a header."""
        if orientation is Qt.Orientation.Vertical:
            return section + 1 if role == Qt.ItemDataRole.DisplayRole else None
        if not 0 <= section < len(self._columns):
            return None
        column = self._columns[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        return {Qt.ItemDataRole.DisplayRole: column.title, UNIT_ROLE: column.unit}.get(Qt.ItemDataRole(role))
