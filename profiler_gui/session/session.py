"""The one writer of the window's state."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, Signal

from profiler_gui.session.annotations import Annotations
from profiler_gui.session.derived import DerivedValues
from profiler_gui.session.document import Document
from profiler_gui.session.filters import SearchQuery, SearchResult, neighbour, no_matches, search
from profiler_gui.session.history import History
from profiler_gui.session.jobs import LatestJob
from profiler_gui.session.opening import ReadFinished, mapped_document, open_in_worker, open_request
from profiler_gui.session.place import (
    NOWHERE,
    Place,
    at_rank,
    at_selection,
    at_step,
    first_place,
    limits_of,
    time_range_of,
)
from profiler_gui.session.selection import NOTHING, EventSelection, Selection
from profiler_gui.session.viewport import Viewport, around, clamped, panned, zoomed

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.summary import JobSummary, RankSummary
    from engine.trace import Trace

Value = TypeVar("Value")


class Run(StrEnum):
    """Which of the two runs of the window."""

    A = "a"
    B = "b"


class Session(QObject):
    """What the window shows: run A, optionally run B, and where the user is.

    Views read the properties, listen to the signals and call the methods; they write nothing else.

    Args:
        cache_directory: Where traces already read are kept, and how the worker hands columns over.

    Signals:
        document_changed: Run A or B was opened, exchanged or closed; everything below may have changed too.
        summary_changed: The analyses of a document have arrived.
        rank_changed, step_changed, selection_changed, viewport_changed: Where the user is.
        search_changed: Query, matches.
        filter_changed: Hidden categories.
        annotations_changed: Marks or pinned tracks.
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
    cursor_changed = Signal(object)
    busy_changed = Signal(bool)
    progress_changed = Signal(float, str)
    failed = Signal(object)

    def __init__(self, cache_directory: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._cache_directory = cache_directory
        self._documents: dict[Run, Document] = {}
        self._opening_run = Run.A
        self._analysed: Document | None = None
        self._places: History[Place] = History(NOWHERE)
        self._gesture = ""
        self._annotations: History[Annotations] = History(Annotations())
        self._query = SearchQuery()
        self._hidden_categories: frozenset[str] = frozenset()
        self._derived = DerivedValues()
        self._job = LatestJob(self)
        self._job.running_changed.connect(self.busy_changed)
        self._job.progressed.connect(self.progress_changed)
        self._job.delivered.connect(self._take_document)
        self._job.finished.connect(self._take_summary)
        self._job.failed.connect(self.failed)

    # What holds now

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
        return limits_of(self.trace) if self.trace else NOWHERE.viewport

    @property
    def annotations(self) -> Annotations:
        """Marks and pinned tracks."""
        return self._annotations.current

    @property
    def query(self) -> SearchQuery:
        """What is searched for."""
        return self._query

    @property
    def matches(self) -> SearchResult:
        """The matches of the query on the rank in view."""
        trace, query = self.trace, self._query
        if trace is None:
            return no_matches(query)
        return self.derived(("matches", self.rank, query), lambda: search(trace, query))

    @property
    def hidden_categories(self) -> frozenset[str]:
        """Categories (the source's words) that views leave out."""
        return self._hidden_categories

    @property
    def is_busy(self) -> bool:
        """Whether a capture is being opened or analysed."""
        return self._job.is_running

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
        """Whether a change of marks or pins can be taken back."""
        return bool(self._annotations.past)

    @property
    def can_redo(self) -> bool:
        """Whether one can be made again."""
        return bool(self._annotations.future)

    def derived(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Returns a value computed from the open documents, cached until another one is opened.

        ``key`` names everything else it depends on (what it is, the rank, parameters).
        """
        return self._derived.get(key, compute)

    # Opening

    def open(self, paths: tuple[Path, ...], run: Run = Run.A) -> None:
        """Opens a capture in the background; what was being opened is given up, what is open stays until it is read."""
        self._opening_run = run
        request = open_request(paths, self._cache_directory)

        def adopt(value: Any) -> Any:
            return mapped_document(request) if isinstance(value, ReadFinished) else value

        self._job.start(open_in_worker, request, adopt=adopt)

    def show(self, document: Document, run: Run = Run.A) -> None:
        """Shows a document that is already made."""
        self._documents[run] = document
        self._derived.clear()
        if run is Run.A:
            self._places = History(first_place(document))
            self._annotations = History(Annotations())
            self._hidden_categories = frozenset()
            self._gesture = ""
        self.document_changed.emit()

    def close_run(self, run: Run) -> None:
        """Closes a run, and gives up opening it."""
        if self._job.is_running and self._opening_run is run:
            self._job.cancel()
        if self._documents.pop(run, None) is not None:
            self._derived.clear()
            self._places = self._places if run is Run.B else History(NOWHERE)
            self.document_changed.emit()

    def exchange_runs(self) -> None:
        """Makes run B run A and the other way round; does nothing with one run."""
        if self.document and self.candidate:
            candidate, baseline = self.candidate, self.document
            self._documents[Run.B] = baseline
            self.show(candidate)

    def cancel(self) -> None:
        """Gives up opening."""
        self._job.cancel()

    def prepare_worker(self) -> None:
        """Starts the worker process before it is needed."""
        self._job.prepare()

    def close(self) -> None:
        """Ends the worker. Must be called before the program ends."""
        self._job.close()

    def _take_document(self, document: Document) -> None:
        self._analysed = document
        self.show(document, self._opening_run)

    def _take_summary(self, summary: JobSummary) -> None:
        # By identity: the runs may have been exchanged, or this one closed, since it was read.
        for run, document in self._documents.items():
            if document is self._analysed:
                self._documents[run] = replace(document, summary=summary)
                self._derived.clear()
                self.summary_changed.emit()
                break
        self._analysed = None

    # Moving around

    def set_rank(self, rank: int) -> None:
        """Brings another rank into view, at the same moments of the job's clock."""
        if self.document and rank != self.rank:
            self._go(at_rank(self._places.current, self.document, rank))

    def set_step(self, index: int | None) -> None:
        """Restricts panels to a step of the summary and shows it; None for all steps."""
        if self.document:
            self._go(at_step(self._places.current, self.document, index))

    def select(self, selection: Selection, *, reveal: bool = False) -> None:
        """Selects; a selection on another rank brings that rank into view.

        Args:
            selection: What to select.
            reveal: Whether the viewport should move where the selection would not be seen.
        """
        if self.document:
            self._go(at_selection(self._places.current, self.document, selection, reveal=reveal))

    def clear_selection(self) -> None:
        """Selects nothing."""
        self.select(NOTHING)

    def show_range(self, start_ns: int, end_ns: int, gesture: str = "") -> None:
        """Shows a stretch of time.

        Args:
            start_ns: First ns in view.
            end_ns: First ns after it.
            gesture: Changes in a row under the same name (``"wheel"``, ``"drag"``) are one step of the history.
        """
        viewport = clamped(Viewport(start_ns, max(end_ns, start_ns + 1)), self.limits)
        self._go(replace(self._places.current, viewport=viewport), gesture)

    def zoom(self, anchor_ns: int, factor: float, gesture: str = "") -> None:
        """Makes the viewport ``factor`` times as wide, with ``anchor_ns`` staying where it is on the screen."""
        viewport = zoomed(self.viewport, anchor_ns, factor)
        self.show_range(viewport.start_ns, viewport.end_ns, gesture)

    def pan(self, distance_ns: int, gesture: str = "") -> None:
        """Moves the viewport later by ``distance_ns``."""
        viewport = panned(self.viewport, distance_ns)
        self.show_range(viewport.start_ns, viewport.end_ns, gesture)

    def show_all(self) -> None:
        """Shows the whole trace."""
        self.show_range(self.limits.start_ns, self.limits.end_ns)

    def show_selection(self) -> None:
        """Zooms to the selection with a margin; asked for again, to exactly the selection."""
        span = self.selected_time_range
        if span is None:
            return
        wide = clamped(around(*span), self.limits)
        exact = clamped(Viewport(span[0], max(span[1], span[0] + 1)), self.limits)
        target = exact if self.viewport == wide else wide
        self.show_range(target.start_ns, target.end_ns)

    def back(self) -> None:
        """Returns to the place before: selection, viewport, step and rank as they were."""
        self._replace_places(self._places.back())

    def forward(self) -> None:
        """Undoes ``back``."""
        self._replace_places(self._places.forward())

    def report_cursor(self, time_ns: int | None) -> None:
        """Says which time is under the pointer (None: no time)."""
        self.cursor_changed.emit(time_ns)

    # Searching and filtering

    def set_query(self, query: SearchQuery) -> None:
        """Searches for something else."""
        if query != self._query:
            self._query = query
            self.search_changed.emit()

    def go_to_match(self, *, forward: bool) -> None:
        """Selects the next (or previous) match in time from the selected event, wrapping around."""
        trace = self.trace
        if trace is None:
            return
        selection = self.selection
        here = selection.event if isinstance(selection, EventSelection) else None
        event = neighbour(self.matches, trace, here, forward=forward)
        if event is not None:
            self.select(EventSelection(self.rank, event), reveal=True)

    def set_hidden_categories(self, categories: frozenset[str]) -> None:
        """Leaves the events of some categories out of the views."""
        if categories != self._hidden_categories:
            self._hidden_categories = categories
            self.filter_changed.emit()

    # Marks and pins

    def annotate(self, annotations: Annotations) -> None:
        """Replaces marks and pins, undoably: ``session.annotate(session.annotations.with_mark(…))``."""
        self._replace_annotations(self._annotations.push(annotations))

    def undo(self) -> None:
        """Takes the last change of marks or pins back."""
        self._replace_annotations(self._annotations.back())

    def redo(self) -> None:
        """Makes it again."""
        self._replace_annotations(self._annotations.forward())

    def _replace_annotations(self, history: History[Annotations]) -> None:
        changed = history.current != self._annotations.current
        self._annotations = history
        if changed:
            self.annotations_changed.emit()

    def _go(self, place: Place, gesture: str = "") -> None:
        if place == self._places.current:
            return
        continues = bool(gesture) and gesture == self._gesture
        self._replace_places(self._places.replace_current(place) if continues else self._places.push(place))
        self._gesture = gesture

    def _replace_places(self, history: History[Place]) -> None:
        before, after = self._places.current, history.current
        self._places = history
        self._gesture = ""
        for name, signal in (
            ("rank", self.rank_changed),
            ("step", self.step_changed),
            ("viewport", self.viewport_changed),
            ("selection", self.selection_changed),
        ):
            if getattr(before, name) != getattr(after, name):
                signal.emit()
        if before.rank != after.rank and self._query.text:
            self.search_changed.emit()
