"""The one writer of the window's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject

from profiler_gui.session.annotations import Annotations
from profiler_gui.session.benchmarks import Benchmarks
from profiler_gui.session.document import Document, Run
from profiler_gui.session.edits import Edits
from profiler_gui.session.filters import SearchQuery, neighbour
from profiler_gui.session.history import History
from profiler_gui.session.opener import Opener
from profiler_gui.session.place import NOWHERE, Place, at_rank, at_selection, at_step, first_place
from profiler_gui.session.reruns import Reruns
from profiler_gui.session.selection import NOTHING, EventSelection, Selection
from profiler_gui.session.services import Services
from profiler_gui.session.state import SessionState
from profiler_gui.session.toggles import Toggles
from profiler_gui.session.viewport import Viewport, around, clamped, panned, zoomed

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.summary import JobSummary


class Session(SessionState):
    """What the window shows: views read the properties, listen to the signals, call the methods and write nothing else.

    Args:
        cache_directory: Where traces already read are kept, and how the worker hands columns over.
        parent: Qt's.

    Attributes:
        reruns: What optimizations make of run A.
        services: A simulated service, and what toggles make of it.
        benchmarks: Benchmarks of the past.
    """

    def __init__(self, cache_directory: Path, parent: QObject | None = None) -> None:
        super().__init__(Opener(cache_directory), parent)
        self._gesture = ""
        self._step_when_found: bool | None = None
        opener = self._opener
        opener.setParent(self)
        opener.busy_changed.connect(self.busy_changed)
        opener.progress_changed.connect(self.progress_changed)
        opener.failed.connect(self.failed)
        opener.opened.connect(self.show)
        opener.analysed.connect(self._take_summary)
        self.reruns = Reruns(self, cache_directory)
        self.services = Services(self)
        self.benchmarks = Benchmarks(self)
        self._search.failed.connect(self.failed)
        self._search.found.connect(self._take_matches)

    # Opening

    def open(self, paths: tuple[Path, ...], run: Run = Run.A) -> None:
        """Opens a capture in the background; what was being opened is given up, what is open stays until it is read."""
        self._opener.open(paths, run)

    def simulate(self, scenario: Mapping[str, Any], folder: Path, directory: Path, run: Run = Run.A) -> None:
        """Runs a scenario in the background and opens its captures; otherwise as ``open``.

        Args:
            scenario: As a parsed TOML file.
            folder: Paths inside it are relative to this folder.
            directory: Where its captures go.
            run: What it is opened as.
        """
        self._opener.simulate(scenario, folder, directory, run)

    def show(self, document: Document, run: Run = Run.A) -> None:
        """Shows a document that is already made."""
        self._documents[run] = document
        self._derived.clear()
        if run is Run.A:
            self._places = History(first_place(document))
            self._edits = History(Edits())
            self._hidden_categories = frozenset()
            self._gesture = ""
        self._search_again()
        self.document_changed.emit()

    def close_run(self, run: Run) -> None:
        """Closes a run, and gives up opening it."""
        if self._opener.is_opening(run):
            self._opener.cancel()
        if self._documents.pop(run, None) is not None:
            self._derived.clear()
            self._places = self._places if run is Run.B else History(NOWHERE)
            self._search_again()
            self.document_changed.emit()

    def exchange_runs(self) -> None:
        """Makes run B run A and the other way round; does nothing with one run."""
        if self.document and self.candidate:
            candidate, baseline = self.candidate, self.document
            self._documents[Run.B] = baseline
            self.show(candidate)

    def cancel(self) -> None:
        """Gives up opening."""
        self._opener.cancel()

    def prepare_worker(self, compile_more: Callable[[], None]) -> None:
        """Starts the worker process before it is needed and has it compile what reading and showing will run.

        Args:
            compile_more: Runs the kernels of views in the worker; a function at module level.
        """
        self._opener.prepare_worker(compile_more)

    def import_ahead(self, modules: Sequence[str]) -> None:
        """Imports what opening needs and then ``modules`` in a thread."""
        self._opener.import_ahead(modules)

    def finish_imports(self) -> None:
        """Waits for that thread: for what imports the engine on the window's thread before a document has arrived."""
        self._opener.finish_imports()

    def close(self) -> None:
        """Ends the worker and all threads. Must be called before the program ends."""
        self.reruns.close()
        self.services.close()
        self._opener.close()
        self._search.close()

    def _take_summary(self, document: Document, summary: JobSummary) -> None:
        # By identity: the runs may have been exchanged, or this one closed, since it was read.
        for run, shown in self._documents.items():
            if shown is document:
                self._documents[run] = replace(document, summary=summary)
                self._derived.clear()
                self.summary_changed.emit()
                break

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

    def set_room(self, room: Viewport | None) -> None:
        """Lets the viewport reach beyond the trace, so that runs of different length stand on one scale.

        Args:
            room: What can be shown at least; None for what the trace has.
        """
        self._room = room

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
            before, self._query = self.matches, query
            self._search_again()
            if self.matches is not before:
                self.search_changed.emit()

    def go_to_match(self, *, forward: bool) -> None:
        """Selects the next (or previous) match in time from the selected event, wrapping around.

        While the matches are still to come, that happens when they are there.
        """
        trace = self.trace
        if trace is None:
            return
        if self.is_searching:
            self._step_when_found = forward
            return
        selection = self.selection
        here = selection.event if isinstance(selection, EventSelection) else None
        event = neighbour(self.matches, trace, here, forward=forward)
        if event is not None:
            self.select(EventSelection(self.rank, event), reveal=True)

    def _search_again(self) -> None:
        self._step_when_found = None
        self._search.start(self.trace, self._query)

    def _take_matches(self) -> None:
        self.search_changed.emit()
        if self._step_when_found is not None:
            forward, self._step_when_found = self._step_when_found, None
            self.go_to_match(forward=forward)

    def set_hidden_categories(self, categories: frozenset[str]) -> None:
        """Leaves the events of some categories out of the views."""
        if categories != self._hidden_categories:
            self._hidden_categories = categories
            self.filter_changed.emit()

    # Marks, pins, toggles

    def annotate(self, annotations: Annotations) -> None:
        """Replaces marks and pins, undoably: ``session.annotate(session.annotations.with_mark(…))``."""
        self._replace_edits(self._edits.push(replace(self._edits.current, annotations=annotations)))

    def restore_annotations(self, annotations: Annotations) -> None:
        """Replaces marks and pins by those of an earlier opening; there is nothing before them to undo."""
        self._replace_edits(History(replace(self._edits.current, annotations=annotations)))

    def set_toggles(self, toggles: Toggles) -> None:
        """Switches optimizations on or off, undoably: ``session.set_toggles(session.toggles.switched(…))``."""
        self._replace_edits(self._edits.push(replace(self._edits.current, toggles=toggles)))

    def undo(self) -> None:
        """Takes the last change of marks, pins or toggles back."""
        self._replace_edits(self._edits.back())

    def redo(self) -> None:
        """Makes it again."""
        self._replace_edits(self._edits.forward())

    def _replace_edits(self, history: History[Edits]) -> None:
        before, self._edits = self._edits.current, history
        if history.current.annotations != before.annotations:
            self.annotations_changed.emit()
        if history.current.toggles != before.toggles:
            self.toggles_changed.emit()

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
        if before.rank != after.rank:
            self._search_again()
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
