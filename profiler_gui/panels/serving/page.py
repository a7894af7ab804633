"""The page of a service."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.serving_tables import LATENCY_ROWS, latency_table
from profiler_gui.item_models.table_view import TableView
from profiler_gui.panels.serving.curve import RateCurve
from profiler_gui.panels.serving.lanes import phase_colours
from profiler_gui.panels.serving.late_list import LateList
from profiler_gui.panels.serving.plots import ServicePlots
from profiler_gui.panels.serving.rows import Order
from profiler_gui.panels.serving.toggles import ServiceToggles
from profiler_gui.panels.serving.words import facts_of, late_summary, late_text, phase_names, preventions_of
from profiler_gui.session.services import NOBODY
from profiler_gui.toolkit.labels import enlarged, figures_html, text_label
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.serving.jitter import LateRequest

HEADLINE_SCALE = 1.3
"""Of the usual text."""
PROGRESS_STEPS = 1000
FRAME_PX = 6
_ORDERS = {
    Order.WAIT: "Longest wait first",
    Order.WHOLE: "Slowest first",
    Order.NEWEST: "Latest first",
    Order.ARRIVAL: "As they came",
}


class ServingPage(QWidget):
    """Who was late and why in one sentence; requests as rows over the load; percentiles, late requests, rate curve."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._services = context.session.services
        self._shown_late: object = None
        self.setAccessibleName(tr("Serving"))
        self._make_head()
        self._make_views()
        self._lay_out()
        self._connect()
        self._update()
        self._update_curve()

    def _make_head(self) -> None:
        self.headline = text_label(name=tr("Which request was late and why"))
        self.headline.setFont(enlarged(self.headline.font(), HEADLINE_SCALE))
        self.prevention = text_label(name=tr("What prevents it"))
        self.toggles = ServiceToggles()
        self.order = QComboBox()
        self.order.setAccessibleName(tr("Order of the requests"))
        for order, title in _ORDERS.items():
            self.order.addItem(tr(title), order)
        self.legend = QLabel()
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.open_button = QPushButton(tr("&Open Service…"))
        self.all_button = QPushButton(tr("Show &All"))
        self.all_button.setToolTip(tr("All requests over the whole time (Home)"))
        self.progress = QProgressBar()
        self.progress.setRange(0, PROGRESS_STEPS)
        self.progress.setAccessibleName(tr("How far the run is"))
        self.stage = QLabel()
        self.cancel = QPushButton(tr("Cancel"))
        self.cancel.setAccessibleName(tr("Give the run of the service up"))

    def _make_views(self) -> None:
        self.plots = ServicePlots(self._context.theme)
        self.latencies = TableView(tr("Latencies of the service"))
        for bar in (self.latencies.setHorizontalScrollBarPolicy, self.latencies.setVerticalScrollBarPolicy):
            bar(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.latencies.show_at_most(LATENCY_ROWS)
        self.facts = text_label(name=tr("What the service gave"))
        self.facts.setTextFormat(Qt.TextFormat.RichText)
        self.late = LateList()
        self.curve = RateCurve(self._context.theme)
        self.tabs = QTabWidget()
        self.tabs.setAccessibleName(tr("Views of the service"))
        self.tabs.setDocumentMode(True)
        for widget, title in (
            (self.late, tr("Late requests")),
            (self.facts, tr("Figures")),
            (self.curve, tr("Latency over rate")),
        ):
            self.tabs.addTab(widget, title)
        self.facts.setAlignment(Qt.AlignmentFlag.AlignTop)

    def _lay_out(self) -> None:
        self._running = QWidget()
        running = QHBoxLayout(self._running)
        running.setContentsMargins(0, 0, 0, 0)
        running.addWidget(self.progress, 1)
        running.addWidget(self.stage, 2)
        running.addWidget(self.cancel)
        bar = QHBoxLayout()
        bar.addWidget(self.order)
        bar.addWidget(self.legend, 1)
        bar.addWidget(self.all_button)
        bar.addWidget(self.open_button)
        left, right = QWidget(), QWidget()
        rows, column = QVBoxLayout(left), QVBoxLayout(right)
        for layout in (rows, column):
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(4)
        rows.addLayout(bar)
        rows.addWidget(self.plots, 1)
        column.addWidget(self.latencies)
        column.addWidget(self.tabs, 1)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.addWidget(left)
        self.splitter.addWidget(right)
        self.splitter.setStretchFactor(0, 3)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.setSizes([560, 440])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 10, 6)
        layout.setSpacing(4)
        for part in (self.headline, self.prevention, self.toggles, self._running):
            layout.addWidget(part)
        layout.addWidget(self.splitter, 1)

    def _connect(self) -> None:
        services = self._services
        services.changed.connect(self._update)
        services.opened.connect(self._update_curve)
        services.curve_changed.connect(self._update_curve)
        services.request_changed.connect(self._update_request)
        services.busy_changed.connect(self._update_busy)
        services.progress_changed.connect(self._show_progress)
        self._session.toggles_changed.connect(self._update_toggles)
        self._context.theme.changed.connect(self._update_legend)
        self.toggles.switched.connect(
            lambda key, on: self._session.set_toggles(self._session.toggles.switched(key, on=on))
        )
        self.order.activated.connect(self._update_plots)
        self.cancel.clicked.connect(services.cancel)
        self.curve.sweep_button.clicked.connect(services.sweep)
        self.all_button.clicked.connect(self.plots.show_all)
        self.open_button.clicked.connect(lambda: self._context.commands.run("serving.open", self._session))
        self.plots.request_chosen.connect(services.select)
        self.late.request_chosen.connect(services.select)
        self.late.request_opened.connect(self._open_request)

    def _open_request(self, request: int) -> None:
        self._services.select(request)
        self.plots.show_request(request)

    # What is shown

    def _update(self) -> None:
        services = self._services
        self._update_plots()
        self._update_toggles()
        self._update_busy(services.is_busy)
        self._update_legend()
        served, before = services.served, services.baseline
        if services.late is not self._shown_late:
            self._shown_late = services.late
            self.late.show_report(services.report)
        if served is not None:
            is_compared = before is not None and before is not served
            self.latencies.set_table(
                latency_table(served.analysis, before.analysis if is_compared and before is not None else None)
            )
            self.latencies.resizeColumnsToContents()
            header_px = self.latencies.horizontalHeader().sizeHint().height()
            self.latencies.setFixedHeight(header_px + self.latencies.verticalHeader().length() + FRAME_PX)
            self.facts.setText(figures_html(facts_of(before, served)))
        self._update_request()

    def _update_plots(self) -> None:
        self.plots.show_served(self._services.served, Order(self.order.currentData()))

    def _update_request(self) -> None:
        services = self._services
        self.plots.select(services.request)
        self.late.show_request(services.request)
        late = self._late_in_view()
        report = services.report
        if report is None:
            self.headline.setText(self._state_text())
            self.prevention.setText("")
        elif late is None:
            self.headline.setText(late_summary(report.jitter))
            self.prevention.setText("")
        else:
            self.headline.setText(late_text(late))
            texts = preventions_of(report, late) if services.is_complete else [self._search_text()]
            self.prevention.setText(" ".join(texts))
        self.prevention.setVisible(bool(self.prevention.text()))

    def _late_in_view(self) -> LateRequest | None:
        """Returns the selected request where it was late, else the latest one; None where nobody was."""
        report, request = self._services.report, self._services.request
        listed = report.jitter.listed if report is not None else ()
        chosen = next((late for late in listed if late.request == request), None)
        return chosen if chosen is not None or request != NOBODY else next(iter(listed), None)

    def _state_text(self) -> str:
        services = self._services
        if not services.is_open:
            return tr("Open a service (a scenario with kind = serving) to see which requests are late and why.")
        if services.is_busy:
            return tr("Serving {name}…", name=services.place.name if services.place is not None else "")
        return tr("No request was answered.") if services.late is not None else tr("The run was given up.")

    def _search_text(self) -> str:
        if self._services.is_busy:
            return tr("Serving again with other limits, to find the one that would have prevented it…")
        return tr("The search for a limit that would have prevented it was given up.")

    def _update_curve(self) -> None:
        curves, key = self._services.curves, self._services.key
        self.curve.show_points(curves.get(key, ()), curves.get("", ()) if key else ())

    def _update_toggles(self) -> None:
        baseline = self._services.baseline
        self.toggles.show_state(self._session.toggles, baseline.settings if baseline is not None else None)

    def _update_busy(self, busy: bool) -> None:
        self._running.setVisible(busy)
        self.curve.sweep_button.setEnabled(self._services.is_open and not busy)
        self.all_button.setEnabled(self._services.served is not None)
        if self._services.report is None:
            self.headline.setText(self._state_text())

    def _show_progress(self, ratio: float, what: str) -> None:
        self.progress.setValue(round(ratio * PROGRESS_STEPS))
        self.stage.setText(what)

    def _update_legend(self) -> None:
        colours = phase_colours(self._context.theme.colours)
        parts = (
            f"<span style='color:{colour}'>■</span> {escape(name)}"
            for colour, name in zip(colours, phase_names(), strict=True)
        )
        self.legend.setText("&nbsp; ".join(parts))
