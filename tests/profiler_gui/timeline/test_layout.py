from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler_gui.timeline.layout import (
    Arrangement,
    Measures,
    RowKind,
    TrackNode,
    lay_out,
    moved,
    next_sibling,
    row_at,
    rows_between,
)

HOST, DEVICE = (0, 0), (0, 3)
NODES = (
    TrackNode(HOST, RowKind.GROUP, "host", sort_key=1),
    TrackNode((0, 1), RowKind.SLICES, "thread 1", parent=0, lane_count=4),
    TrackNode((0, 2), RowKind.SLICES, "thread 2", parent=0, lane_count=1),
    TrackNode(DEVICE, RowKind.GROUP, "device", sort_key=0),
    TrackNode((0, 4), RowKind.SLICES, "stream 7", parent=3, sort_key=7, lane_count=1),
    TrackNode((0, 5), RowKind.SLICES, "stream 2", parent=3, sort_key=2, lane_count=1),
    TrackNode((0, 6), RowKind.COUNTER, "memory", parent=3, sort_key=9, counter=0),
    TrackNode((0, 7), RowKind.GROUP, "nothing in it", sort_key=5),
    TrackNode((0, 8), RowKind.SLICES, "no slices", parent=7),
)
MEASURES = Measures(lane_px=10, min_track_px=12, counter_px=40, group_px=20, gap_px=2)


def labels(arrangement: Arrangement = Arrangement()) -> list[str]:  # noqa: B008
    return [row.node.label for row in lay_out(NODES, arrangement, MEASURES).rows]


def test_groups_and_tracks_stand_in_their_order_and_empty_ones_are_left_out():
    assert labels() == ["device", "stream 2", "stream 7", "memory", "host", "thread 1", "thread 2"]


def test_rows_are_as_high_as_their_lanes_but_never_lower_than_the_least_height():
    heights = {row.node.label: row.height_px for row in lay_out(NODES, Arrangement(), MEASURES).rows}
    assert heights == {
        "device": 20,
        "stream 2": 12,
        "stream 7": 12,
        "memory": 40,
        "host": 20,
        "thread 1": 40,
        "thread 2": 12,
    }


def test_a_collapsed_group_hides_its_tracks_and_a_collapsed_track_shows_one_lane():
    layout = lay_out(NODES, Arrangement(collapsed=frozenset({DEVICE, (0, 1)})), MEASURES)
    assert [row.node.label for row in layout.rows] == ["device", "host", "thread 1", "thread 2"]
    thread = layout.row_of((0, 1))
    assert thread is not None
    assert (thread.lane_count, thread.is_collapsed, thread.is_collapsible) == (1, True, True)


def test_pinned_tracks_stand_on_top_in_the_order_they_were_pinned_even_from_collapsed_groups():
    arrangement = Arrangement(collapsed=frozenset({DEVICE}), pins=((0, 2), (0, 4), (9, 9)))
    layout = lay_out(NODES, arrangement, MEASURES)
    assert [row.node.label for row in layout.pinned] == ["thread 2", "stream 7"]
    assert layout.pinned_height_px == 28


def test_a_hidden_track_is_not_shown():
    assert "thread 1" not in labels(Arrangement(hidden=frozenset({(0, 1)})))


def test_a_track_moves_among_its_siblings_only():
    up = moved(NODES, Arrangement(), (0, 4), (0, 5))
    assert labels(up) == ["device", "stream 7", "stream 2", "memory", "host", "thread 1", "thread 2"]
    assert labels(moved(NODES, up, (0, 4), None))[1:4] == ["stream 2", "memory", "stream 7"]
    assert moved(NODES, up, (0, 4), (0, 1)) == up
    assert labels(moved(NODES, up, HOST, DEVICE))[0] == "host"


@pytest.mark.parametrize(("step", "expected"), [(-1, ["memory", "stream 7"]), (1, ["stream 7", "memory"])])
def test_moving_by_one_step_and_back(step, expected):
    arrangement = moved(NODES, Arrangement(), (0, 6), next_sibling(NODES, Arrangement(), (0, 6), -1))
    if step > 0:
        arrangement = moved(NODES, arrangement, (0, 6), next_sibling(NODES, arrangement, (0, 6), 1))
    assert labels(arrangement)[2:4] == expected


def test_ranks_may_stand_together_on_one_clock():
    other = tuple(replace(node, key=(1, node.key[1])) for node in NODES)
    layout = lay_out((*NODES, *other), Arrangement(collapsed=frozenset({(0, 3)})), MEASURES)
    assert [row.node.key[0] for row in layout.rows if row.node.label == "device"] == [0, 1]
    assert sum(row.node.label == "stream 7" for row in layout.rows) == 1


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(-1, 5)), max_size=12),
    st.frozensets(st.integers(0, 11)),
    st.integers(0, 300),
)
def test_rows_never_overlap_and_are_found_by_their_height(tracks, collapsed, y_px):
    nodes = tuple(
        TrackNode(
            (0, index),
            RowKind.SLICES if lane_count else RowKind.GROUP,
            str(index),
            parent=parent if parent < index else -1,
            lane_count=lane_count,
        )
        for index, (lane_count, parent) in enumerate(tracks)
    )
    layout = lay_out(nodes, Arrangement(collapsed=frozenset((0, index) for index in collapsed)), MEASURES)
    assert len({row.node.key for row in layout.rows}) == len(layout.rows)
    for above, below in zip(layout.rows, layout.rows[1:], strict=False):
        assert above.bottom_px < below.top_px
    expected = next((row for row in layout.rows if row.top_px <= y_px < row.bottom_px), None)
    assert row_at(layout.rows, y_px) == expected
    shown = rows_between(layout.rows, y_px, y_px + 50)
    assert [row for row in layout.rows if row.bottom_px > y_px and row.top_px < y_px + 50] == [
        row for row in shown if row.bottom_px > y_px and row.top_px < y_px + 50
    ]
