"""Where blocks lay in the allocator's addresses, and why an allocation found no hole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSplitter, QVBoxLayout, QWidget

from engine.core.number_format import format_bytes, format_count
from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.columns import is_negative, number_column, text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.item_models.table_view import FilteredTable, TableView
from profiler_gui.panels.memory.address_canvas import AddressCanvas
from profiler_gui.panels.memory.address_words import (
    class_title,
    miss_title,
    pins_text,
    provenance_of_addresses,
    refusal_text,
    report_text,
    summary_of_addresses,
)
from profiler_gui.panels.memory.badge import Badge
from profiler_gui.session.calls import LatestCall
from profiler_gui.session.failure import Failure
from profiler_gui.toolkit.fills import Fill, Legend, LegendEntry
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.runtime.addresses.address_map import AddressMap
    from engine.runtime.addresses.misses import MissReport


class AddressView(QWidget):
    """The map at the left; at the right the misses, and of the chosen one the holes that did not serve it.

    The map is made in a thread when the view is first seen.
    """

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = context.session
        self._mapped: AddressMap | None = None
        self._is_current = False
        self.setAccessibleName(tr("Addresses"))
        self._call = LatestCall(self)
        self._call.finished.connect(self._take)
        self._call.failed.connect(self._say_failure)
        context.closing.requested.connect(self._call.close)
        self.badge = Badge(context.theme)
        self.summary = QLabel(wordWrap=True)
        self.summary.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.canvas = AddressCanvas(context.theme)
        self.canvas.miss_chosen.connect(self.choose_miss)
        self.setFocusProxy(self.canvas)
        self._legend = Legend(context.theme)
        self.misses = FilteredTable(tr("Misses"))
        self.misses.view.row_chosen.connect(self.choose_miss)
        self.report = QLabel(wordWrap=True)
        self.report.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.holes = TableView(tr("The largest holes"))
        self._lay_out()
        for signal in (self._session.document_changed, self._session.rank_changed):
            signal.connect(self._forget)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.badge, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self.summary, 1)
        question = QLabel(tr("Why did it miss?"))
        font = question.font()
        font.setBold(True)
        question.setFont(font)
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(4, 0, 0, 0)
        column.addWidget(self.misses, 2)
        for widget in (question, self.report):
            column.addWidget(widget)
        column.addWidget(self.holes, 3)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self.canvas)
        splitter.addWidget(side)
        splitter.setSizes([680, 420])
        splitter.setStretchFactor(0, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 8, 10, 8)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(splitter, 1)
        layout.addWidget(self._legend)

    # What is shown

    def showEvent(self, event: QShowEvent) -> None:
        """Qt: makes the map when it is first looked at."""
        super().showEvent(event)
        self._make()

    def _forget(self) -> None:
        self._is_current = False
        self._show(None)
        if self.isVisible():
            self._make()

    def _make(self) -> None:
        trace = self._session.trace
        if self._is_current or trace is None:
            return
        self._is_current = True
        self.summary.setText(tr("The log of the allocator is being served again…"))

        def work() -> AddressMap:
            from engine.replay.capture_addresses import capture_addresses

            return capture_addresses(trace)

        self._call.start(work)

    def _take(self, mapped: AddressMap) -> None:
        self._show(mapped)

    def _say_failure(self, failure: Failure) -> None:
        self.summary.setText(failure.what)

    def _show(self, mapped: AddressMap | None) -> None:
        self._mapped = mapped
        self.canvas.set_map(mapped)
        self.badge.setVisible(mapped is not None)
        self.report.clear()
        self.holes.set_table(_hole_table(None, None))
        self.misses.set_table(_miss_table(mapped))
        self.misses.view.resizeColumnsToContents()
        self._legend.set_entries(_legend(mapped))
        if mapped is None:
            self.summary.clear()
            return
        self.badge.show_provenance(provenance_of_addresses(mapped))
        self.summary.setText(summary_of_addresses(mapped))
        worst = worst_miss(mapped)
        if worst is None:
            self.report.setText(tr("Every request found a hole."))
        else:
            self.choose_miss(worst)

    def choose_miss(self, miss: int) -> None:
        """Explains a miss and marks it in the map."""
        from engine.runtime.addresses.misses import miss_report

        mapped = self._mapped
        if mapped is None:
            return
        report = miss_report(mapped, miss)
        self.report.setText(f"{report_text(report)} → {miss_title(int(mapped.misses.action[miss]))}.")
        self.holes.set_table(_hole_table(mapped, report))
        self.holes.resizeColumnsToContents()
        self.canvas.show_miss(miss, report)


def worst_miss(mapped: AddressMap) -> int | None:
    """Returns the miss to begin with: the gravest, of several the one with most stranded memory; None without any."""
    from engine.runtime.allocators.interface import DriverAction

    misses = mapped.misses
    if not len(misses):
        return None
    grave = np.where(misses.action == DriverAction.OUT_OF_MEMORY, 2, (misses.action == DriverAction.RETRY).astype(int))
    return int(np.lexsort((misses.stranded_bytes, grave))[-1])


def _miss_table(mapped: AddressMap | None) -> TableModel:
    misses = mapped.misses if mapped is not None else None
    nothing = np.empty(0, dtype=np.int64)
    events = misses.event if misses is not None else nothing
    sizes = misses.size_bytes if misses is not None else nothing
    stranded = misses.stranded_bytes if misses is not None else nothing
    actions: Sequence[int] = misses.action.tolist() if misses is not None else ()
    columns = (
        number_column("event", tr("Request"), events + 1, lambda value: format_count(int(value))),
        text_column("action", tr("What became of it"), [miss_title(action) for action in actions]),
        number_column("size", tr("Size"), sizes, format_bytes, unit="bytes"),
        number_column("stranded", tr("Stranded"), stranded, format_bytes, unit="bytes", absent=is_negative),
    )
    return TableModel(columns, len(events))


def _hole_table(mapped: AddressMap | None, report: MissReport | None) -> TableModel:
    holes = report.holes if report is not None else ()
    sizes = np.array([hole.size_bytes for hole in holes], dtype=np.int64)
    segments = np.array([hole.segment_bytes for hole in holes], dtype=np.int64)
    refusals = [refusal_text(hole, report) for hole in holes] if report is not None else []
    pins = [pins_text(mapped, hole) for hole in holes] if mapped is not None else []
    columns = (
        number_column("size", tr("Hole"), sizes, format_bytes, unit="bytes"),
        text_column("refusal", tr("Why not"), refusals),
        text_column("pins", tr("Pinned by"), pins),
        number_column("segment", tr("Segment"), segments, format_bytes, unit="bytes"),
        text_column("address", tr("Address"), [hex(hole.address) for hole in holes]),
    )
    return TableModel(columns, len(holes))


def _legend(mapped: AddressMap | None) -> tuple[LegendEntry, ...]:
    if mapped is None:
        return ()
    entries = []
    if mapped.has_classes:
        roles = (
            Fill(lambda colours: colours.reserved),
            Fill(lambda colours: colours.allocated),
            Fill(lambda colours: colours.active),
            Fill(lambda colours: colours.memory),
        )
        present = set(mapped.blocks.tag.tolist())
        entries = [LegendEntry(class_title(mapped, tag), role) for tag, role in enumerate(roles) if tag in present]
    else:
        entries = [LegendEntry(tr("block"), Fill(lambda colours: colours.allocated))]
    if bool(((mapped.blocks.first_event < 0) & (mapped.blocks.tag < 0)).any()):
        entries.append(LegendEntry(tr("older than the log"), Fill(lambda colours: colours.preparing)))
    stranded = Fill(lambda colours: colours.stranded, Qt.BrushStyle.FDiagPattern)
    entries.append(LegendEntry(tr("free, pinned by a block in its segment"), stranded))
    entries.append(LegendEntry(tr("free, the whole segment"), Fill(lambda colours: colours.idle)))
    entries.append(LegendEntry(tr("▼ miss: the driver was asked"), Fill(lambda colours: colours.warning)))
    entries.append(LegendEntry(tr("▼ cache emptied or out of memory"), Fill(lambda colours: colours.error)))
    return tuple(entries)
