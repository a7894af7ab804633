"""Benchmarks of the past in the window: the history ``cannscope bench`` writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.core.user_places import bench_history_place
from profiler_gui.session.failure import failure_of

if TYPE_CHECKING:  # the engine's workloads are imported after the first paint
    from engine.workloads.bench.history import HistoryEntry
    from profiler_gui.session.session import Session


class Benchmarks(QObject):
    """A history of benchmarks, read when it is asked for.

    Args:
        session: Owns this.

    Signals:
        changed: Other benchmarks are shown.
        failed: A Failure to show.
    """

    changed = Signal()
    failed = Signal(object)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._path: Path | None = None
        self._entries: tuple[HistoryEntry, ...] = ()

    @property
    def path(self) -> Path | None:
        """The file that is shown; None before one was read."""
        return self._path

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """Its benchmarks, the oldest first."""
        return self._entries

    def open(self, path: Path) -> None:
        """Shows the history of a file; says so where it is none."""
        self._session.finish_imports()
        from engine.core.errors import ScenarioError
        from engine.workloads.bench.history import read_history

        try:
            entries = read_history(path)
        except ScenarioError as error:
            self.failed.emit(failure_of(error))
            return
        self._path, self._entries = path, entries
        self.changed.emit()

    def open_usual(self) -> None:
        """Shows the history kept on this machine, where there is one."""
        if bench_history_place().is_file():
            self.open(bench_history_place())

    def reload(self) -> None:
        """Reads the file once more: benchmarks are run elsewhere."""
        if self._path is not None:
            self.open(self._path)
