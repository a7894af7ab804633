"""Which events stand out while the others are dimmed: those of a selected operator or candidate, else search hits."""

from collections.abc import Callable

import numpy as np

from engine.core.arrays import BoolArray
from engine.trace import ABSENT, Trace
from profiler_gui.session.selection import CandidateSelection, OperatorSelection, Selection
from profiler_gui.session.session import Session

Emphasis = Callable[[], BoolArray]
"""Returns, for every event (bool, shape (events,)), whether it stands out; called in a thread."""


def emphasis_of(session: Session) -> tuple[object, Emphasis | None]:
    """Returns what the emphasis depends on (equal while nothing changes) and the emphasis, None for none."""
    trace, selection = session.trace, session.selection
    if trace is None:
        return None, None
    if isinstance(selection, OperatorSelection):
        return selection, lambda: events_of_operator(trace, selection.type)
    ranges = _occurrences(session, selection)
    if ranges:
        return selection, lambda: events_in(trace, ranges)
    matches = session.matches
    if matches.is_active:
        return matches.query, lambda: events_named(trace, matches.names)
    return None, None


def events_of_operator(trace: Trace, operator_type: str) -> BoolArray:
    """Returns the tasks of an operator type; where a task has no recorded type its name is its type."""
    chosen = np.zeros(len(trace.events), dtype=np.bool_)
    type_id = trace.strings.id_of(operator_type)
    if type_id == ABSENT:
        return chosen
    kernels = trace.kernels
    chosen[kernels.event[kernels.op_type == type_id]] = True
    recorded = np.zeros(len(trace.events), dtype=np.bool_)
    recorded[kernels.event[kernels.op_type != ABSENT]] = True
    chosen[(trace.events.name == type_id) & ~recorded] = True
    return chosen


def events_named(trace: Trace, names: BoolArray) -> BoolArray:
    """Returns the events whose name is one of ``names`` (bool, shape (strings,))."""
    name = trace.events.name
    if len(names) == 0:
        return np.zeros(len(name), dtype=np.bool_)
    found: BoolArray = names[np.maximum(name, 0)] & (name >= 0)
    return found


def events_in(trace: Trace, events: tuple[int, ...]) -> BoolArray:
    """Returns the given events."""
    chosen = np.zeros(len(trace.events), dtype=np.bool_)
    chosen[list(events)] = True
    return chosen


def _occurrences(session: Session, selection: Selection) -> tuple[int, ...]:
    """Returns the events of a selected fusion candidate."""
    summary = session.summary
    if not isinstance(selection, CandidateSelection) or summary is None:
        return ()
    found = next((item for item in summary.fusion_candidates if item.pattern == selection.pattern), None)
    if found is None:
        return ()
    occurrences = found.occurrences
    if selection.occurrence is not None:
        occurrences = occurrences[selection.occurrence : selection.occurrence + 1]
    return tuple(event for occurrence in occurrences for event in occurrence.events)
