"""A service in the window: served in the worker, again with every change of the toggles, late requests named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

from profiler_gui.session.failure import Failure
from profiler_gui.session.jobs import LatestJob
from profiler_gui.session.rate_sweep import sweep_in_worker
from profiler_gui.session.scenario_reading import SERVING, read_document
from profiler_gui.session.serving_runs import (
    LateFound,
    RatePoint,
    Served,
    ServeRequest,
    ServicePlace,
    serve_in_worker,
)
from profiler_gui.session.toggles import Chosen, Toggles, text_of
from profiler_gui.session.worker import Call

if TYPE_CHECKING:  # the session owns this
    from engine.workloads.serving.prevention import JitterReport
    from profiler_gui.session.session import Session

SERVE_AFTER_MS = 300
"""A service is run again this long after the last change of a toggle."""
NOBODY = -1
"""No request is selected."""


@dataclass(slots=True)
class _Known:
    """What is known of the open service, by what was on."""

    served: dict[str, Served] = field(default_factory=dict)
    late: dict[str, LateFound] = field(default_factory=dict)
    curves: dict[str, list[RatePoint]] = field(default_factory=dict)


class Services(QObject):
    """Runs a serving scenario as it is and with toggles; what was tried before is not run again.

    Args:
        session: Whose toggles are looked at; owns this.

    Signals:
        opened: Another service is open, or none.
        changed: Another run is in view, or more is known of it.
        request_changed: Another request is selected.
        curve_changed: A point of latency over rate has come.
        busy_changed, progress_changed, failed: As of every job.
    """

    opened = Signal()
    changed = Signal()
    request_changed = Signal()
    curve_changed = Signal()
    busy_changed = Signal(bool)
    progress_changed = Signal(float, str)
    failed = Signal(object)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._place: ServicePlace | None = None
        self._known = _Known()
        self._scenario: Path | None = None
        self._is_of_capture = False
        self._request = NOBODY
        self._job = LatestJob(self)
        self._job.running_changed.connect(self.busy_changed)
        self._job.progressed.connect(self.progress_changed)
        self._job.delivered.connect(self._take)
        self._job.finished.connect(self._take_last)
        self._job.failed.connect(self._take_failure)
        self._debounce = QTimer(self)
        self._debounce.setSingleShot(True)
        self._debounce.setInterval(SERVE_AFTER_MS)
        self._debounce.timeout.connect(self.serve)
        session.toggles_changed.connect(self._follow_toggles)
        session.document_changed.connect(self._follow_document)

    # What is known

    @property
    def is_open(self) -> bool:
        """Whether a service is open."""
        return self._place is not None

    @property
    def is_busy(self) -> bool:
        """Whether it is being run."""
        return self._job.is_running

    @property
    def place(self) -> ServicePlace | None:
        """The open service."""
        return self._place

    @property
    def baseline(self) -> Served | None:
        """The service as it is; None until it was run."""
        return self._known.served.get("")

    @property
    def served(self) -> Served | None:
        """The service with what is on; None until it was run."""
        return self._known.served.get(self.key)

    @property
    def late(self) -> LateFound | None:
        """Who was late in that run; None until that was found out."""
        return self._known.late.get(self.key)

    @property
    def is_complete(self) -> bool:
        """Whether everything is known of that run: who was late, and what would have prevented it."""
        return self.late is not None and self.late.is_complete

    @property
    def report(self) -> JitterReport | None:
        """Who was late and what prevents it; None where that is not known."""
        return self.late.report if self.late is not None else None

    @property
    def curves(self) -> Mapping[str, list[RatePoint]]:
        """Latency over rate, by what was on (``key``)."""
        return self._known.curves

    @property
    def request(self) -> int:
        """The selected request; ``NOBODY`` for none."""
        return self._request

    @property
    def chosen(self) -> Chosen:
        """What is on of what acts on a service: a job that trains may be open beside it."""
        from engine.workloads.serving.settings_file import OPTIMIZATION_IDS

        return {key: values for key, values in self._session.toggles.chosen.items() if key in OPTIMIZATION_IDS}

    @property
    def key(self) -> str:
        """Names what is on."""
        return text_of(self.chosen) if self.is_open else ""

    # What a user does

    def open(self, document: Mapping[str, Any], folder: Path) -> None:
        """Opens a serving scenario and runs it; whatever service was open is closed.

        Args:
            document: The scenario as a parsed TOML file.
            folder: Paths inside it are relative to this folder.
        """
        self._session.finish_imports()
        self._forget()
        self._place = ServicePlace(document, folder, str(document.get("name", "")))
        if self._session.toggles != Toggles():
            self._session.set_toggles(Toggles())
        self._debounce.stop()
        self.opened.emit()
        self.changed.emit()
        self.serve()

    def close_service(self) -> None:
        """Closes the service."""
        self._forget()
        self.opened.emit()
        self.changed.emit()

    def serve(self) -> None:
        """Runs the service with what is on; what is known of it stays in view meanwhile."""
        self._debounce.stop()
        if self._place is not None:
            self._start(serve_in_worker)

    def sweep(self) -> None:
        """Finds latency over rate for what is on; points come one by one."""
        if self._place is not None:
            self._known.curves[self.key] = []
            self.curve_changed.emit()
            self._start(sweep_in_worker)

    def cancel(self) -> None:
        """Gives up what runs."""
        self._debounce.stop()
        self._job.cancel()

    def select(self, request: int) -> None:
        """Selects a request; ``NOBODY`` for none."""
        if request != self._request:
            self._request = request
            self.request_changed.emit()

    def close(self) -> None:
        """Ends the worker. Must be called before the program ends."""
        self._debounce.stop()
        self._job.close()

    # Inside

    def _forget(self) -> None:
        self._debounce.stop()
        self._job.cancel()
        self._place = None
        self._is_of_capture = False
        self._known = _Known()
        self.select(NOBODY)

    def _start(self, call: Call) -> None:
        assert self._place is not None  # noqa: S101 - looked at by the callers
        self._job.start(call, ServeRequest(self._place, self.chosen))

    def _follow_document(self) -> None:
        """Opens the service a capture was simulated from, and closes it with the capture."""
        document = self._session.document
        path = document.scenario if document is not None else None
        if path == self._scenario:
            return
        self._scenario = path
        if self._is_of_capture:
            self.close_service()
        scenario = read_document(path, self.failed.emit) if path is not None else None
        if path is not None and scenario is not None and scenario.get("kind") == SERVING:
            self.open(scenario, path.parent)
            self._is_of_capture = True

    def _follow_toggles(self) -> None:
        if self._place is None:
            return
        self.changed.emit()
        self.curve_changed.emit()
        if not self.is_complete:
            self._debounce.start()
        else:
            self._debounce.stop()

    def _take(self, value: Any) -> None:
        match value:
            case Served():
                self._known.served[text_of(value.chosen)] = value
                self.changed.emit()
            case LateFound():
                self._known.late[text_of(value.chosen)] = value
                self.changed.emit()
            case RatePoint():
                self._known.curves.setdefault(text_of(value.chosen), []).append(value)
                self.curve_changed.emit()

    def _take_last(self, value: Any) -> None:
        self._take(value)
        # A curve may have begun before it was known who was late.
        if self.served is not None and not self.is_complete and not self._debounce.isActive():
            self.serve()

    def _take_failure(self, failure: Failure) -> None:
        self.changed.emit()
        self.failed.emit(failure)
