"""Memory over the steps of a long run: whether it slows down, from when on, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from engine.core.number_format import format_count
from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.memory.badge import Badge
from profiler_gui.panels.memory.run_plots import RunPlots
from profiler_gui.panels.memory.words import Provenance
from profiler_gui.session.selection import StepSelection
from profiler_gui.toolkit.fills import Fill, Legend, LegendEntry
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.slowdown import RunCourse
    from engine.analyses.step_history import StepHistory


class RunView(QWidget):
    """A sentence, three plots over one axis of steps, and a legend."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = context.session
        self.setAccessibleName(tr("Over the Run"))
        self.badge = Badge(context.theme)
        self.sentence = QLabel()
        self.sentence.setWordWrap(True)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        font = self.sentence.font()
        font.setPointSizeF(font.pointSizeF() * 1.15)
        self.sentence.setFont(font)
        self.plots = RunPlots(context.theme)
        self.plots.step_opened.connect(self._open_step)
        self.plots.steps_shown.connect(self._explain)
        self.explained = QLabel()
        self.explained.setToolTip(
            tr("R² of step time, brought to the same number of tokens, against the time the allocator cost")
        )
        self.setFocusProxy(self.plots)
        legend = Legend(context.theme)
        legend.set_entries(_legend())
        head = QHBoxLayout()
        head.addWidget(self.badge, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self.sentence, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 8, 10, 8)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self.explained)
        layout.addWidget(self.plots, 1)
        layout.addWidget(legend)
        for signal in (self._session.document_changed, self._session.rank_changed):
            signal.connect(self.update_run)
        self._session.summary_changed.connect(self._mark_recorded)
        self.update_run()

    @property
    def history(self) -> StepHistory | None:
        """The history of the rank in view; None where it has none."""
        from engine.analyses.step_history import step_history

        session, trace = self._session, self._session.trace
        return session.derived(("step history", session.rank), lambda: step_history(trace)) if trace else None

    def update_run(self) -> None:
        """Shows the rank in view."""
        history, trace = self.history, self._session.trace
        if history is None or trace is None:
            self.plots.set_history(None, None)
            self.sentence.setText(tr("This capture keeps no history of its run."))
            self.explained.clear()
            return
        course = self._course(history)
        self.badge.show_provenance(_provenance(str(trace.origin)))
        self.sentence.setText(course.sentence)
        self.plots.set_history(history, course.slowdown)
        self._mark_recorded()

    def _course(self, history: StepHistory) -> RunCourse:
        from engine.analyses.slowdown import run_course

        return self._session.derived(("run course", self._session.rank), lambda: run_course(history))

    def _explain(self, first: int, stop: int) -> None:
        """Says how much of the variation of the steps in view goes with the allocator's stalls."""
        from engine.analyses.slowdown import stall_share_of_variance

        history = self.history
        if history is None or stop <= first:
            return
        share = stall_share_of_variance(history, first, stop)
        steps = {"first": format_count(first), "last": format_count(stop - 1)}
        if share is None:
            self.explained.setText(tr("Steps {first}–{last} in view: the allocator explains nothing of them", **steps))
        else:
            text = tr(
                "Steps {first}–{last} in view: R² of step time and allocator {share}", share=f"{share:.2f}", **steps
            )
            self.explained.setText(text)

    def _mark_recorded(self) -> None:
        summary, history = self._session.summary, self.history
        steps = summary.steps if summary is not None and history is not None else ()
        self.plots.set_recorded([item.step for item in steps if item.step is not None])

    def _open_step(self, step: int) -> None:
        """Selects a step where its operators were recorded."""
        summary = self._session.summary
        steps = summary.steps if summary is not None else ()
        index = next((index for index, item in enumerate(steps) if item.step == step), None)
        if index is not None:
            self._session.select(StepSelection(self._session.rank, index), reveal=True)


def _provenance(origin: str) -> Provenance:
    if origin == "simulated":
        return Provenance(tr("SIMULATED"), tr("Every step of the run was simulated; nothing here was measured."))
    return Provenance(tr("RECORDED"), tr("The capture keeps these numbers of every step."))


def _legend() -> tuple[LegendEntry, ...]:
    hatched = Qt.BrushStyle.BDiagPattern
    return (
        LegendEntry(tr("step (darker: more tokens)"), Fill(lambda colours: colours.allocated)),
        LegendEntry(tr("rolling median"), Fill(lambda colours: colours.text)),
        LegendEntry(tr("rolling mean"), Fill(lambda colours: colours.communication)),
        LegendEntry(tr("peak allocated"), Fill(lambda colours: colours.allocated)),
        LegendEntry(tr("peak reserved"), Fill(lambda colours: colours.reserved)),
        LegendEntry(tr("stranded at the worst miss"), Fill(lambda colours: colours.stranded, hatched)),
        LegendEntry(tr("limit"), Fill(lambda colours: colours.limit, Qt.BrushStyle.FDiagPattern)),
        LegendEntry(tr("driver calls"), Fill(lambda colours: colours.faint)),
        LegendEntry(tr("retries"), Fill(lambda colours: colours.warning)),
        LegendEntry(tr("out of memory, caught"), Fill(lambda colours: colours.error)),
        LegendEntry(tr("onset"), Fill(lambda colours: colours.mark)),
    )
