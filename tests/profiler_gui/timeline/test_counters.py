import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler_gui.timeline.counters import CHUNK, Counter, column_extremes, make_steps, paint_counter

BACKGROUND = 0xFF000000
COLORS = {"": 0xFFFFFFFF}
samples = st.lists(st.tuples(st.integers(0, 400), st.integers(-5, 50)), max_size=400)


def brute_force(times: list[int], values: list[float], start_ns: int, end_ns: int, width: int):
    low, high = np.full(width, np.nan), np.full(width, np.nan)
    span_ns = (end_ns - start_ns) // width
    for column in range(width):
        left, right = start_ns + column * span_ns, start_ns + (column + 1) * span_ns
        inside = [value for time, value in zip(times, values, strict=True) if left <= time < right]
        before = [value for time, value in zip(times, values, strict=True) if time < left]
        shown = inside if left in times else before[-1:] + inside
        if shown:
            low[column], high[column] = min(shown), max(shown)
    return low, high


@given(samples, st.integers(-50, 400), st.sampled_from([8, 16, 64, 512]))
def test_columns_hold_the_extremes_of_their_samples(pairs, start_ns, span_ns):
    pairs = sorted(dict(pairs).items())
    times, values = [time for time, _ in pairs], [float(value) for _, value in pairs]
    steps = make_steps(np.array(times, dtype=np.int64), np.array(values, dtype=np.float64))
    # The width divides the span, so that the borders of columns are exact.
    low, high = column_extremes(steps, start_ns, start_ns + span_ns, 8)
    expected_low, expected_high = brute_force(times, values, start_ns, start_ns + span_ns, 8)
    np.testing.assert_array_equal(low, expected_low)
    np.testing.assert_array_equal(high, expected_high)


def test_one_spike_among_a_million_samples_is_seen():
    value = np.ones(1_000_000)
    value[777_777] = 100.0
    steps = make_steps(np.arange(1_000_000), value)
    _, high = column_extremes(steps, 0, 1_000_000, 50)
    assert high.tolist() == [1.0] * 38 + [100.0] + [1.0] * 11


def test_a_value_holds_until_the_next_sample_and_is_unknown_before_the_first():
    steps = make_steps(np.array([10, 30]), np.array([5.0, 7.0]))
    assert [steps.value_at(time) for time in (9, 10, 29, 30, 99)] == [None, 5.0, 5.0, 7.0, 7.0]
    low, _ = column_extremes(steps, 0, 40, 4)
    assert np.isnan(low[0])
    assert low[1:].tolist() == [5.0, 5.0, 7.0]


def test_samples_are_put_in_order_and_missing_ones_left_out():
    steps = make_steps(np.array([30, 10, 20]), np.array([3.0, 1.0, np.nan]))
    assert steps.time_ns.tolist() == [10, 30]
    assert steps.value.tolist() == [1.0, 3.0]


def test_chunks_hold_the_extremes_of_their_samples():
    value = np.arange(3 * CHUNK + 5, dtype=np.float64)
    steps = make_steps(np.arange(len(value)), value)
    assert steps.chunk_low.tolist() == [0, CHUNK, 2 * CHUNK, 3 * CHUNK]
    assert steps.chunk_high.tolist() == [CHUNK - 1, 2 * CHUNK - 1, 3 * CHUNK - 1, 3 * CHUNK + 4]


@pytest.mark.parametrize(("value", "rows"), [(0.0, 0), (5.0, 10), (10.0, 20)])
def test_the_area_is_as_high_as_the_value(value, rows):
    image = np.full((20, 4), BACKGROUND, dtype=np.uint32)
    counter = Counter("c", "", (("c", make_steps(np.array([0]), np.array([value]))),), high=10.0, low=0.0)
    paint_counter(image, 0, 20, counter, 0, 100, COLORS, BACKGROUND)
    assert np.count_nonzero(image[:, 2] != BACKGROUND) == rows


def test_what_varies_inside_a_column_is_lighter_than_what_is_sure():
    image = np.full((20, 1), BACKGROUND, dtype=np.uint32)
    steps = make_steps(np.array([0, 50]), np.array([10.0, 5.0]))
    paint_counter(image, 0, 20, Counter("c", "", (("c", steps),), 10.0, 0.0), 0, 100, COLORS, BACKGROUND)
    assert np.all(image[10:, 0] == 0xFFFFFFFF)
    assert np.all((image[:10, 0] != 0xFFFFFFFF) & (image[:10, 0] != BACKGROUND))


def test_a_counter_half_out_of_the_image_is_clipped():
    image = np.full((10, 4), BACKGROUND, dtype=np.uint32)
    counter = Counter("c", "", (("c", make_steps(np.array([0]), np.array([10.0]))),), high=10.0, low=0.0)
    paint_counter(image, -10, 5, counter, 0, 100, COLORS, BACKGROUND)
    assert np.all(image[:5] != BACKGROUND)
    assert np.all(image[5:] == BACKGROUND)
