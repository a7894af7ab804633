"""The status bar: what is under the pointer, what is selected, what is open, what is being opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QStatusBar, QToolButton, QWidget

from engine.core.number_format import format_count, format_duration_ns
from profiler_gui.session.document import Document
from profiler_gui.session.session import Session
from profiler_gui.toolkit.preferences import TIME_UNIT
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.toolkit.time_axis import TimeUnit, time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.trace import Diagnostic

PROGRESS_STEPS = 1000
GAP_PX = 12
WRITTEN_MS = 8_000
"""How long it says where a report went."""


class StatusBar(QStatusBar):
    """Facts at the right, progress with Cancel at the left while a capture is opened.

    Signals:
        diagnostics_wanted: The user clicked the number of diagnostics.
    """

    diagnostics_wanted = Signal()

    def __init__(self, session: Session, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session, self._settings = session, settings
        self.progress = QProgressBar()
        self.progress.setAccessibleName(tr("Progress"))
        self.progress.setRange(0, PROGRESS_STEPS)
        self.progress.setMinimumWidth(280)
        self.cancel = QPushButton(tr("Cancel"))
        self.cancel.setAccessibleName(tr("Cancel opening"))
        self.cancel.clicked.connect(session.cancel)
        self.addWidget(self.progress)
        self.addWidget(self.cancel)
        self.cursor_label, self.selection_label, self.events_label, self.load_label = (
            self._label(name) for name in (tr("Time under the pointer"), tr("Selection"), tr("Events"), tr("Load time"))
        )
        self.diagnostics_button = QToolButton()
        self.diagnostics_button.setAutoRaise(True)
        self.diagnostics_button.setAccessibleName(tr("Diagnostics"))
        self.diagnostics_button.clicked.connect(self.diagnostics_wanted)
        self.addPermanentWidget(self.diagnostics_button)
        session.busy_changed.connect(self._show_busy)
        session.progress_changed.connect(self._show_progress)
        session.cursor_changed.connect(self._show_cursor)
        session.selection_changed.connect(self._show_selection)
        session.document_changed.connect(self._show_document)
        session.reruns.reported.connect(lambda path: self.showMessage(tr("Written: {path}", path=path), WRITTEN_MS))
        self._show_busy(session.is_busy)
        self._show_document()

    def _label(self, name: str) -> QLabel:
        label = QLabel()
        label.setAccessibleName(name)
        label.setToolTip(name)
        label.setIndent(GAP_PX)
        self.addPermanentWidget(label)
        return label

    def _show_busy(self, busy: bool) -> None:
        self.progress.setValue(0)
        self.progress.setFormat(tr("Opening…"))
        self.progress.setVisible(busy)
        self.cancel.setVisible(busy)

    def _show_progress(self, ratio: float, what: str) -> None:
        self.progress.setValue(round(ratio * PROGRESS_STEPS))
        self.progress.setFormat(f"{what} · %p %")

    def _show_cursor(self, time_ns: int | None) -> None:
        trace = self._session.trace
        if time_ns is None or trace is None:
            self.cursor_label.clear()
            return
        unit = TimeUnit(self._settings.value(TIME_UNIT))
        resolution_ns = max(1, self._session.viewport.duration_ns // 2000)
        text = time_text(time_ns, unit, resolution_ns=resolution_ns, epoch_ns=trace.metadata.epoch_ns)
        self.cursor_label.setText(text)

    def _show_selection(self) -> None:
        span = self._session.selected_time_range
        self.selection_label.setText(
            tr("Selected {length}", length=format_duration_ns(span[1] - span[0])) if span else ""
        )

    def _show_document(self) -> None:
        document = self._session.document
        self._show_selection()
        self._show_diagnostics(document)
        if document is None:
            self.events_label.clear()
            self.load_label.clear()
            return
        self.events_label.setText(tr("{count} events", count=format_count(document.event_count)))
        self.load_label.setText(tr("loaded in {time}", time=format_duration_ns(document.load_time_ns)))

    def _show_diagnostics(self, document: Document | None) -> None:
        found = diagnostics_of(document) if document else ()
        lost = sum(item.severity.value != "notice" for item in found)
        self.diagnostics_button.setVisible(bool(found))
        if lost:
            count, one, many = lost, tr("⚠ 1 problem in the capture"), tr("⚠ {count} problems in the capture")
        else:
            count, one, many = len(found), tr("1 notice"), tr("{count} notices")
        self.diagnostics_button.setText(one if count == 1 else many.format(count=format_count(count)))
        self.diagnostics_button.setToolTip("\n".join(item.message for item in found[:10]))


def diagnostics_of(document: Document) -> tuple[Diagnostic, ...]:
    """Returns what could not be used in the job and in each of its ranks."""
    job = document.job
    return (*job.diagnostics, *(item for entry in job.ranks for item in entry.trace.diagnostics))
