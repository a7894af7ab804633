"""The first view of a comparison: the way from A to B, memory as bars, and what it all rests on."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from profiler_gui.panels.whatif.courses import memory_bar
from profiler_gui.panels.whatif.waterfall import Rung, Waterfall, rungs_of
from profiler_gui.panels.whatif.words import facts, reasons, run_title
from profiler_gui.session.run_tree import BASELINE, TriedRun
from profiler_gui.toolkit.bars import StackedBars
from profiler_gui.toolkit.fitting_area import FittingArea
from profiler_gui.toolkit.labels import bold, figures_html, text_label
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from engine.whatif.results import Side


class ComparisonSummary(FittingArea):
    """Waterfall, memory bars, figures, reasons and assumptions.

    Args:
        theme: Colours.
        titles: What optimizations are called, by id.
    """

    def __init__(self, theme: Theme, titles: dict[str, str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._titles = titles
        self.waterfall = Waterfall(theme)
        self.memory = StackedBars(theme, tr("Memory of the fullest rank"))
        self.facts, self.reasons = _rich_label(), _rich_label()
        self._headings = {
            "time": _heading(tr("Step time")),
            "memory": _heading(tr("Memory of the fullest rank at its highest")),
            "facts": _heading(tr("What else changes, A → B")),
            "reasons": _heading(tr("What it rests on")),
        }
        self.column.setContentsMargins(2, 6, 8, 8)
        self.column.setSpacing(6)
        for name, widget in (
            ("time", self.waterfall),
            ("memory", self.memory),
            ("facts", self.facts),
            ("reasons", self.reasons),
        ):
            self.column.addWidget(self._headings[name])
            self.column.addWidget(widget)
        self.column.addStretch(1)
        self.setAccessibleName(tr("Before and after"))

    def show_runs(self, before: TriedRun, after: TriedRun) -> None:
        """Shows the comparison of two runs."""
        rungs = _rungs(before, after, self._titles)
        self.waterfall.set_rungs(rungs)
        self.waterfall.setVisible(bool(rungs))
        bars = [
            memory_bar(letter, run.side, is_current=run is after and run is not before)
            for letter, run in ((tr("A"), before), (tr("B"), after))
            if run.side is not None
        ]
        self.memory.set_bars(tuple(bar for bar in bars if bar is not None))
        self.memory.setVisible(any(bars))
        rows = facts(before, after)
        self.facts.setText(figures_html(rows))
        told = reasons(after.answer)
        self.reasons.setText("".join(f"<p style='margin:2px 0'>• {escape(text, quote=False)}</p>" for text in told))
        shown = {"time": bool(rungs), "memory": any(bars), "facts": bool(rows), "reasons": bool(told)}
        for name, is_shown in shown.items():
            self._headings[name].setVisible(is_shown)
        self.fit()


def _rungs(before: TriedRun, after: TriedRun, titles: dict[str, str]) -> tuple[Rung, ...]:
    """Returns the bars of a comparison; without contributions where A is not the run as it is."""
    if before.number == BASELINE and after.number != BASELINE and after.answer is not None:
        return rungs_of(after.answer, titles)
    sides = [(run, run.side) for run in (before, after)]
    return tuple(_whole(run, side) for run, side in sides if side is not None and side.mean_step_ns)


def _whole(run: TriedRun, side: Side) -> Rung:
    return Rung(run_title(run), 0.0, side.mean_step_ns, is_whole=True, tip=run_title(run))


def _rich_label() -> QLabel:
    label = text_label()
    label.setTextFormat(Qt.TextFormat.RichText)
    return label


def _heading(text: str) -> QLabel:
    label = QLabel(text)
    label.setFont(bold(label.font()))
    return label
