"""The selected collective: who arrived when, and what the late rank did before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.communication.arrival_chart import ArrivalChart
from profiler_gui.panels.communication.descriptions import numbers_text, short_name
from profiler_gui.panels.communication.late_rank import LateRankWork, late_rank_work, lateness_text
from profiler_gui.session.calls import LatestCall
from profiler_gui.session.selection import CollectiveSelection, RangeSelection
from profiler_gui.toolkit.fills import COMPUTING, TRANSFER, WAIT, Legend, LegendEntry
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication import Collective

MIN_SHOWN_MEMBERS = 3
MAX_SHOWN_MEMBERS = 8
"""Beyond this the chart scrolls."""


class ArrivalPanel(QWidget):
    """Title, arrival chart and words about one collective."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._shown: tuple[int, int] | None = None
        self._work: LateRankWork | None = None
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.setAccessibleName(tr("Selected collective"))
        self._title = _wrapped()
        self._words = _wrapped()
        self._chart = ArrivalChart(context.theme)
        self._legend = Legend(context.theme)
        self._legend.set_entries(
            (
                LegendEntry(tr("waiting"), WAIT),
                LegendEntry(tr("transfer"), TRANSFER),
                LegendEntry(tr("computing of the late rank"), COMPUTING),
            )
        )
        self._look = QPushButton()
        self._look.clicked.connect(self._show_late_rank)
        self._follow = QPushButton()
        self._follow.clicked.connect(self._follow_blame)
        self._chart_area = QScrollArea()
        self._chart_area.setWidgetResizable(True)
        self._chart_area.setFrameShape(QFrame.Shape.NoFrame)
        self._chart_area.setWidget(self._chart)
        key = QHBoxLayout()
        key.addWidget(self._legend, 1)
        key.addWidget(self._follow)
        key.addWidget(self._look)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 4)
        layout.setSpacing(4)
        for widget in (self._title, self._words, self._chart_area):
            layout.addWidget(widget)
        layout.addLayout(key)
        self._call = LatestCall(self)
        self._call.finished.connect(self._take_work)
        self._call.failed.connect(context.session.failed)
        context.closing.requested.connect(self._call.close)
        self.set_collective(None)

    @property
    def chart(self) -> ArrivalChart:
        """The chart."""
        return self._chart

    @property
    def words(self) -> str:
        """What is said about lateness."""
        return self._words.text()

    def set_collective(self, selection: tuple[int, int] | None) -> None:
        """Shows the collective of a rank and an index, or says how to pick one."""
        session = self._context.session
        summary, document = session.job_summary, session.document
        self._shown = selection if summary is not None else None
        self._work = None
        self._call.cancel()
        if summary is None or document is None or selection is None:
            self._title.setText(tr("Click a collective to see who arrived last."))
            self._update(None)
            return
        collective = summary.communication.collectives[selection[0]][selection[1]]
        rank = tr("rank {rank}", rank=selection[0])
        self._title.setText(f"{short_name(collective.name)}, {rank}: {numbers_text(collective)}")
        self._title.setToolTip(collective.name)
        self._update(collective)
        if collective.late_rank is not None:
            job, collectives = document.job, summary.communication.collectives
            self._call.start(lambda: late_rank_work(job, collectives, collective))

    def _take_work(self, work: LateRankWork | None) -> None:
        summary = self._context.session.job_summary
        if summary is not None and self._shown is not None:
            self._work = work
            self._update(summary.communication.collectives[self._shown[0]][self._shown[1]])

    def _update(self, collective: Collective | None) -> None:
        self._chart.set_collective(collective, self._work)
        has_chart = self._chart.collective is not None
        self._legend.setVisible(has_chart)
        self._chart_area.setVisible(has_chart)
        self._chart_area.setMinimumHeight(self._chart.height_of(MIN_SHOWN_MEMBERS))
        self._chart_area.setMaximumHeight(self._chart.height_of(MAX_SHOWN_MEMBERS))
        self._words.setVisible(collective is not None)
        self._words.setText(lateness_text(self._shown[0], collective, self._work) if collective and self._shown else "")
        work = self._work
        self._look.setVisible(work is not None)
        self._follow.setVisible(work is not None and work.waited_for is not None)
        if work is not None:
            self._look.setText(tr("Show what rank {rank} did", rank=work.rank))
            self._look.setToolTip(tr("Select the time before its arrival on the timeline"))
            self._follow.setText(tr("Follow: whom rank {rank} waited for", rank=work.rank))
            self._follow.setToolTip(tr("Select the collective that kept the late rank waiting"))

    def _show_late_rank(self) -> None:
        if self._work is not None:
            start_ns, end_ns = self._work.window_ns
            self._context.session.select(RangeSelection(self._work.rank, start_ns, end_ns), reveal=True)
            self._context.session.show_selection()
            self._context.show_pane("timeline")

    def _follow_blame(self) -> None:
        if self._work is not None and self._work.waited_for is not None:
            self._context.session.select(CollectiveSelection(self._work.rank, self._work.waited_for), reveal=True)


def selected_collective(selection: object) -> tuple[int, int] | None:
    """Returns rank and index where a collective is selected."""
    return (selection.rank, selection.index) if isinstance(selection, CollectiveSelection) else None


def _wrapped() -> QLabel:
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
