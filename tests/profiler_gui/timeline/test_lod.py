"""Lanes and their blocks, against the plainest possible computation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler_gui.timeline.lod import LEAF_SLICES, Lane, build_lane, split_lanes

gaps_and_durations = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=60)


def lane_of(parts: list[tuple[int, int]], colors: list[int] | None = None, dimmed_from: int = 256) -> Lane:
    gaps = np.array([gap for gap, _ in parts], dtype=np.int64)
    durations = np.array([duration for _, duration in parts], dtype=np.int64)
    starts = np.cumsum(gaps + durations) - durations
    color = np.array(colors if colors is not None else [index % 128 for index in range(len(parts))], dtype=np.uint8)
    return build_lane(np.arange(len(durations), dtype=np.int32), starts, durations, color, dimmed_from)


@given(gaps_and_durations)
def test_every_block_equals_a_sum_over_its_slices(parts):
    lane = lane_of(parts)
    for level in range(len(lane.level_start) - 1):
        size = LEAF_SLICES << level
        first = int(lane.level_start[level])
        assert lane.level_start[level + 1] - first == -(-len(lane) // size)
        for block in range(-(-len(lane) // size)):
            part = slice(block * size, (block + 1) * size)
            durations = lane.duration_ns[part]
            assert lane.block_start_ns[first + block] == lane.start_ns[part][0]
            end_ns = (lane.start_ns[part] + durations).max()
            assert lane.block_span_ns[first + block] == end_ns - lane.start_ns[part][0]
            assert lane.block_busy_ns[first + block] == durations.sum()
            assert lane.block_longest_ns[first + block] == durations.max()
            assert lane.block_color[first + block] == lane.color[part][int(np.argmax(durations))]


@given(gaps_and_durations.filter(bool), st.data())
def test_a_block_shows_a_match_whenever_it_holds_one(parts, data):
    dimmed = data.draw(st.lists(st.booleans(), min_size=len(parts), max_size=len(parts)))
    colors = [128 + 3 if dim else 3 for dim in dimmed]
    lane = lane_of(parts, colors, dimmed_from=128)
    assert lane.block_color[-1] == (131 if all(dimmed) else 3)


def test_the_top_block_covers_the_lane():
    lane = lane_of([(1, 2)] * 1000)
    assert lane.level_start[-1] - lane.level_start[-2] == 1
    assert lane.block_busy_ns[-1] == 2000


def test_an_empty_lane_has_no_blocks():
    lane = lane_of([])
    assert len(lane) == 0
    assert lane.level_start.tolist() == [0]
    assert lane.slice_at(5) == -1


@given(st.lists(st.integers(0, 6), max_size=80))
def test_splitting_by_depth_keeps_every_slice_once_and_in_order(depths):
    depth = np.array(depths, dtype=np.int32)
    lanes = split_lanes(depth)
    assert sorted(position for lane in lanes for position in lane.tolist()) == list(range(len(depths)))
    for level, positions in enumerate(lanes):
        assert np.all(depth[positions] == level)
        assert np.all(np.diff(positions) > 0)


@given(gaps_and_durations, st.integers(-10, 6100), st.integers(0, 30))
def test_the_slice_under_the_pointer_is_the_covering_or_else_the_nearest_one(parts, time_ns, tolerance_ns):
    lane = lane_of(parts)
    distances = [
        max(start - time_ns, time_ns - (start + duration) + 1, 0)
        for start, duration in zip(lane.start_ns.tolist(), lane.duration_ns.tolist(), strict=True)
    ]
    hit = lane.slice_at(time_ns, tolerance_ns)
    if hit < 0:
        # Among empty slices at one moment only the last stands next to the pointer; it is as near as the others.
        assert min(distances, default=10**9) > tolerance_ns
    else:
        assert distances[hit] == min(distances)


def test_the_columns_stay_exact_far_from_zero():
    start_ns = np.array([2**60, 2**60 + 3], dtype=np.int64)
    lane = build_lane(np.arange(2, dtype=np.int32), start_ns, np.ones(2, np.int64), np.zeros(2, np.uint8))
    assert lane.slice_at(2**60) == 0
    assert lane.slice_at(2**60 + 1) == -1
    assert lane.slice_at(2**60 + 3) == 1
