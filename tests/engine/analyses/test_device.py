import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.device import DeviceTotals, device_totals
from engine.core.units import us_text_to_ns
from engine.trace import TimeRange
from tests.support.captures import expected_directory
from tests.support.opened import opened_job
from tests.support.trace_rows import Row, trace_from_rows
from tests.support.trace_text import trace_from_text

US = 1_000
COLUMNS = {
    "span_ns": "span_us",
    "busy_ns": "busy_us",
    "idle_ns": "idle_us",
    "compute_ns": "compute_union_us",
    "communication_ns": "comm_union_us",
    "memory_ns": "mem_union_us",
    "overlap_ns": "comm_comp_overlap_us",
    "exposed_communication_ns": "exposed_comm_us",
}


def reference_rows() -> list[dict[str, str]]:
    directory = expected_directory()
    if directory is None:
        return []
    with (directory / "pytorch-device-unions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def totals_of(picture: str, window: TimeRange | None = None, **names: str) -> DeviceTotals:
    totals = device_totals(trace_from_text(picture, names=names), window)
    assert totals is not None
    return totals


def test_unions_and_overlap_of_a_picture():
    totals = totals_of(
        """gpu 7  | ..AAAA..BBB.... |
           gpu 13 | ....NNNNN...... |
           gpu 14 | ............MM. |""",
        N="ncclDevKernel_AllReduce",
        M="MEMCPY_ASYNC",
    )
    assert totals.span_ns == 12 * US
    assert totals.busy_ns == 11 * US
    assert totals.idle_ns == 1 * US
    assert totals.compute_ns == 9 * US
    assert totals.communication_ns == 5 * US
    assert totals.overlap_ns == 3 * US
    assert totals.exposed_communication_ns == 2 * US
    assert totals.overlap_ratio == pytest.approx(0.6)


def test_a_trace_without_communication_has_no_overlap_ratio():
    """B3.2: 0/0 must be absent, never NaN."""
    assert totals_of("gpu 7 | AA.BB |").overlap_ratio is None


def test_a_trace_without_device_work_has_no_totals():
    assert device_totals(trace_from_text("host 1 | AA.BB |")) is None


def test_collectives_without_device_streams_say_nothing_of_the_device():
    assert device_totals(trace_from_rows([Row("comm 0", 0, 5, "hcom_send__1_0_1")])) is None


def test_shares_of_a_range_selection_never_exceed_the_range():
    """B3.8: adding Communication and Communication(Not Overlapped) gives more than 100 %."""
    totals = totals_of(
        """npu 2  | AAAAAAAAAA |
           comm 0 | .HHHHHHHH. |""",
        TimeRange(2 * US, 6 * US),
        H="hcom_allReduce__1_0_1",
    )
    assert totals.span_ns == totals.busy_ns == totals.compute_ns == totals.communication_ns == 4 * US
    assert totals.exposed_communication_ns == 0


def test_an_empty_window_of_a_busy_trace_is_all_idle():
    totals = totals_of("gpu 7 | AA......BB |", TimeRange(3 * US, 7 * US))
    assert (totals.span_ns, totals.idle_ns, totals.busy_ns) == (4 * US, 4 * US, 0)


@pytest.mark.parametrize("row", reference_rows(), ids=lambda row: f"{Path(row['file']).name}-{row['rank']}")
def test_totals_equal_the_reference_to_the_nanosecond(row, captures):
    job = opened_job(captures.parent / row["file"])
    entry = job.rank_trace(int(row["rank"])) if len(job.ranks) > 1 else job.ranks[0]
    totals = device_totals(entry.trace)
    assert {name: getattr(totals, name) for name in COLUMNS} == {
        name: us_text_to_ns(row[column]) for name, column in COLUMNS.items()
    }
    if row["overlap_ratio"]:
        assert totals.overlap_ratio == pytest.approx(float(row["overlap_ratio"]), abs=1e-6)
    else:
        assert totals.overlap_ratio is None


TASKS = st.lists(
    st.tuples(
        st.sampled_from(["kernel", "ncclKernel", "MEMCPY_ASYNC", "EVENT_WAIT"]), st.integers(0, 60), st.integers(0, 15)
    ),
    min_size=1,
    max_size=25,
)


@given(TASKS, st.integers(0, 70), st.integers(0, 70))
def test_parts_fit_into_their_wholes(tasks, low, high):
    trace = trace_from_rows(
        [Row(f"gpu {index % 3}", start, start + length, name) for index, (name, start, length) in enumerate(tasks)]
    )
    low, high = min(low, high) * US, max(low, high) * US
    for totals in filter(None, (device_totals(trace), device_totals(trace, TimeRange(low, high)))):
        assert totals.busy_ns + totals.idle_ns == totals.span_ns
        assert totals.idle_ns >= 0
        assert totals.overlap_ns + totals.exposed_communication_ns == totals.communication_ns
        assert totals.overlap_ns <= min(totals.compute_ns, totals.communication_ns)
        assert totals.compute_ns + totals.communication_ns - totals.overlap_ns <= totals.busy_ns
        assert totals.busy_ns <= totals.compute_ns + totals.communication_ns + totals.memory_ns


def test_windows_that_tile_a_trace_add_up_to_the_whole():
    generator = np.random.default_rng(1)
    starts = generator.integers(0, 900, 200)
    rows = [Row(f"gpu {index % 4}", start, start + 5, "k") for index, start in enumerate(starts.tolist())]
    trace = trace_from_rows(rows)
    whole = device_totals(trace)
    parts = [device_totals(trace, TimeRange(edge * US, (edge + 100) * US)) for edge in range(0, 1000, 100)]
    assert whole is not None
    assert sum(part.busy_ns for part in parts if part) == whole.busy_ns
