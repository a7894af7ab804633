"""Search that never holds the window up: at once where the trace is small, in a thread where it is large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from profiler_gui.session.calls import LatestCall
from profiler_gui.session.filters import SearchQuery, SearchResult, no_matches, search

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.trace import Trace

MAX_ROWS_AT_ONCE = 100_000
"""Events and names that are searched without a thread: some ten milliseconds."""


class EventSearch(QObject):
    """The matches of the newest query in one trace.

    Signals:
        found: The matches have come out of the thread.
        failed: A Failure.
    """

    found = Signal()
    failed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._trace: Trace | None = None
        self._result = no_matches(SearchQuery())
        self._call = LatestCall(self)
        self._call.finished.connect(self._take)
        self._call.failed.connect(self.failed)

    @property
    def result(self) -> SearchResult:
        """The newest matches; those of the query before while ``is_running``, none if they are of another trace."""
        return self._result

    @property
    def is_running(self) -> bool:
        """Whether matches are still to come."""
        return self._call.is_running

    def start(self, trace: Trace | None, query: SearchQuery) -> None:
        """Searches: ``result`` is right when this returns, or ``is_running`` and ``found`` follows."""
        self._call.cancel()
        is_other_trace = trace is not self._trace
        self._trace = trace
        if trace is None or not query.text:
            self._result = no_matches(query)
        elif len(trace.events) + len(trace.strings) <= MAX_ROWS_AT_ONCE:
            self._result = search(trace, query)
        else:
            self._result = no_matches(SearchQuery()) if is_other_trace else self._result
            self._call.start(lambda: search(trace, query))

    def close(self) -> None:
        """Ends the thread. Must be called before the program ends."""
        self._call.close()

    def _take(self, result: SearchResult) -> None:
        self._result = result
        self.found.emit()
