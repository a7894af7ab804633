"""What the device did in the selected stretch of time: unions, so no share exceeds the stretch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from engine.core.number_format import format_duration_ns, format_ratio
from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.summary_tables import operator_table
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.session.calls import LatestCall
from profiler_gui.session.selection import OperatorSelection, RangeSelection, StepSelection
from profiler_gui.toolkit.bars import Bar, Part, StackedBars
from profiler_gui.toolkit.fills import COMPUTING, COPIES, IDLE, OVERLAPPED, TRANSFER, Fill, Legend, LegendEntry
from profiler_gui.toolkit.time_axis import time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.device import DeviceTotals
    from engine.analyses.operators import OperatorStatistic
    from engine.trace import Trace

_FILLS: dict[str, Fill] = {
    "computing": COMPUTING,
    "overlap": OVERLAPPED,
    "communication": TRANSFER,
    "copies": COPIES,
    "idle": IDLE,
}


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The device in one stretch of time.

    Attributes:
        totals: Unions inside it; None where the trace has no device work.
        operators: What computed in it, the largest first.
    """

    totals: DeviceTotals | None
    operators: tuple[OperatorStatistic, ...]


def breakdown_of(trace: Trace, window: tuple[int, int] | None) -> Breakdown:
    """Returns what the device did in ``window`` (ns of the trace), or in the whole span of its work."""
    from engine.analyses.device import device_totals
    from engine.analyses.operators import operator_statistics
    from engine.trace.trace import TimeRange

    inside = None if window is None else TimeRange(*window)
    return Breakdown(device_totals(trace, inside), operator_statistics(trace, inside))


def parts_of(totals: DeviceTotals) -> tuple[tuple[str, int], ...]:
    """Returns (id, ns) of disjoint parts that add up to the span exactly."""
    parts = (
        ("computing", totals.compute_ns - totals.overlap_ns),
        ("overlap", totals.overlap_ns),
        ("communication", totals.exposed_communication_ns),
        ("copies", totals.busy_ns - totals.compute_ns - totals.exposed_communication_ns),
        ("idle", totals.idle_ns),
    )
    return tuple((part, ns) for part, ns in parts if ns > 0)


class RangeBreakdown(QWidget):
    """The selected range as one bar and its operators; without one the step in view, else the whole trace."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = context.session
        self._title = QLabel()
        self._title.setWordWrap(True)
        self._title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._bar = StackedBars(context.theme, tr("Device time in the range"))
        self._legend = Legend(context.theme)
        self._table = FilteredTable(tr("Operators in the range"))
        self._table.view.row_opened.connect(self._open)
        self._operators: tuple[OperatorStatistic, ...] = ()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(4)
        for widget in (self._title, self._bar, self._legend):
            layout.addWidget(widget)
        layout.addWidget(self._table, 1)
        layout.addStretch(0)
        self._call = LatestCall(self)
        self._call.finished.connect(self._show)
        self._call.failed.connect(context.session.failed)
        context.closing.requested.connect(self._call.close)
        for signal in (
            self._session.document_changed,
            self._session.summary_changed,
            self._session.rank_changed,
            self._session.step_changed,
            self._session.selection_changed,
        ):
            signal.connect(self._update)
        self._update()

    def _update(self) -> None:
        trace = self._session.trace
        self._call.cancel()
        if trace is None:
            self._title.setText(tr("Open a capture to see its parts here."))
            self._show(Breakdown(None, ()))
            return
        window, what = self._window()
        self._title.setText(what)
        self._call.start(lambda: breakdown_of(trace, window))

    def _window(self) -> tuple[tuple[int, int] | None, str]:
        """Returns the stretch to look at and what it is called."""
        session = self._session
        span = session.selected_time_range
        if span is not None and span[1] > span[0]:
            length, start = format_duration_ns(span[1] - span[0]), time_text(span[0])
            if isinstance(session.selection, RangeSelection):
                return span, tr("Selected range: {length} from {start}", length=length, start=start)
            if isinstance(session.selection, StepSelection):
                return span, tr("Selected step: {length} from {start}", length=length, start=start)
            return span, tr("Selection: {length} from {start}", length=length, start=start)
        if session.summary is not None and session.step is not None:
            step = session.summary.steps[session.step].range
            length = format_duration_ns(step.duration_ns)
            return (step.start_ns, step.end_ns), tr("Step in view: {length}", length=length)
        return None, tr("Whole device span. Drag over the timeline to select a range.")

    def _show(self, breakdown: Breakdown) -> None:
        totals = breakdown.totals
        self._operators = breakdown.operators
        has_work = totals is not None and totals.span_ns > 0
        for widget in (self._bar, self._legend, self._table):
            widget.setVisible(has_work)
        if totals is None or totals.span_ns == 0:
            if self._session.trace is not None:
                self._title.setText(tr("This rank's trace holds no device work."))
            return
        parts = tuple(_part(part, ns, totals.span_ns) for part, ns in parts_of(totals))
        self._bar.set_bars((Bar("", parts, format_duration_ns(totals.span_ns)),))
        self._legend.set_entries(tuple(LegendEntry(_title(part.id), part.fill) for part in parts))
        self._table.setVisible(bool(breakdown.operators))
        self._table.set_table(operator_table(breakdown.operators))

    def _open(self, row: int) -> None:
        self._session.select(OperatorSelection(self._session.rank, self._operators[row].type))


def _title(part: str) -> str:
    return {
        "computing": tr("computing"),
        "overlap": tr("computing and communicating"),
        "communication": tr("exposed communication"),
        "copies": tr("copies and fills"),
    }.get(part) or tr("idle")


def _part(part: str, ns: int, span_ns: int) -> Part:
    share = format_ratio(ns / span_ns)
    text = f"{_title(part)} {format_duration_ns(ns)} ({share})"
    return Part(part, float(ns), text, (text, f"{_title(part)} {share}", share), _FILLS[part])
