"""The jitter report: every late request with its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.core.number_format import format_duration_ns
from profiler_gui.item_models.columns import number_column, text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.panels.serving.words import (
    cause_text,
    cause_texts,
    late_summary,
    wait_text,
)
from profiler_gui.toolkit.labels import text_label
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.serving.jitter import LateRequest
    from engine.workloads.serving.prevention import JitterReport

CAUSE_COLUMN = 2


class LateList(QWidget):
    """Late requests as a table, the latest first.

    Signals:
        request_chosen: A request whose row was chosen.
        request_opened: A request to be looked at closely.
    """

    request_chosen = Signal(int)
    request_opened = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report: JitterReport | None = None
        self.summary = text_label(name=tr("How many requests were late"))
        self.table = FilteredTable(tr("Late requests"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(self.summary)
        layout.addWidget(self.table, 1)
        self.table.view.row_chosen.connect(lambda row: self.request_chosen.emit(self.listed[row].request))
        self.table.view.row_opened.connect(lambda row: self.request_opened.emit(self.listed[row].request))
        self.show_report(None)

    @property
    def listed(self) -> tuple[LateRequest, ...]:
        """The late requests in the engine's order: the latest first."""
        return self._report.jitter.listed if self._report is not None else ()

    def show_report(self, report: JitterReport | None) -> None:
        """Shows who was late; None while that is looked for."""
        self._report = report
        self.summary.setText(late_summary(report.jitter) if report is not None else "")
        is_first = self.table.view.table is None
        if report is not None or not is_first:  # widths are measured at the first table
            self.table.set_table(_table(self.listed))
        if report is not None and is_first:  # the next run has other causes
            widest_px = max(self.fontMetrics().horizontalAdvance(text) for text in cause_texts())
            self.table.view.setColumnWidth(CAUSE_COLUMN, widest_px + 16)

    def show_request(self, request: int) -> None:
        """Marks a request's row, where it was late."""
        at = next((number for number, late in enumerate(self.listed) if late.request == request), None)
        if at is None:
            self.table.view.clearSelection()
        else:
            self.table.view.reveal(at)


def _table(listed: tuple[LateRequest, ...]) -> TableModel:
    """Returns the table of late requests; two hundred rows at most."""
    taken_ns = np.array([late.taken_ns for late in listed], dtype=np.int64)
    excess_ns = np.array([late.taken_ns - late.limit_ns for late in listed], dtype=np.float64)
    columns = (
        number_column("request", tr("Request"), np.array([late.request for late in listed], dtype=np.int64)),
        number_column("late", tr("Late by"), excess_ns, format_duration_ns, unit="ns"),
        text_column("cause", tr("Cause"), [cause_text(late.cause) for late in listed]),
        text_column("what", tr("What was late"), [wait_text(late) for late in listed]),
        number_column("taken", tr("Taken"), taken_ns, format_duration_ns, unit="ns"),
    )
    return TableModel(columns, len(listed))
