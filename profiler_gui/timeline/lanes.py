"""Lanes of the tracks of one trace, made when a track is first seen. No Qt; safe to use from one worker thread."""

import numpy as np

from engine.core.arrays import BoolArray
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

    def make(self, track: int) -> Lanes:
        """Returns the lanes of a track; the first call also finds the colours and the emphasis of all events."""
        if not self._is_prepared:
            self._is_prepared = True
            self._stands_out = self._emphasis() if self._emphasis is not None else None
        events = self._trace.events
        part = self._trace.track_slices[track]
        lanes = []
        for positions in split_lanes(events.depth[part]):
            rows = self._shown(positions + part.start)
            color = self._colors.values[rows]
            if self._stands_out is not None:
                color = dimmed(color, self._stands_out[rows])
            lanes.append(
                build_lane(rows.astype(np.int32), events.start_ns[rows], events.duration_ns[rows], color, DIMMED)
            )
        return tuple(lanes)

    def _shown(self, rows: np.ndarray) -> np.ndarray:
        if len(self._hidden_ids) == 0:
            return rows
        return rows[~np.isin(self._trace.events.category[rows], self._hidden_ids)]
