"""Search over event names, and the categories that are shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.core.arrays import BoolArray, Int32Array
    from engine.trace import Trace


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched for; an empty text finds nothing and dims nothing.

    Attributes:
        text: Substring, or pattern.
        regex: Whether ``text`` is a regular expression.
        match_case: Whether case matters.
    """

    text: str = ""
    regex: bool = False
    match_case: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """All matches of a query in one rank's trace.

    Attributes:
        query: What was searched for.
        events: int32, shape (n,): event rows by start time.
        names: bool, shape (strings,): which string ids match; empty for an empty query.
        error: What is wrong with the pattern, "" where nothing is.
    """

    query: SearchQuery
    events: Int32Array
    names: BoolArray
    error: str = ""

    def __len__(self) -> int:
        return len(self.events)

    @property
    def is_active(self) -> bool:
        """Whether views should dim what does not match."""
        return bool(self.query.text) and not self.error


def no_matches(query: SearchQuery, error: str = "") -> SearchResult:
    """Returns the result of a query that finds nothing."""
    return SearchResult(query, np.empty(0, dtype=np.int32), np.empty(0, dtype=np.bool_), error)


def search(trace: Trace, query: SearchQuery) -> SearchResult:
    """Returns every event of ``trace`` whose name matches; a broken pattern finds nothing and says why."""
    if not query.text:
        return no_matches(query)
    try:
        ids = _matching_ids(trace, query)
    except re.error as error:
        return no_matches(query, f"{error.msg} at position {error.pos}")
    names = np.zeros(len(trace.strings), dtype=np.bool_)
    names[ids] = True
    used = trace.events.name
    events = np.flatnonzero(names[np.maximum(used, 0)] & (used >= 0)) if len(names) else np.empty(0, dtype=np.int64)
    order = np.argsort(trace.events.start_ns[events], kind="stable")
    return SearchResult(query, events[order].astype(np.int32), names)


def _matching_ids(trace: Trace, query: SearchQuery) -> Int32Array:
    if not query.regex:
        return trace.strings.find(query.text, match_case=query.match_case)
    pattern = re.compile(query.text, 0 if query.match_case else re.IGNORECASE)
    # A loop over distinct strings, not over events.
    hits = [index for index, text in enumerate(trace.strings) if pattern.search(text)]
    return np.array(hits, dtype=np.int32)


def neighbour(result: SearchResult, trace: Trace, event: int | None, *, forward: bool) -> int | None:
    """Returns the match after (or before) ``event`` in time, wrapping around; None where nothing matches.

    Without an event the first (or last) match is meant.
    """
    if len(result) == 0:
        return None
    if event is None:
        return int(result.events[0 if forward else -1])
    here = np.flatnonzero(result.events == event)
    if len(here):
        position = int(here[0]) + (1 if forward else -1)
    else:
        starts_ns = trace.events.start_ns[result.events]
        position = int(np.searchsorted(starts_ns, trace.events.start_ns[event], side="left" if forward else "right"))
        position -= 0 if forward else 1
    return int(result.events[position % len(result)])
