"""Lanes of the tracks of one trace, made when a track is first seen. No Qt; safe to use from one worker thread."""

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.trace import ABSENT, Trace
from profiler_gui.timeline.coloring import EventColors, dimmed
from profiler_gui.timeline.emphasis import Emphasis
from profiler_gui.timeline.lod import Lane, build_lane, split_lanes
from profiler_gui.timeline.palette import DIMMED

Lanes = tuple[Lane, ...]
"""The lanes of one track, outermost first."""


def lane_counts(trace: Trace) -> list[int]:
    """Returns how many lanes each track has, without making any."""
    # A loop over tracks, not over events.
    return [int(trace.events.depth[part].max()) + 1 if part.stop > part.start else 0 for part in trace.track_slices]


class LaneMaker:
    """Makes the lanes of one trace's tracks.

    Args:
        trace: Whose tracks.
        colors: Of the same trace.
        emphasis: Returns which events are not dimmed, bool, shape (events,); None to dim nothing.
        hidden_categories: Categories (the source's words) whose slices are left out.
    """

    def __init__(
        self,
        trace: Trace,
        colors: EventColors,
        emphasis: Emphasis | None = None,
        hidden_categories: frozenset[str] = frozenset(),
    ) -> None:
        self._trace = trace
        self._emphasis = emphasis
        self._stands_out: BoolArray | None = None
        ids = {trace.strings.id_of(text) for text in hidden_categories} - {ABSENT}
        # The empty text stands for events without a category.
        self._hidden_ids = np.array(sorted(ids | ({ABSENT} if "" in hidden_categories else set())), dtype=np.int32)
        self._colors = colors
        self._is_prepared = False

    def make(self, track: int, *, is_strip: bool = False) -> Lanes:
        """Returns the lanes of a track; the first call also finds the colours and the emphasis of all events.

        Args:
            track: Index into ``Trace.tracks``.
            is_strip: Whether one lane of what runs innermost is wanted instead of one per depth.
        """
        if not self._is_prepared:
            self._is_prepared = True
            self._stands_out = self._emphasis() if self._emphasis is not None else None
        events = self._trace.events
        part = self._trace.track_slices[track]
        if is_strip:
            return (self._lane(*innermost_pieces(self._trace, part)),)
        lanes = []
        for positions in split_lanes(events.depth[part]):
            rows = positions + part.start
            lanes.append(self._lane(rows, events.start_ns[rows], events.duration_ns[rows]))
        return tuple(lanes)

    def _lane(self, rows: Int64Array, start_ns: Int64Array, duration_ns: Int64Array) -> Lane:
        if len(self._hidden_ids):
            shown = ~np.isin(self._trace.events.category[rows], self._hidden_ids)
            rows, start_ns, duration_ns = rows[shown], start_ns[shown], duration_ns[shown]
        color = self._colors.values[rows]
        if self._stands_out is not None:
            color = dimmed(color, self._stands_out[rows])
        return build_lane(rows.astype(np.int32), start_ns, duration_ns, color, DIMMED)


def innermost_pieces(trace: Trace, part: slice) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns what runs innermost on a track at every moment: pieces of slices that follow each other.

    A slice is innermost from its start to the next start or its own end, and again after each slice directly inside it
    until the next start or its own end. Where slices overlap without nesting, the later one counts.

    Args:
        trace: Whose track.
        part: Event rows of the track.

    Returns:
        Event rows, starts and durations of the pieces by start; int64, shape (pieces,). Moments stay in as pieces of
        no length.
    """
    events = trace.events
    start_ns, duration_ns = events.start_ns[part], events.duration_ns[part]
    end_ns = start_ns + duration_ns
    rows = np.arange(part.start, part.stop, dtype=np.int64)
    last_ns = np.int64(end_ns.max(initial=0))
    next_ns = np.append(start_ns, last_ns)
    own_end_ns = np.minimum(end_ns, next_ns[1:])
    # Sorted by (start, −duration): of slices that start together, only the innermost begins with a piece.
    begins = (own_end_ns > start_ns) | (duration_ns == 0)
    parent = events.parent[part].astype(np.int64) - part.start
    resumes = parent >= 0
    resumed = parent[resumes]
    again_ns = end_ns[resumes]
    # A moment ends where it starts: what follows it is the next row, not itself.
    following = np.maximum(np.searchsorted(start_ns, again_ns, side="left"), np.flatnonzero(resumes) + 1)
    until_ns = np.minimum(end_ns[resumed], next_ns[following])
    lasts = until_ns > again_ns
    piece_rows = np.concatenate([rows[begins], rows[resumed[lasts]]])
    piece_start_ns = np.concatenate([start_ns[begins], again_ns[lasts]])
    piece_end_ns = np.concatenate([own_end_ns[begins], until_ns[lasts]])
    order = np.argsort(piece_start_ns, kind="stable")
    piece_rows, piece_start_ns, piece_end_ns = piece_rows[order], piece_start_ns[order], piece_end_ns[order]
    following_ns = np.append(piece_start_ns[1:], last_ns)
    return piece_rows, piece_start_ns, np.minimum(piece_end_ns, following_ns) - piece_start_ns
