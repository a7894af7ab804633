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
    Nothing,
    RangeSelection,
    Selection,
    StepSelection,
)
from profiler_gui.session.viewport import Viewport, around, clamped

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.trace import Trace
    from profiler_gui.session.document import Document

SMALLEST_SEEN_RATIO = 400
"""What is narrower than the viewport by more than this is about three pixels wide: revealing zooms in."""

FIRST_MARGIN_RATIO = 0.01
"""Of what lasts, left free on either side of it at first."""
LEAST_LASTING_RATIO = 0.5
"""Where what lasts takes less of the trace than this, the emptiness is what is to be seen."""


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


def first_view(trace: Trace) -> Viewport:
    """Returns what a trace shows at first: all that lasts, which nearly always is the whole trace.

    Moments far outside (as Kineto's ``Record Window End``, up to a third of the trace after the last slice) would leave
    room empty that the slices could use; ``limits_of`` keeps them.
    """
    events, limits = trace.events, limits_of(trace)
    lasting = events.duration_ns > 0
    if not lasting.any():
        return limits
    start_ns, end_ns = int(events.start_ns[lasting].min()), int(events.end_ns[lasting].max())
    lasting_view = clamped(around(start_ns, end_ns, FIRST_MARGIN_RATIO), limits)
    share = lasting_view.duration_ns / limits.duration_ns
    return lasting_view if LEAST_LASTING_RATIO <= share < 1 - 2 * FIRST_MARGIN_RATIO else limits


def first_place(document: Document) -> Place:
    """Returns where a document opens: its first rank, whole."""
    entry = document.job.ranks[0]
    return Place(entry.rank, None, NOTHING, first_view(entry.trace))


def at_rank(place: Place, document: Document, rank: int) -> Place:
    """Returns the place on another rank, showing the same moments of the job's clock."""
    old, new = document.job.rank_trace(place.rank), document.job.rank_trace(rank)
    shift_ns = old.offset_ns - new.offset_ns
    shifted = Viewport(place.viewport.start_ns + shift_ns, place.viewport.end_ns + shift_ns)
    was_whole = place.viewport in (first_view(old.trace), limits_of(old.trace))
    viewport = first_view(new.trace) if was_whole else clamped(shifted, limits_of(new.trace))
    return replace(place, rank=rank, step=None, selection=NOTHING, viewport=viewport)


def at_step(place: Place, document: Document, index: int | None) -> Place:
    """Returns the place with panels restricted to a step and the step in view; whole again for None."""
    entry = document.job.rank_trace(place.rank)
    limits = limits_of(entry.trace)
    if index is None or document.summary is None:
        return replace(place, step=None, viewport=first_view(entry.trace))
    step = document.summary.rank(place.rank).steps[index]
    return replace(place, step=index, viewport=clamped(around(step.range.start_ns, step.range.end_ns, 0.02), limits))


def at_selection(place: Place, document: Document, selection: Selection, *, reveal: bool) -> Place:
    """Returns the place with something selected, on its rank; with ``reveal`` moved so that it can be seen."""
    rank = place.rank if isinstance(selection, Nothing) else selection.rank
    if rank != place.rank:
        place = at_rank(place, document, rank)
    place = replace(place, selection=selection)
    span = time_range_of(document, selection) if reveal else None
    if span is None:
        return place
    return replace(place, viewport=_revealing(place.viewport, span, limits_of(document.job.rank_trace(rank).trace)))


def _revealing(viewport: Viewport, span: tuple[int, int], limits: Viewport) -> Viewport:
    """Returns the viewport, moved and if need be widened or narrowed so that ``span`` can be seen in it."""
    start_ns, end_ns = span
    width_ns = max(end_ns - start_ns, 1)
    is_inside = viewport.start_ns <= start_ns and end_ns <= viewport.end_ns
    is_too_small = width_ns * SMALLEST_SEEN_RATIO < viewport.duration_ns
    if is_inside and not is_too_small:
        return viewport
    if width_ns > viewport.duration_ns or is_too_small:
        return clamped(around(start_ns, end_ns, 2.0), limits)
    middle_ns = start_ns + width_ns // 2
    half_ns = viewport.duration_ns // 2
    return clamped(Viewport(middle_ns - half_ns, middle_ns - half_ns + viewport.duration_ns), limits)


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
