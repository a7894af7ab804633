"""The page of benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QPushButton, QSplitter, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.serving_tables import benchmark_table
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.panels.history.plots import BenchmarkPlots
from profiler_gui.panels.history.words import history_sentence, names_of
from profiler_gui.toolkit.labels import enlarged, text_label
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's workloads are imported after the first paint
    from engine.workloads.bench.history import HistoryEntry

HEADLINE_SCALE = 1.3
"""Of the usual text."""


class HistoryPage(QWidget):
    """The benchmarks of one scenario: a sentence, three plots over its runs, and a table of them."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._benchmarks = context.session.benchmarks
        self.setAccessibleName(tr("Benchmarks"))
        self.headline, self.place = text_label(name=tr("What got worse")), text_label()
        self.headline.setFont(enlarged(self.headline.font(), HEADLINE_SCALE))
        self.scenario = QComboBox()
        self.scenario.setAccessibleName(tr("Scenario"))
        self.scenario.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.by_time = QCheckBox(tr("By &Date"))
        self.by_time.setToolTip(tr("Places runs by their date; otherwise one after another"))
        self.open_button, self.reload_button = QPushButton(tr("&Open History…")), QPushButton(tr("&Read Again"))
        self.plots = BenchmarkPlots(context.theme)
        self.table = FilteredTable(tr("Benchmarks"))
        self._lay_out()
        self._benchmarks.changed.connect(self._update)
        self.scenario.activated.connect(self._show_scenario)
        self.by_time.toggled.connect(self._show_scenario)
        self.open_button.clicked.connect(lambda: context.commands.run("history.open", context.session))
        self.reload_button.clicked.connect(self._benchmarks.reload)
        self.plots.run_chosen.connect(self._choose)
        self.table.view.row_chosen.connect(self.plots.mark)
        if self._benchmarks.path is None:
            self._benchmarks.open_usual()
        self._update()

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.addWidget(self.scenario)
        bar.addWidget(self.by_time)
        bar.addWidget(self.place, 1)
        bar.addWidget(self.reload_button)
        bar.addWidget(self.open_button)
        splitter = QSplitter(Qt.Orientation.Vertical)
        splitter.addWidget(self.plots)
        splitter.addWidget(self.table)
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([600, 200])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 10, 6)
        layout.setSpacing(4)
        layout.addWidget(self.headline)
        layout.addLayout(bar)
        layout.addWidget(splitter, 1)

    @property
    def runs(self) -> tuple[HistoryEntry, ...]:
        """The runs of the scenario in view, the oldest first."""
        name = self.scenario.currentData()
        return tuple(entry for entry in self._benchmarks.entries if entry.name == name)

    def _choose(self, number: int) -> None:
        self.plots.mark(number)
        self.table.view.reveal(number)

    def _update(self) -> None:
        shown = self.scenario.currentData()
        self.scenario.clear()
        for name in names_of(self._benchmarks.entries):
            self.scenario.addItem(name, name)
        self.scenario.setCurrentIndex(max(self.scenario.findData(shown), 0))
        path = self._benchmarks.path
        self.place.setText(str(path) if path is not None else "")
        for control in (self.scenario, self.by_time, self.reload_button):
            control.setEnabled(path is not None)
        self._show_scenario()

    def _show_scenario(self) -> None:
        runs = self.runs
        nothing = tr("No benchmarks yet: cannscope bench SCENARIO keeps them, or open a history.")
        self.headline.setText(history_sentence(runs) if runs else nothing)
        self.plots.show_runs(runs, by_time=self.by_time.isChecked())
        if runs or self.table.view.table is not None:  # widths are measured at the first table
            self.table.set_table(benchmark_table(runs))
