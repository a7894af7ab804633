from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.memory import MemoryAnalysis, main_curve, memory_analysis
from engine.analyses.memory.memory_blocks import BEFORE_CAPTURE, UNNAMED_OPERATOR
from engine.analyses.steps import Step
from engine.core.registry import Registry
from engine.core.units import MIB
from engine.formats.ascend.reader import AscendTextReader
from engine.formats.opening import open_job
from engine.trace.strings import StringTable
from engine.trace.tables import AllocationTable, MemoryCurve, MemoryLog
from engine.trace.trace import TimeRange, Trace
from tests.support.trace_text import US, trace_from_text

ALIVE = -1
OPERATORS = ("aten::empty", "aten::mm", "cann::Conv")


def curve(component: str, *samples: tuple[int, int, int], device: int = 0) -> MemoryCurve:
    """Samples are (µs, allocated, reserved)."""
    columns = np.array(samples, dtype=np.int64).reshape(-1, 3)
    return MemoryCurve(component, device, columns[:, 0] * US, columns[:, 1], columns[:, 2], columns[:, 1])


def blocks(*rows: tuple[str, int, int, int], device: int = 0) -> AllocationTable:
    """Rows are (operator, bytes, µs of allocation, µs of the free or ALIVE); −1 as allocation is an unknown birth."""
    count = len(rows)
    absent32, absent64 = np.full(count, -1, dtype=np.int32), np.full(count, -1, dtype=np.int64)
    freed = np.array([row[3] * US if row[3] >= 0 else -1 for row in rows], dtype=np.int64)
    return AllocationTable(
        address=absent64,
        size_bytes=np.array([row[1] for row in rows], dtype=np.int64),
        requested_bytes=absent64,
        allocated_at_ns=np.array([row[2] * US if row[2] >= 0 else -1 for row in rows], dtype=np.int64),
        freed_at_ns=freed,
        released_at_ns=freed,
        operator=np.array([OPERATORS.index(row[0]) if row[0] else -1 for row in rows], dtype=np.int32),
        event=absent32,
        stream=absent64,
        device=np.full(count, device, dtype=np.int32),
    )


def trace_with(*curves: MemoryCurve, table: AllocationTable | None = None, capacity: int | None = None) -> Trace:
    trace = trace_from_text(f"npu 2 | {'C' * 100} |")
    return replace(
        trace,
        strings=StringTable.from_strings([*OPERATORS, *trace.strings]),
        events=replace(trace.events, name=trace.events.name + len(OPERATORS)),
        memory=MemoryLog(table if table is not None else blocks(), curves),
        metadata=replace(trace.metadata, device_memory_bytes=capacity),
    )


def steps_at(*ranges: tuple[int, int]) -> tuple[Step, ...]:
    return tuple(
        Step(number, TimeRange(start * US, end * US), *(None,) * 8) for number, (start, end) in enumerate(ranges, 1)
    )


def analysed(trace: Trace, *ranges: tuple[int, int]) -> MemoryAnalysis:
    analysis = memory_analysis(trace, steps_at(*ranges or ((0, 100),)))
    assert analysis is not None
    return analysis


def test_a_trace_without_memory_has_no_analysis():
    assert memory_analysis(trace_from_text("npu 2 | CC |"), ()) is None


def test_peaks_come_from_the_frameworks_allocator_and_the_process_stands_beside_it():
    trace = trace_with(
        curve("APP", (0, -1, 500), (40, -1, 450)),
        curve("PTA+GE", (0, 400, 400)),
        curve("PTA", (0, 100, 300), (20, 250, 300), (30, 200, 320)),
        capacity=1000,
    )
    analysis = analysed(trace)
    assert (analysis.component, analysis.device) == ("PTA", 0)
    assert (analysis.peak_allocated_bytes, analysis.peak_at_ns, analysis.peak_reserved_bytes) == (250, 20 * US, 320)
    assert (analysis.process_bytes, analysis.other_bytes) == (500, 180)
    assert analysis.headroom_bytes == 500
    assert analysis.fragmentation_ratio == pytest.approx(1 - 250 / 320)
    assert analysis.stranded_bytes is None


def test_headroom_is_unknown_without_the_capacity_of_the_device():
    assert analysed(trace_with(curve("PTA", (0, 1, 2)))).headroom_bytes is None


def test_a_host_curve_is_taken_only_where_no_device_has_one():
    host = curve("PTA", (0, 900, 0), device=-1)
    assert main_curve(trace_with(host, curve("PTA", (0, 1, 2)))).device == 0
    analysis = analysed(trace_with(host, capacity=1000))
    assert (analysis.device, analysis.peak_allocated_bytes, analysis.headroom_bytes) == (-1, 900, None)
    assert analysis.fragmentation_ratio is None


def test_of_several_devices_the_one_with_the_highest_peak_counts():
    trace = trace_with(curve("PTA", (0, 10, 20)), curve("PTA", (0, 30, 40), device=1))
    assert analysed(trace).device == 1


def test_cells_the_source_left_empty_are_no_values():
    analysis = analysed(trace_with(MemoryCurve("PTA", 0, *(np.array([value]) for value in (0, 5, 8, -1)))))
    assert analysis.peak_active_bytes is None


