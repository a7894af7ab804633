"""Strips: what runs innermost on a folded track."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.trace import Origin, Source, Trace, TraceBuilder, TraceMetadata, Track, TrackKind
from profiler_gui.timeline.lanes import innermost_pieces
from tests.support.trace_text import US, trace_from_text


def pieces_of(trace: Trace) -> list[tuple[str, int, int]]:
    rows, start_ns, duration_ns = innermost_pieces(trace, trace.track_slices[0])
    return [
        (trace.name(int(row)), int(start), int(start + duration))
        for row, start, duration in zip(rows, start_ns, duration_ns, strict=True)
    ]


def drawn(picture: str) -> list[tuple[str, int, int]]:
    return [(name, start // US, end // US) for name, start, end in pieces_of(trace_from_text(picture))]


def test_a_slice_shows_until_another_begins_inside_it_and_again_afterwards():
    picture = "host 1 | AAAAAAAA.D |\nhost 1 | .BBB.C... |\nhost 1 | ..E...... |"
    expected = [("A", 0, 1), ("B", 1, 2), ("E", 2, 3), ("B", 3, 4), ("A", 4, 5), ("C", 5, 6), ("A", 6, 8), ("D", 9, 10)]
    assert drawn(picture) == expected


def test_of_slices_that_start_or_end_together_the_innermost_shows():
    assert drawn("host 1 | AAAA |\nhost 1 | BB.. |") == [("B", 0, 2), ("A", 2, 4)]
    assert drawn("host 1 | AAAA |\nhost 1 | ..BB |") == [("A", 0, 2), ("B", 2, 4)]


def trace_of(slices: list[tuple[int, int]]) -> Trace:
    builder = TraceBuilder()
    track = builder.add_track(Track(TrackKind.HOST_THREAD, "thread"))
    start_ns, duration_ns = (np.array(column, dtype=np.int64) for column in zip(*slices, strict=True))
    builder.add_events(start_ns=start_ns, duration_ns=duration_ns, track=track, name=builder.strings.intern("x"))
    return builder.build(origin=Origin.SIMULATED, source=Source("", ""), metadata=TraceMetadata(), clock_is_unix=False)


def test_a_moment_interrupts_a_slice_without_ending_it():
    starts = [(start, end) for _, start, end in pieces_of(trace_of([(0, 10), (4, 0), (4, 0)]))]
    assert [piece for piece in starts if piece[0] < piece[1]] == [(0, 4), (4, 10)]
    assert starts.count((4, 4)) == 2


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), min_size=1, max_size=12))
def test_pieces_never_overlap_and_cover_what_nested_slices_cover(slices):
    trace = trace_of(slices)
    events = trace.events
    pieces = [(start, end) for _, start, end in pieces_of(trace)]
    assert all(before[1] <= after[0] for before, after in pairwise(pieces))
    shown = {moment for piece in pieces for moment in range(*piece)}
    spans = list(zip(events.start_ns.tolist(), events.end_ns.tolist(), strict=True))
    busy = {moment for span in spans for moment in range(*span)}
    crosses = any(one[0] < other[0] < one[1] < other[1] for one in spans for other in spans)
    assert shown <= busy if crosses else shown == busy
