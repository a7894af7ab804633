"""What the rasteriser puts into columns of pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler_gui.timeline.lod import Lane, build_lane
from profiler_gui.timeline.raster import BLOCK_PX, MAX_LABEL_SITES, Columns, fill_columns, paint_columns

WIDTH = 16
BACKGROUND = 0xFF101010
PALETTE = np.full(256, 0xFFF0F0F0, dtype=np.uint32)
lanes = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), min_size=1, max_size=60)


def lane_of(slices: list[tuple[int, int]], colors: list[int] | None = None) -> Lane:
    start_ns = np.array([start for start, _ in slices], dtype=np.int64)
    duration_ns = np.array([duration for _, duration in slices], dtype=np.int64)
    color = np.array(colors if colors is not None else [1] * len(slices), dtype=np.uint8)
    return build_lane(np.arange(len(slices), dtype=np.int32), start_ns, duration_ns, color)


def placed(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    slices, now = [], 0
    for gap, duration in parts:
        slices.append((now + gap, duration))
        now += gap + duration
    return slices


def columns_of(lane: Lane, start_ns: int, end_ns: int, width: int = WIDTH, block_px: float = BLOCK_PX) -> Columns:
    columns = Columns(width)
    fill_columns(lane, start_ns, end_ns, columns, label_px=1e9, block_px=block_px)
    return columns


def brute_force(slices: list[tuple[int, int]], start_ns: int, end_ns: int, width: int = WIDTH) -> np.ndarray:
    edges = start_ns + np.arange(width + 1) * (end_ns - start_ns) / width
    filled = np.zeros(width)
    for start, duration in slices:
        overlap = np.minimum(start + duration, edges[1:]) - np.maximum(start, edges[:-1])
        filled += np.maximum(overlap, 0)
    return filled * width / (end_ns - start_ns)


@given(lanes, st.integers(0, 2000), st.integers(1, 4000))
def test_every_column_shows_exactly_what_fills_it(parts, start_ns, span_ns):
    slices = placed(parts)
    columns = columns_of(lane_of(slices), start_ns, start_ns + span_ns, block_px=0.0)
    assert columns.filled == pytest.approx(brute_force(slices, start_ns, start_ns + span_ns), abs=1e-9)


@given(lanes, st.integers(1, 200_000))
def test_blocks_lose_nothing_and_move_it_by_no_more_than_a_column(parts, span_ns):
    slices = placed(parts)
    end = slices[-1][0] + slices[-1][1]
    columns = columns_of(lane_of(slices), 0, end + span_ns)
    exact = brute_force(slices, 0, end + span_ns)
    assert columns.filled.sum() == pytest.approx(exact.sum())
    difference = np.cumsum(columns.filled) - np.cumsum(exact)
    assert np.abs(difference).max() <= 1.0 + 1e-9


@given(lanes, st.integers(-500, 3000), st.integers(1, 4000))
def test_a_column_is_tinted_only_where_a_slice_touches_it_or_its_neighbour(parts, start_ns, span_ns):
    slices = placed(parts)
    columns = columns_of(lane_of(slices), start_ns, start_ns + span_ns)
    touched = np.zeros(WIDTH + 2, dtype=bool)
    for start, duration in slices:
        first = (start - start_ns) * WIDTH // span_ns
        last = (start + duration - start_ns) * WIDTH // span_ns
        touched[np.clip(np.arange(first, last + 1) + 1, 0, WIDTH + 1)] = True
    near = touched[1:-1] | touched[:-2] | touched[2:]
    assert not np.any((columns.weight >= 0) & ~near)


@pytest.mark.parametrize("moment_ns", [0, 1, 499_999_999, 500_000_000, 520_833, 999_999_999])
@pytest.mark.parametrize("duration_ns", [0, 1])
def test_a_sliver_never_fills_more_than_one_column(moment_ns, duration_ns):
    columns = columns_of(lane_of([(moment_ns, duration_ns)]), 0, 1_000_000_000, width=1920)
    assert np.count_nonzero(columns.weight >= 0) == 1
    assert columns.filled.sum() == pytest.approx(duration_ns * 1920 / 1e9)


def test_a_million_slivers_tint_and_do_not_fill():
    slices = [(start, 1) for start in range(0, 1_000_000, 100)]
    columns = columns_of(lane_of(slices), 0, 1_000_000, width=100)
    assert np.all(columns.weight >= 0)
    assert columns.filled == pytest.approx(np.full(100, 0.01), abs=0.005)


def test_the_colour_is_that_of_the_slice_that_fills_most():
    lane = lane_of([(0, 30), (30, 60), (90, 10), (100, 1000)], [1, 2, 3, 4])
    columns = columns_of(lane, 0, 200, width=2)
    assert columns.color.tolist() == [2, 4]


def test_a_wide_slice_is_solid_and_reaches_exactly_to_its_ends():
    columns = columns_of(lane_of([(25, 50)]), 0, 100, width=8)
    assert columns.filled.tolist() == [0, 0, 1, 1, 1, 1, 0, 0]


def test_a_slice_of_one_ns_fills_a_view_of_one_ns_far_from_zero():
    columns = columns_of(lane_of([(2**60, 1), (2**60 + 1, 1)]), 2**60, 2**60 + 1)
    assert columns.filled == pytest.approx(np.ones(WIDTH))


def test_label_sites_are_the_wide_slices_clipped_to_the_view():
    columns = Columns(100)
    count = fill_columns(lane_of([(-50, 100), (60, 2), (70, 500)]), 0, 100, columns, label_px=20)
    assert columns.site_event[:count].tolist() == [0, 2]
    assert columns.site_px[:count].tolist() == [[0, 50], [70, 100]]


def test_more_label_sites_than_there_is_room_for_are_left_without():
    lane = lane_of([(2 * index, 2) for index in range(MAX_LABEL_SITES + 10)])
    columns = Columns(2 * (MAX_LABEL_SITES + 10))
    assert fill_columns(lane, 0, columns.width, columns, label_px=1) == MAX_LABEL_SITES


def test_painting_keeps_the_background_and_lightens_by_cover():
    image = np.full((4, 4), BACKGROUND, dtype=np.uint32)
    columns = columns_of(lane_of([(0, 1), (15, 5), (20, 10)]), 0, 40, width=4)
    paint_columns(image, 1, 3, columns, PALETTE, BACKGROUND)
    assert np.all(image[[0, 3]] == BACKGROUND)
    assert np.array_equal(image[1], image[2])
    tinted, half, full, empty = ((int(pixel) & 0xFF) for pixel in image[1])
    assert empty == 0x10
    assert 0x10 < tinted < half < full
    assert full >= 0xEE


def test_painting_is_clipped_to_the_image():
    image = np.full((2, WIDTH), BACKGROUND, dtype=np.uint32)
    paint_columns(image, -5, 50, columns_of(lane_of([(0, 40)]), 0, 40), PALETTE, BACKGROUND)
    assert np.all(image != BACKGROUND)
