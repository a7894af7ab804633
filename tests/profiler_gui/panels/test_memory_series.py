import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.units import MIB
from profiler_gui.panels.memory.axes import level_step_bytes
from profiler_gui.panels.memory.histograms import lifetime_row, size_row
from profiler_gui.panels.memory.series import MemorySeries, memory_series, stepped, value_at
from profiler_gui.panels.memory.step_columns import step_legend, step_row
from profiler_gui.panels.memory.words import (
    fragmentation_text,
    growth_text,
    leak_text,
    mib_text,
    missing_text,
    provenance_of,
    summary_text,
)
from tests.support.panes import captured


@pytest.fixture(scope="module")
def df(captures):
    return captured(captures / "pytorch" / "df_index_resolver.json.gz")


def memory_of(document, rank):
    return document.job.rank_trace(rank).trace, document.summary.rank(rank).memory


def array(values):
    return np.array(values, dtype=np.int64)


def test_few_samples_are_drawn_as_exact_steps():
    x, y = stepped(array([10, 20, 30]), array([1, 5, 2]), 0, 40, 100)
    assert x.tolist() == [10, 20, 20, 30, 30, 30]
    assert y.tolist() == [1, 1, 5, 5, 2, 2]


def test_a_view_begins_with_the_level_of_the_sample_before_it():
    x, y = stepped(array([10, 20, 30]), array([1, 5, 2]), 15, 25, 100)
    assert x.tolist() == [0, 5, 5, 10]
    assert y.tolist() == [1, 1, 5, 5]


def test_nothing_is_drawn_before_the_first_sample_or_after_the_last():
    x, y = stepped(array([10, 20]), array([1, 5]), 0, 5, 100)
    assert len(x) == len(y) == 0
    x, _ = stepped(array([10, 20]), array([1, 5]), 0, 1000, 100)
    assert (x.min(), x.max()) == (10, 20)


def test_no_samples_draw_nothing():
    x, y = stepped(array([]), array([]), 0, 10, 100)
    assert len(x) == len(y) == 0


@given(
    gaps=st.lists(st.integers(0, 50), min_size=1, max_size=400),
    seed=st.integers(0, 2**32 - 1),
    view=st.tuples(st.integers(-100, 5000), st.integers(1, 20000)),
    columns=st.integers(1, 40),
)
def test_no_spike_and_no_dip_in_view_is_ever_lost(gaps, seed, view, columns):
    time_ns = np.cumsum(array(gaps))
    values = np.random.default_rng(seed).integers(0, 10**12, len(time_ns))
    start_ns, end_ns = view[0], view[0] + view[1]
    x, y = stepped(time_ns, values, start_ns, end_ns, columns)
    inside = values[(time_ns >= start_ns) & (time_ns < end_ns)]
    if len(inside):
        assert y.max() >= inside.max()
        assert y.min() <= inside.min()
    if len(x):
        assert np.all(np.diff(x) >= 0)
        assert x[0] >= 0
        assert x[-1] <= end_ns - start_ns
        assert len(x) <= 4 * columns + 5
        before = np.flatnonzero(time_ns < end_ns)[-1]
        assert y[-1] == values[before]


def test_qwen3_holds_10282_mib_of_10372(qwen3):
    trace, memory = memory_of(qwen3, 0)
    assert "at most 10,282.75 MiB allocated of 10,372 MiB reserved, at 317.402 ms" in summary_text(memory)
    assert fragmentation_text(memory) == "External fragmentation at the peaks: 0.9 %"
    assert provenance_of(trace, memory).badge == "RECORDED (csv, no addresses)"
    assert growth_text(memory) == ""


def test_lines_of_the_analysed_allocator_come_first_and_reach_its_peaks(qwen3):
    trace, memory = memory_of(qwen3, 0)
    series = memory_series(trace, memory)
    by_title = {item.title: item for item in series}
    assert [item.title for item in series[:4]] == ["allocated", "active", "reserved", "process (driver)"]
    assert by_title["allocated"].value_bytes.max() == memory.peak_allocated_bytes
    assert by_title["reserved"].value_bytes.max() == memory.peak_reserved_bytes
    assert by_title["process (driver)"].value_bytes.max() == memory.process_bytes
    assert not by_title["PTA+GE allocated"].is_main
    assert value_at(by_title["allocated"], memory.peak_at_ns) == memory.peak_allocated_bytes


def test_memory_events_are_measured_with_addresses(df):
    trace, memory = memory_of(df, 1)
    assert provenance_of(trace, memory).badge == "MEASURED (with addresses)"
    assert "free at the reserved peak" in summary_text(memory)
    assert growth_text(memory)
    titles = [item.title for item in memory_series(trace, memory)]
    assert "allocated, host" in titles


def test_a_rank_without_memory_is_told_the_switch():
    assert missing_text(3) == (
        "The capture of rank 3 records no memory: profile with profile_memory=True to see it here."
    )


def test_leaks_of_a_single_step_are_not_claimed(qwen3, df):
    _, memory = memory_of(qwen3, 0)
    assert "fewer than two" in leak_text(memory)
    _, memory = memory_of(df, 1)
    assert leak_text(memory).startswith("No block of a step was left behind")


def test_sizes_read_as_profilers_write_them():
    assert mib_text(10_782_243_840) == "10,282.75 MiB"
    assert mib_text(3 * MIB) == "3 MiB"


def test_histograms_count_every_block_and_leave_no_power_out():
    sizes = array([512, 600, 1024, 8192])
    row = size_row(sizes, by_bytes=False)
    assert [bar.title for bar in row.bars] == ["512 B", "1 KiB", "2 KiB", "4 KiB", "8 KiB"]
    assert [bar.total for bar in row.bars] == [2, 1, 0, 0, 1]
    assert sum(bar.total for bar in size_row(sizes, by_bytes=True).bars) == sizes.sum()
    assert size_row(array([]), by_bytes=False).bars == ()
    assert lifetime_row((), by_bytes=False).bars == ()


def test_lifetimes_of_a_real_capture_are_all_there(qwen3):
    _, memory = memory_of(qwen3, 0)
    row = lifetime_row(memory.lifetimes, by_bytes=False)
    assert sum(bar.total for bar in row.bars) == sum(item.count for item in memory.lifetimes)


@given(st.floats(1, 1e15))
def test_marks_of_the_axis_are_few_and_powers_of_two(range_bytes):
    step = level_step_bytes(range_bytes)
    assert range_bytes / step <= 7
    assert step.bit_count() == 1
    assert step == 1 or range_bytes / step > 3.4


def test_a_level_is_only_known_between_the_first_and_the_last_sample():
    series = MemorySeries("x", "x", "allocated", True, array([10, 20]), array([1, 5]))
    assert [value_at(series, moment) for moment in (9, 10, 19, 20, 21)] == [None, 1, 1, 5, None]


def test_columns_of_steps_hold_allocated_cache_and_headroom(df, qwen3):
    _, memory = memory_of(df, 1)
    row = step_row(memory.steps)
    assert [bar.title for bar in row.bars] == ["step 2", "step 3", "step 4", "step 5", "step 6"]
    for bar, step in zip(row.bars, memory.steps, strict=True):
        assert bar.total == step.peak_reserved_bytes + step.headroom_bytes
    assert len(step_legend(row)) == 3
    _, memory = memory_of(qwen3, 0)
    assert [part.id for part in step_row(memory.steps).bars[0].parts] == ["allocated", "cached"]
