"""The Memory page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.panels.memory.blocks import AliveAtPeak, BlockTable
from profiler_gui.panels.memory.histograms import lifetime_row, size_row
from profiler_gui.panels.memory.line_choice import LineChoice
from profiler_gui.panels.memory.plot import MemoryPlot
from profiler_gui.panels.memory.series import memory_series
from profiler_gui.panels.memory.step_columns import step_legend, step_row
from profiler_gui.panels.memory.tables import leak_table, step_memory_table
from profiler_gui.panels.memory.words import (
    fragmentation_definition,
    fragmentation_text,
    growth_text,
    leak_text,
    missing_text,
    provenance_of,
    summary_text,
)
from profiler_gui.session.selection import AllocationSelection, StepSelection
from profiler_gui.toolkit.columns import StackedColumns
from profiler_gui.toolkit.fills import Legend
from profiler_gui.toolkit.preferences import TIME_UNIT
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.memory import Leak, MemoryAnalysis
    from engine.trace import Trace


class MemoryPage(QStackedWidget):
    """Levels over time; below them what was alive at the peak, lifetimes and sizes, steps, leaks and all blocks."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._memory: MemoryAnalysis | None = None
        self.setAccessibleName(tr("Memory"))
        self._note = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._note.setWordWrap(True)
        self._make_head()
        self._make_plot()
        self._make_tabs()
        self.addWidget(self._note)
        self.addWidget(self._make_body())
        for signal in (self._session.document_changed, self._session.summary_changed, self._session.rank_changed):
            signal.connect(self._update)
        context.settings.changed.connect(self._on_setting)
        context.theme.changed.connect(self._style_badge)
        self._update()

    def _make_head(self) -> None:
        self._badge = QLabel()
        self._badge.setAccessibleName(tr("Where these numbers come from"))
        self._style_badge()
        self._sentence = _text()
        self._fragmentation = _text()
        self._fragmentation.setToolTip(fragmentation_definition())
        self._fragmentation.setWordWrap(False)
        self._growth = _text()

    def _style_badge(self) -> None:
        colours = self._context.theme.colours
        self._badge.setStyleSheet(
            f"border: 1px solid {colours.notice}; border-radius: 3px; padding: 1px 6px; color: {colours.notice};"
        )

    def _make_plot(self) -> None:
        self._plot = MemoryPlot(self._session, self._context.theme)
        self.setFocusProxy(self._plot)
        self._choice = LineChoice(self._context.theme)
        self._choice.changed.connect(lambda: self._plot.set_shown(self._choice.shown))
        self._follows = QCheckBox(tr("&Zoom with the timeline"))
        self._follows.setToolTip(tr("Shows the stretch of time the timeline shows, instead of the whole trace"))
        self._follows.toggled.connect(self._plot.set_follows)

    def _make_tabs(self) -> None:
        context, theme = self._context, self._context.theme
        self._alive = AliveAtPeak(context)
        self._measure = QComboBox()
        self._measure.setAccessibleName(tr("What the columns count"))
        self._measure.addItems([tr("Number of blocks"), tr("Sum of sizes")])
        self._measure.currentIndexChanged.connect(self._update_histograms)
        self._lifetimes = StackedColumns(theme, tr("Lifetimes of blocks freed in the capture"))
        self._sizes = StackedColumns(theme, tr("Sizes of blocks"))
        self._steps = FilteredTable(tr("Memory per step"))
        self._steps.view.row_chosen.connect(self._choose_step)
        self._step_columns = StackedColumns(theme, tr("Memory per step"))
        self._step_columns.activated.connect(lambda _, index: self._choose_step(index))
        self._step_legend = Legend(theme)
        self._leak_note = _text()
        self._leaks = FilteredTable(tr("Leaks"))
        self._leaks.view.row_chosen.connect(self._choose_leak)
        self._blocks = BlockTable(context, tr("Blocks"))
        self._tabs = QTabWidget()
        self._tabs.setAccessibleName(tr("Blocks, lifetimes, steps and leaks"))
        for title, widget in (
            (tr("Alive at the Peak"), self._alive),
            (tr("Lifetimes and Sizes"), self._make_histograms()),
            (tr("Steps"), _column(self._step_columns, self._step_legend, self._steps)),
            (tr("Leaks"), _column(self._leak_note, self._leaks)),
            (tr("All Blocks"), self._blocks),
        ):
            self._tabs.addTab(widget, title)

    def _make_histograms(self) -> QWidget:
        self._lifetime_title, self._size_title = _text(), _text()
        bar = QHBoxLayout()
        bar.addWidget(self._measure)
        bar.addStretch(1)
        histograms = QWidget()
        layout = QVBoxLayout(histograms)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.addLayout(bar)
        both = QHBoxLayout()
        for title, columns in ((self._lifetime_title, self._lifetimes), (self._size_title, self._sizes)):
            both.addWidget(_column(title, columns, stretches=False), 1)
        layout.addLayout(both)
        layout.addStretch(1)
        return histograms

    def _make_body(self) -> QWidget:
        head = QHBoxLayout()
        head.addWidget(self._badge, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self._sentence, 1)
        second = QHBoxLayout()
        second.addWidget(self._fragmentation)
        second.addSpacing(18)
        second.addWidget(self._growth, 1)
        key = QHBoxLayout()
        key.addWidget(self._choice, 1)
        key.addWidget(self._follows, 0, Qt.AlignmentFlag.AlignTop)
        drawing = QWidget()
        upper = QVBoxLayout(drawing)
        upper.setContentsMargins(0, 0, 0, 0)
        upper.setSpacing(2)
        upper.addLayout(key)
        upper.addWidget(self._plot, 1)
        splitter = QSplitter(Qt.Orientation.Vertical)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(drawing)
        splitter.addWidget(self._tabs)
        splitter.setStretchFactor(0, 1)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([100, 100])
        body = QWidget()
        layout = QVBoxLayout(body)
        layout.setContentsMargins(10, 8, 10, 8)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addLayout(second)
        layout.addWidget(splitter, 1)
        return body

    # What is shown

    def _update(self) -> None:
        session = self._session
        trace, summary = session.trace, session.summary
        self._memory = summary.memory if summary is not None else None
        if trace is None:
            self._show_note(tr("Open a capture to see its memory here."))
        elif summary is None:
            self._show_note(tr("The analyses are still running."))
        elif self._memory is None:
            self._show_note(missing_text(session.rank))
        else:
            self._show_memory(trace, self._memory)
            self.setCurrentIndex(1)

    def _show_note(self, text: str) -> None:
        self._note.setText(text)
        self._blocks.set_blocks(None)
        self.setCurrentIndex(0)

    def _show_memory(self, trace: Trace, memory: MemoryAnalysis) -> None:
        provenance = provenance_of(trace, memory)
        self._badge.setText(provenance.badge)
        self._badge.setToolTip(provenance.explanation)
        self._sentence.setText(summary_text(memory))
        self._fragmentation.setText(fragmentation_text(memory))
        self._growth.setText(growth_text(memory))
        for label in (self._fragmentation, self._growth):
            label.setVisible(bool(label.text()))
        series = self._session.derived(("memory series", self._session.rank), lambda: memory_series(trace, memory))
        limit_bytes = trace.metadata.device_memory_bytes if memory.device >= 0 else None
        self._plot.set_memory(series, memory, limit_bytes)
        self._choice.set_series(series)
        self._alive.set_alive(trace, memory.alive_at_peak)
        row = step_row(memory.steps)
        self._step_columns.set_rows((row,))
        self._step_legend.set_entries(step_legend(row))
        self._steps.set_table(step_memory_table(memory.steps))
        self._leak_note.setText(leak_text(memory))
        self._leaks.set_table(leak_table(memory.leaks))
        self._leaks.setVisible(bool(memory.leaks))
        self._blocks.set_blocks(trace)
        has_blocks = len(trace.memory.allocations) > 0
        for tab, is_filled in (
            (0, bool(memory.alive_at_peak)),
            (1, has_blocks),
            (2, bool(memory.steps)),
            (4, has_blocks),
        ):
            self._tabs.setTabVisible(tab, is_filled)
        self._update_histograms()

    def _update_histograms(self) -> None:
        trace, memory = self._session.trace, self._memory
        if trace is None or memory is None:
            return
        by_bytes = self._measure.currentIndex() == 1
        lived = sum(item.count for item in memory.lifetimes)
        self._lifetime_title.setText(tr("Lifetimes of the {count} blocks freed in the capture", count=f"{lived:,}"))
        self._size_title.setText(tr("Sizes of all {count} blocks", count=f"{len(trace.memory.allocations):,}"))
        self._lifetimes.set_rows((lifetime_row(memory.lifetimes, by_bytes=by_bytes),))
        self._sizes.set_rows((size_row(trace.memory.allocations.size_bytes, by_bytes=by_bytes),))

    def _on_setting(self, setting: str) -> None:
        if setting == TIME_UNIT.id:
            self._blocks.set_blocks(None)
            self._update()

    # What the user does

    def _choose_step(self, row: int) -> None:
        """Selects the step where the memory's steps are those of the device."""
        memory, summary = self._memory, self._session.summary
        if memory is None or summary is None:
            return
        number = memory.steps[row].step
        index = next((index for index, step in enumerate(summary.steps) if step.step == number), None)
        if index is not None:
            self._session.select(StepSelection(self._session.rank, index), reveal=True)

    def _choose_leak(self, row: int) -> None:
        """Selects the first block of the leak."""
        trace, memory = self._session.trace, self._memory
        if trace is not None and memory is not None:
            block = first_block(trace, memory.leaks[row])
            if block is not None:
                self._session.select(AllocationSelection(self._session.rank, block), reveal=True)


def first_block(trace: Trace, leak: Leak) -> int | None:
    """Returns the row of the first block of a leak; None where the table no longer holds it."""
    blocks = trace.memory.allocations
    wanted = trace.strings.id_of(leak.operator)
    same = (blocks.allocated_at_ns == leak.first_allocated_at_ns) & (blocks.freed_at_ns < 0)
    rows = same.nonzero()[0]
    named = [int(row) for row in rows if int(blocks.operator[row]) == wanted]
    return named[0] if named else (int(rows[0]) if len(rows) else None)


def _text() -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _column(*parts: QWidget, stretches: bool = True) -> QWidget:
    """Returns the parts below each other; the last one takes the room that is left where it ``stretches``."""
    column = QWidget()
    layout = QVBoxLayout(column)
    layout.setContentsMargins(2, 4, 2, 2)
    layout.setSpacing(3)
    for part in parts[:-1]:
        layout.addWidget(part)
    layout.addWidget(parts[-1], 1 if stretches else 0)
    if stretches:
        layout.addStretch(0)
    return column
