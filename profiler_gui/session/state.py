"""What holds in the window now, for everybody to read; ``Session`` is what changes it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Signal

from profiler_gui.session.annotations import Annotations
from profiler_gui.session.derived import DerivedValues
from profiler_gui.session.document import Document, Run
from profiler_gui.session.edits import Edits
from profiler_gui.session.event_search import EventSearch
from profiler_gui.session.filters import SearchQuery, SearchResult
from profiler_gui.session.history import History
from profiler_gui.session.opener import Opener
from profiler_gui.session.place import NOWHERE, Place, limits_of, time_range_of
from profiler_gui.session.selection import Selection
from profiler_gui.session.toggles import Toggles
from profiler_gui.session.viewport import Viewport

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.summary import JobSummary, RankSummary
    from engine.trace import Trace

Value = TypeVar("Value")


class SessionState(QObject):
    """Run A, optionally run B, and where the user is.

    Args:
        opener: Opens captures.
        parent: Qt's.

    Signals:
        document_changed: Run A or B was opened, exchanged or closed; everything below may have changed too.
        summary_changed: The analyses of a document have arrived.
        rank_changed, step_changed, selection_changed, viewport_changed: Where the user is.
        search_changed: Query, matches.
        filter_changed: Hidden categories.
        annotations_changed: Marks or pinned tracks.
        toggles_changed: What is switched on for a rerun, or its parameters.
        cursor_changed: The time under the pointer (int ns or None).
        busy_changed: A capture is being opened, or no longer.
        progress_changed: Ratio 0…1 and a phrase.
        failed: A Failure to show.
    """

    document_changed = Signal()
    summary_changed = Signal()
    rank_changed = Signal()
    step_changed = Signal()
    selection_changed = Signal()
    viewport_changed = Signal()
    search_changed = Signal()
    filter_changed = Signal()
    annotations_changed = Signal()
    toggles_changed = Signal()
    cursor_changed = Signal(object)
    busy_changed = Signal(bool)
    progress_changed = Signal(float, str)
    failed = Signal(object)

    def __init__(self, opener: Opener, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opener = opener
        self._documents: dict[Run, Document] = {}
        self._places: History[Place] = History(NOWHERE)
        self._edits: History[Edits] = History(Edits())
        self._query = SearchQuery()
        self._search = EventSearch(self)
        self._hidden_categories: frozenset[str] = frozenset()
        self._derived = DerivedValues()
        self._room: Viewport | None = None

    @property
    def document(self) -> Document | None:
        """Run A."""
        return self._documents.get(Run.A)

    @property
    def candidate(self) -> Document | None:
        """Run B, None while only one run is open."""
        return self._documents.get(Run.B)

    @property
    def rank(self) -> int:
        """The rank in view; meaningless without a document."""
        return self._places.current.rank

    @property
    def trace(self) -> Trace | None:
        """The trace of the rank in view."""
        return self.document.job.rank_trace(self.rank).trace if self.document else None

    @property
    def job_summary(self) -> JobSummary | None:
        """The analyses of run A; None until they arrive."""
        return self.document.summary if self.document else None

    @property
    def summary(self) -> RankSummary | None:
        """The analyses of the rank in view; None until they arrive."""
        return self.job_summary.rank(self.rank) if self.job_summary else None

    @property
    def step(self) -> int | None:
        """Index into ``summary.steps``, or None for all of them."""
        return self._places.current.step

    @property
    def selection(self) -> Selection:
        """What is selected."""
        return self._places.current.selection

    @property
    def selected_time_range(self) -> tuple[int, int] | None:
        """Start and end (ns) of what is selected; None where nothing with a place in time is."""
        return time_range_of(self.document, self.selection) if self.document else None

    @property
    def viewport(self) -> Viewport:
        """What the timeline shows."""
        return self._places.current.viewport

    @property
    def limits(self) -> Viewport:
        """The widest possible viewport."""
        if self.trace is None:
            return NOWHERE.viewport
        own, room = limits_of(self.trace), self._room
        return own if room is None else Viewport(min(own.start_ns, room.start_ns), max(own.end_ns, room.end_ns))

    @property
    def annotations(self) -> Annotations:
        """Marks and pinned tracks."""
        return self._edits.current.annotations

    @property
    def toggles(self) -> Toggles:
        """What is switched on for a rerun."""
        return self._edits.current.toggles

    @property
    def query(self) -> SearchQuery:
        """What is searched for."""
        return self._query

    @property
    def matches(self) -> SearchResult:
        """The matches on the rank in view: of ``query``, or of the one before while ``is_searching``."""
        return self._search.result

    @property
    def is_searching(self) -> bool:
        """Whether the matches of the query are still to come."""
        return self._search.is_running

    @property
    def hidden_categories(self) -> frozenset[str]:
        """Categories (the source's words) that views leave out."""
        return self._hidden_categories

    @property
    def is_busy(self) -> bool:
        """Whether a capture is being opened or analysed."""
        return self._opener.is_busy

    @property
    def can_go_back(self) -> bool:
        """Whether there is an earlier place."""
        return bool(self._places.past)

    @property
    def can_go_forward(self) -> bool:
        """Whether there is a later place."""
        return bool(self._places.future)

    @property
    def can_undo(self) -> bool:
        """Whether a change of marks, pins or toggles can be taken back."""
        return bool(self._edits.past)

    @property
    def can_redo(self) -> bool:
        """Whether one can be made again."""
        return bool(self._edits.future)

    def derived(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Returns a value computed from the open documents, cached until another one is opened.

        ``key`` names everything else it depends on (what it is, the rank, parameters).
        """
        return self._derived.get(key, compute)
