"""Opens captures and runs scenarios: work in the worker, imports in a thread, documents on the window's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from profiler_gui.session.compile_ahead import compile_in_worker
from profiler_gui.session.document import Document, Run
from profiler_gui.session.jobs import LatestJob
from profiler_gui.session.opening import (
    OpenRequest,
    ReadFinished,
    mapped_document,
    open_in_worker,
    open_request,
    prepare_imports,
)
from profiler_gui.session.simulating import simulate_in_worker, simulation_request
from profiler_gui.session.worker import Call

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.summary import JobSummary


class Opener(QObject):
    """Opens one capture at a time; the newest request wins.

    Args:
        cache_directory: Where traces already read are kept, and how the worker hands columns over.
        parent: Qt's.

    Signals:
        opened: A Document without its analyses, and the Run it was opened as.
        analysed: A Document opened before, and its JobSummary.
        busy_changed: A capture is being opened, or no longer.
        progress_changed: Ratio 0…1 and a phrase.
        failed: A Failure to show.
    """

    opened = Signal(object, object)
    analysed = Signal(object, object)
    busy_changed = Signal(bool)
    progress_changed = Signal(float, str)
    failed = Signal(object)

    def __init__(self, cache_directory: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._cache_directory = cache_directory
        self._run = Run.A
        self._document: Document | None = None
        self._imports: threading.Thread | None = None
        self._job = LatestJob(self)
        self._job.running_changed.connect(self.busy_changed)
        self._job.progressed.connect(self.progress_changed)
        self._job.delivered.connect(self._take_document)
        self._job.finished.connect(self._take_summary)
        self._job.failed.connect(self.failed)

    @property
    def is_busy(self) -> bool:
        """Whether a capture is being opened or analysed."""
        return self._job.is_running

    def open(self, paths: tuple[Path, ...], run: Run) -> None:
        """Opens a capture; what was being opened is given up."""
        request = open_request(paths, self._cache_directory)
        self._start(run, request, open_in_worker, request)

    def simulate(self, document: Mapping[str, Any], folder: Path, directory: Path, run: Run) -> None:
        """Runs a scenario and opens what it writes; what was being opened or run is given up.

        Args:
            document: The scenario as a parsed TOML file.
            folder: Paths inside the scenario are relative to it.
            directory: Where its captures go.
            run: What it is opened as.
        """
        request = simulation_request(document, folder, directory, self._cache_directory)
        self._start(run, request.opening, simulate_in_worker, request)

    def _start(self, run: Run, opening: OpenRequest, call: Call, request: object) -> None:
        self._run = run

        def adopt(value: Any) -> Any:
            if not isinstance(value, ReadFinished):
                return value
            self.finish_imports()
            return mapped_document(opening)

        self._job.start(call, request, adopt=adopt)

    def is_opening(self, run: Run) -> bool:
        """Whether a capture is being opened, or analysed, as this run."""
        return self._job.is_running and self._run is run

    def cancel(self) -> None:
        """Gives up opening."""
        self._job.cancel()

    def prepare_worker(self, compile_more: Callable[[], None]) -> None:
        """Starts the worker process before it is needed and has it compile what reading and showing will run."""
        self._job.prepare(compile_in_worker, self._cache_directory, compile_more)

    def import_ahead(self, modules: Sequence[str]) -> None:
        """Imports what opening needs, then ``modules``, in a thread, so that nobody waits for it later.

        Python lets two threads that import one package from different ends see half of it; documents therefore arrive
        only when this thread is done, and who imports the engine without one calls ``finish_imports`` first.
        """

        def run() -> None:
            prepare_imports()
            for module in modules:
                import_module(module)

        self._imports = threading.Thread(target=run, name="cannscope-imports", daemon=True)
        self._imports.start()

    def close(self) -> None:
        """Ends the worker and the thread. Must be called before the program ends."""
        self._job.close()
        self.finish_imports()

    def finish_imports(self) -> None:
        """Waits for the thread that imports ahead, if it runs."""
        if self._imports is not None:
            self._imports.join()

    def _take_document(self, document: Document) -> None:
        self._document = document
        self.opened.emit(document, self._run)

    def _take_summary(self, summary: JobSummary) -> None:
        document, self._document = self._document, None
        self.analysed.emit(document, summary)
