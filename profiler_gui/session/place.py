"""Where the user is: what Backspace goes back through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from profiler_gui.session.selection import (
    NOTHING,
    AllocationSelection,
    CandidateSelection,
    CollectiveSelection,
    EventSelection,
    IdleSelection,
    RangeSelection,
    Selection,
    StepSelection,
)
from profiler_gui.session.viewport import Viewport, clamped

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.trace import Trace
    from profiler_gui.session.document import Document


@dataclass(frozen=True, slots=True)
class Place:
    """One point of the navigation history.

    Attributes:
        rank: The rank in view.
        step: Index into the steps of the rank's summary, or None for all of them.
        selection: What is selected.
        viewport: What the timeline shows.
    """

    rank: int
    step: int | None
    selection: Selection
    viewport: Viewport


NOWHERE = Place(0, None, NOTHING, Viewport(0, 1))


def limits_of(trace: Trace) -> Viewport:
    """Returns the widest viewport of a trace."""
    start_ns = trace.time_range.start_ns
    return Viewport(start_ns, max(trace.time_range.end_ns, start_ns + 1))


def first_place(document: Document) -> Place:
    """Returns where a document opens: its first rank, whole."""
    entry = document.job.ranks[0]
    return Place(entry.rank, None, NOTHING, limits_of(entry.trace))


def at_rank(place: Place, document: Document, rank: int) -> Place:
    """Returns the place on another rank, showing the same moments of the job's clock."""
    old, new = document.job.rank_trace(place.rank), document.job.rank_trace(rank)
    shift_ns = old.offset_ns - new.offset_ns
    shifted = Viewport(place.viewport.start_ns + shift_ns, place.viewport.end_ns + shift_ns)
    was_whole = place.viewport == limits_of(old.trace)
    limits = limits_of(new.trace)
    return replace(
        place, rank=rank, step=None, selection=NOTHING, viewport=limits if was_whole else clamped(shifted, limits)
    )


def time_range_of(document: Document, selection: Selection) -> tuple[int, int] | None:
    """Returns start and end (ns of the rank's trace) of what is selected; None where it has no place in time."""
    match selection:
        case RangeSelection(_, start_ns, end_ns):
            return start_ns, end_ns
        case EventSelection(rank, event):
            events = document.job.rank_trace(rank).trace.events
            start_ns = int(events.start_ns[event])
            return start_ns, start_ns + int(events.duration_ns[event])
        case AllocationSelection(rank, row):
            trace = document.job.rank_trace(rank).trace
            born_ns, freed_ns = (
                int(column[row])
                for column in (trace.memory.allocations.allocated_at_ns, trace.memory.allocations.freed_at_ns)
            )
            limits = limits_of(trace)
            return max(born_ns, limits.start_ns), freed_ns if freed_ns >= 0 else limits.end_ns
    return _range_in_summary(document, selection)


def _range_in_summary(document: Document, selection: Selection) -> tuple[int, int] | None:
    summary = document.summary
    if summary is None:
        return None
    match selection:
        case StepSelection(rank, index):
            step = summary.rank(rank).steps[index]
            return step.range.start_ns, step.range.end_ns
        case IdleSelection(rank, index):
            gap = summary.rank(rank).idle[index]
            return gap.start_ns, gap.end_ns
        case CollectiveSelection(rank, index):
            collective = summary.communication.collectives[rank][index]
            return collective.start_ns, collective.start_ns + collective.elapsed_ns
        case CandidateSelection(rank, pattern, occurrence):
            candidates = summary.rank(rank).fusion_candidates
            found = next((item for item in candidates if item.pattern == pattern), None)
            if found is None or not found.occurrences:
                return None
            places = found.occurrences if occurrence is None else (found.occurrences[occurrence],)
            return min(item.start_ns for item in places), max(item.end_ns for item in places)
    return None
