import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler_gui.toolkit.time_axis import TimeScale, TimeUnit, ticks, time_text

HOUR_NS = 3_600_000_000_000


@pytest.mark.parametrize(
    "scale",
    [
        TimeScale(0, 1000, 1000.0),
        TimeScale(0, 24 * HOUR_NS, 1920.0),
        TimeScale(24 * HOUR_NS, 24 * HOUR_NS + 1, 1920.0),
        TimeScale(-500, 500, 777.0),
    ],
)
def test_positions_and_times_round_trip_at_both_ends_and_in_the_middle(scale):
    assert scale.x_px(scale.start_ns) == 0
    assert scale.x_px(scale.end_ns) == pytest.approx(scale.width_px)
    for x_px in (0.0, scale.width_px / 2, scale.width_px):
        assert abs(scale.x_px(scale.time_ns(x_px)) - x_px) <= max(1.0, 0.5 / scale.ns_per_px)


@given(st.integers(0, 1 << 60), st.integers(1, 1 << 50), st.floats(0, 1))
def test_many_times_are_placed_like_one(start_ns, width_ns, share):
    scale = TimeScale(start_ns, start_ns + width_ns, 1000.0)
    time_ns = start_ns + int(width_ns * share)
    assert scale.xs_px(np.array([time_ns]))[0] == pytest.approx(scale.x_px(time_ns), abs=1e-6)


@given(st.integers(-(1 << 50), 1 << 50), st.integers(1, 1 << 50), st.integers(100, 4000))
def test_ticks_are_round_inside_and_far_enough_apart(start_ns, width_ns, width_px):
    scale = TimeScale(start_ns, start_ns + width_ns, float(width_px))
    found = ticks(scale, 80.0)
    assert str(found.step_ns).rstrip("0") in ("1", "2", "5")
    assert found.step_ns >= scale.ns_per_px * 80.0
    assert all(time % found.step_ns == 0 and start_ns <= time < start_ns + width_ns for time in found.times_ns)
    assert len(found.times_ns) <= width_px / 80 + 1


@pytest.mark.parametrize(
    ("time_ns", "unit", "resolution_ns", "text"),
    [
        (0, TimeUnit.AUTO, 1, "0 ns"),
        (999, TimeUnit.AUTO, 1, "999 ns"),
        (1_500, TimeUnit.AUTO, 1, "1.500 µs"),
        (1_234_567, TimeUnit.AUTO, 1_000, "1.235 ms"),
        (810_000_000, TimeUnit.AUTO, 1_000_000, "810 ms"),
        (12_345_678_901, TimeUnit.AUTO, 1, "12.345678901 s"),
        (-1_500, TimeUnit.AUTO, 1, "−1.500 µs"),
        (1_234_567, TimeUnit.NS, 1, "1,234,567 ns"),
        (1_234_567, TimeUnit.US, 1, "1,234.567 µs"),
        (500, TimeUnit.MS, 1, "0.000500 ms"),
        (0, TimeUnit.AUTO, 2_000_000, "0 ms"),
    ],
)
def test_times_read_with_the_digits_the_resolution_calls_for(time_ns, unit, resolution_ns, text):
    assert time_text(time_ns, unit, resolution_ns=resolution_ns) == text


def test_wall_clock_needs_the_epoch_and_is_exact():
    epoch_ns = 1_736_412_474_714_258_990
    assert time_text(11, TimeUnit.WALL_CLOCK, epoch_ns=epoch_ns) == "08:47:54.714259001"
    assert time_text(11, TimeUnit.WALL_CLOCK, epoch_ns=epoch_ns, resolution_ns=1_000_000) == "08:47:54.714"
    assert time_text(11, TimeUnit.WALL_CLOCK) == "11 ns"


@given(st.integers(-(1 << 60), 1 << 60))
def test_full_resolution_loses_no_nanosecond(time_ns):
    text = time_text(time_ns, TimeUnit.MS).removesuffix(" ms").replace(",", "").replace("−", "-")
    whole, _, fraction = text.partition(".")
    assert int(whole + fraction) == time_ns