def test_what_was_alive_at_the_peak_is_named_by_operator_and_the_rest_is_older_than_the_capture():
    table = blocks(
        ("aten::mm", 40, 5, ALIVE),
        ("aten::mm", 20, 10, 21),
        ("aten::empty", 30, 1, 20),
        ("aten::empty", 30, 21, 30),
        ("cann::Conv", 7, 1, ALIVE),
        ("", 1, 2, ALIVE),
    )
    analysis = analysed(trace_with(curve("PTA", (0, 50, 200), (20, 150, 200), (30, 90, 200)), table=table))
    assert [(item.operator, item.bytes, item.count) for item in analysis.alive_at_peak] == [
        (BEFORE_CAPTURE, 89, 0),
        ("aten::mm", 60, 2),
        (UNNAMED_OPERATOR, 1, 1),
    ]
    assert analysis.alive_at_peak[1].allocations == (0, 1)


def test_blocks_of_unknown_birth_count_as_older_than_the_capture():
    analysis = analysed(trace_with(curve("PTA", (0, 50, 200), (20, 150, 200)), table=blocks(("aten::mm", 40, -1, 60))))
    assert [(item.operator, item.bytes, item.count) for item in analysis.alive_at_peak] == [(BEFORE_CAPTURE, 150, 1)]


def test_totals_without_blocks_do_not_make_everything_older_than_the_capture():
    assert analysed(trace_with(curve("PTA", (0, 50, 200)))).alive_at_peak == ()


def test_leaks_are_blocks_of_steps_that_a_further_step_follows():
    table = blocks(
        ("aten::mm", 8, 12, ALIVE),
        ("aten::mm", 8, 32, ALIVE),
        ("aten::mm", 8, 52, ALIVE),
        ("aten::empty", 4, 13, 70),
        ("aten::empty", 4, 5, ALIVE),
    )
    analysis = analysed(trace_with(curve("PTA", (0, 1, 1)), table=table), (10, 30), (30, 50), (50, 70))
    assert [(item.operator, item.bytes, item.count, item.step, item.step_count) for item in analysis.leaks] == [
        ("aten::mm", 16, 2, 1, 2)
    ]
    assert analysis.leaks[0].first_allocated_at_ns == 12 * US
    assert (analysis.unfreed_count, analysis.unfreed_bytes) == (4, 28)


def test_a_capture_of_one_step_has_no_leaks_to_show():
    table = blocks(("aten::mm", 8, 12, ALIVE))
    assert analysed(trace_with(curve("PTA", (0, 1, 1)), table=table), (0, 50)).leaks == ()


def test_a_step_begins_with_the_level_it_found():
    trace = trace_with(curve("PTA", (0, 70, 100), (25, 30, 100), (45, 40, 120)), capacity=200)
    analysis = analysed(trace, (10, 20), (20, 30), (30, 50))
    assert [item.peak_allocated_bytes for item in analysis.steps] == [70, 70, 40]
    assert [item.peak_reserved_bytes for item in analysis.steps] == [100, 100, 120]
    assert [item.headroom_bytes for item in analysis.steps] == [100, 100, 80]
    assert analysis.reserved_slope_bytes_per_step == pytest.approx(10)


def test_one_step_has_no_slope():
    assert analysed(trace_with(curve("PTA", (0, 1, 2)))).reserved_slope_bytes_per_step is None


def test_lifetimes_are_counted_in_powers_of_two():
    table = blocks(("aten::mm", 8, 0, 1), ("aten::mm", 4, 1, 2), ("aten::mm", 2, 0, 5), ("aten::mm", 1, 0, ALIVE))
    bins = analysed(trace_with(curve("PTA", (0, 1, 1)), table=table)).lifetimes
    assert [(item.low_ns, item.high_ns, item.count, item.bytes) for item in bins] == [
        (512, 1024, 2, 12),
        (4096, 8192, 1, 2),
    ]


def test_blocks_without_recorded_totals_give_the_net_growth():
    table = blocks(("aten::mm", 40, 5, 20), ("aten::mm", 20, 10, ALIVE), ("aten::mm", 50, 20, ALIVE))
    analysis = analysed(trace_with(table=table))
    assert (analysis.component, analysis.peak_allocated_bytes, analysis.peak_reserved_bytes) == ("net change", 70, None)


@given(
    st.lists(
        st.tuples(st.sampled_from(OPERATORS[:2]), st.integers(1, 1000), st.integers(0, 50), st.integers(1, 40)),
        min_size=1,
        max_size=30,
    )
)
def test_blocks_alive_at_the_peak_add_up_to_it(rows):
    table = blocks(*((operator, size, start, start + lasting) for operator, size, start, lasting in rows))
    analysis = analysed(trace_with(table=table))
    moments = {start for _, _, start, _ in rows}
    alive = {
        moment: sum(size for _, size, start, lasting in rows if start <= moment < start + lasting) for moment in moments
    }
    assert analysis.peak_allocated_bytes == max(alive.values())
    assert BEFORE_CAPTURE not in {item.operator for item in analysis.alive_at_peak}
    assert sum(item.bytes for item in analysis.alive_at_peak) == analysis.peak_allocated_bytes
    assert sum(item.count for item in analysis.lifetimes) == len(rows)


def test_the_qwen3_job_holds_what_its_files_say(captures):
    job = open_job(
        [captures / "ascend/910b-qwen3-0.6b-pp2dp2/rank_0_ascend_pt"],
        Registry([AscendTextReader()], "cannscope.readers"),
    )
    trace = job.ranks[0].trace
    analysis = analysed(trace, (0, 10**6))
    assert analysis.component == "PTA"
    assert analysis.peak_allocated_bytes / MIB == pytest.approx(10282.75, abs=0.005)
    assert analysis.peak_reserved_bytes == 10372 * MIB
    assert analysis.process_bytes / MIB == pytest.approx(11925.015625)
    assert sum(item.bytes for item in analysis.alive_at_peak) == analysis.peak_allocated_bytes
    assert analysis.alive_at_peak[0].operator == BEFORE_CAPTURE
    assert analysis.leaks == ()
