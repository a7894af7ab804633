import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.operators import operator_statistics
from engine.trace import TimeRange
from tests.support.opened import opened_trace
from tests.support.trace_rows import Row, trace_from_rows
from tests.support.trace_text import trace_from_text

US = 1_000
CAPTURES = [f"910b-cnn-ddp2-text/level{level}/rank{rank}_ascend_pt" for level in (1, 2) for rank in (0, 1)] + [
    f"910b-qwen3-0.6b-pp2dp2/rank_{rank}_ascend_pt" for rank in (0, 2)
]


def test_operators_are_kernel_names_where_the_source_has_no_types():
    trace = trace_from_text("gpu 7 | AABBBB.AAA |")
    assert [
        (item.name, item.type, item.core_type, item.count, item.total_ns) for item in operator_statistics(trace)
    ] == [
        ("A", "A", "", 2, 5 * US),
        ("B", "B", "", 1, 4 * US),
    ]


def test_one_type_on_two_cores_is_two_operators():
    trace = trace_from_rows(
        [
            Row("npu 2", 0, 3, "aclnnMm_1", "AI_CORE", operator_type="MatMul", core_type="AI_CORE"),
            Row("npu 2", 3, 5, "aclnnMm_2", "AI_CORE", operator_type="MatMul", core_type="AI_CORE"),
            Row("npu 2", 5, 6, "aclnnMm_2", "AI_CORE", operator_type="MatMul", core_type="AI_CORE"),
            Row("npu 2", 6, 10, "aclnnMm_3", "MIX_AIC", operator_type="MatMul", core_type="MIX_AIC"),
        ]
    )
    first, second = operator_statistics(trace)
    assert (first.name, first.type, first.core_type, first.count) == ("aclnnMm_2", "MatMul", "AI_CORE", 3)
    assert (first.total_ns, first.min_ns, first.max_ns) == (6 * US, 1 * US, 3 * US)
    assert first.share_ratio == pytest.approx(0.6)
    assert second.core_type == "MIX_AIC"


def test_communication_copies_and_waits_are_not_operators():
    trace = trace_from_rows(
        [
            Row("npu 2", 0, 3, "MatmulAllReduce", "MIX_AIC", operator_type="MatmulAllReduce"),
            Row("npu 2", 3, 4, "MEMCPY_ASYNC", "SDMA_SQE"),
            Row("npu 2", 4, 6, "EVENT_WAIT", "EVENT_WAIT_SQE"),
            Row("comm 0", 4, 6, "hcom_allReduce__1_0_1"),
        ]
    )
    assert operator_statistics(trace) == ()


def test_a_window_counts_the_part_of_each_task_inside():
    trace = trace_from_text("gpu 7 | AAAABBBB..CC |")
    inside = operator_statistics(trace, TimeRange(3 * US, 6 * US))
    assert [(item.name, item.count, item.total_ns) for item in inside] == [("B", 1, 2 * US), ("A", 1, 1 * US)]


@given(
    st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=30),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_shares_add_up_to_the_whole(tasks, low, high):
    trace = trace_from_rows([Row("gpu 7", start, start + length, name) for name, start, length in tasks])
    for window in (None, TimeRange(min(low, high) * US, max(low, high) * US)):
        statistics = operator_statistics(trace, window)
        total_ns = sum(item.total_ns for item in statistics)
        assert sum(item.share_ratio for item in statistics) == pytest.approx(1 if total_ns else 0)
        assert all(item.min_ns * item.count <= item.total_ns <= item.max_ns * item.count for item in statistics)
    assert sum(item.count for item in operator_statistics(trace)) == len(tasks)


@pytest.mark.parametrize("name", CAPTURES)
def test_counts_and_totals_equal_op_statistic(name, captures):
    directory = captures / "ascend" / name
    ours = {(item.type, item.core_type): item for item in operator_statistics(opened_trace(directory))}
    with (directory / "ASCEND_PROFILER_OUTPUT" / "op_statistic.csv").open(newline="") as file:
        theirs = list(csv.DictReader(file))
    assert {(row["OP Type"], row["Core Type"]): int(row["Count"]) for row in theirs} == {
        key: item.count for key, item in ours.items()
    }
    for row in theirs:
        item = ours[row["OP Type"], row["Core Type"]]
        assert item.total_ns / US == pytest.approx(float(row["Total Time(us)"]), abs=0.1)
        assert item.min_ns / US == pytest.approx(float(row["Min Time(us)"]), abs=0.01)
        assert item.max_ns / US == pytest.approx(float(row["Max Time(us)"]), abs=0.01)
        assert item.share_ratio * 100 == pytest.approx(float(row["Ratio(%)"]), abs=0.002)
