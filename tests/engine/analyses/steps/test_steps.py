import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.steps import Step, steps
from engine.analyses.steps.profiler_steps import host_steps
from engine.analyses.steps.recorded_steps import recorded_steps
from engine.trace import TimeRange, Trace
from tests.support.opened import opened_job, opened_trace
from tests.support.trace_rows import Row, step_table, trace_from_rows

US = 1_000
VALUES = (
    "computing",
    "communication",
    "communication_not_overlapped",
    "overlapped",
    "free",
    "stage",
    "bubble",
    "preparing",
)
CNN = [f"910b-cnn-ddp2-text/level{level}/rank{rank}_ascend_pt" for level in (0, 1, 2) for rank in (0, 1)]
QWEN = "910b-qwen3-0.6b-pp2dp2/rank_{}_ascend_pt"


def in_us(step: Step) -> dict[str, float | None]:
    values = {name: getattr(step, f"{name}_ns") for name in VALUES}
    return {name: None if value is None else value / US for name, value in values.items()}


def only_step(trace: Trace) -> Step:
    (step,) = steps(trace)
    return step


def two_steps() -> list[Row]:
    """Two steps on the host; a kernel of the second starts before the first one's profiler step ends."""
    return [
        Row("host 1", 0, 50, "ProfilerStep#7", "cpu_op"),
        Row("host 1", 50, 100, "ProfilerStep#8", "cpu_op"),
        Row("cann 1", 2, 3, "Node@launch", correlation=1),
        Row("cann 1", 4, 5, "Node@launch", correlation=2),
        Row("cann 1", 60, 61, "Node@launch", correlation=3),
        Row("npu 2", 10, 20, "Mm", "AI_CORE", correlation=1),
        Row("comm 0", 15, 40, "hcom_allReduce__1_0_1", correlation=2),
        Row("npu 2", 70, 90, "Mm", "AI_CORE", correlation=3),
    ]


def test_sections_count_whole_in_the_step_in_which_they_start():
    first, second = steps(trace_from_rows(two_steps()))
    assert (first.step, second.step) == (7, 8)
    assert in_us(first) == {
        "computing": 10,
        "communication": 25,
        "communication_not_overlapped": 20,
        "overlapped": 5,
        "free": 30,  # 40–70 starts before the host ends step 7
        "stage": 60,
        "bubble": 0,
        "preparing": 10,
    }
    assert (second.computing_ns, second.free_ns, second.preparing_ns) == (20 * US, 0, 20 * US)


def test_a_section_in_two_steps_counts_in_the_earlier_one():
    rows = [
        Row("npu 2", 0, 10, "Mm", "AI_CORE", step=7),
        Row("npu 3", 20, 60, "Mm", "AI_CORE", step=7),
        Row("npu 2", 15, 18, "Mm", "AI_CORE", step=8),
        Row("npu 2", 70, 75, "Mm", "AI_CORE", step=8),
        Row("npu 2", 80, 85, "Mm", "AI_CORE", step=9),
    ]
    assert [(step.step, step.computing_ns) for step in steps(trace_from_rows(rows))] == [
        (7, 53 * US),
        (8, 5 * US),
        (9, 5 * US),
    ]


def test_receives_from_another_stage_are_the_bubble():
    rows = [Row("npu 2", 0, 10, "Mm", "AI_CORE"), Row("comm 0", 10, 40, "hcom_receive__5_0_1")]
    step = only_step(trace_from_rows(rows))
    assert (step.bubble_ns, step.stage_ns) == (30 * US, 10 * US)


def test_a_free_section_before_the_first_kernel_counts_where_the_profiler_saw_one():
    rows = [Row("npu 2", 5, 10, "Mm", "AI_CORE"), Row("npu 2", 0, 2, "MEMCPY_ASYNC", "SDMA_SQE")]
    assert only_step(trace_from_rows(rows)).free_ns == 0
    widened = only_step(trace_from_rows([*rows, Row("overlap 3", 0, 5, "Free")]))
    assert (widened.free_ns, widened.stage_ns) == (5 * US, 10 * US)


def test_a_capture_without_steps_is_one_step_counted_from_the_first_operator():
    rows = [Row("host 1", 0, 4, "aten::mm", "cpu_op"), Row("npu 2", 6, 10, "Mm", "AI_CORE")]
    step = only_step(trace_from_rows(rows))
    assert step.step is None
    assert (step.preparing_ns, step.stage_ns) == (6 * US, 4 * US)
    assert step.from_file == ()


def test_values_without_events_come_from_the_captures_table_and_say_so():
    table = step_table(Step=13, Preparing=206.25, Computing=99, Free=1)
    step = only_step(
        trace_from_rows([Row("npu 2", 0, 10, "Mm", "AI_CORE", step=13)], tables={"step_trace_time": table})
    )
    assert step.step == 13
    assert step.preparing_ns == 206_250
    assert step.computing_ns == 10 * US
    assert step.from_file == ("preparing_us",)


def test_collectives_alone_say_nothing_about_computing():
    table = step_table(Step=13, Computing=231.5, Free=7)
    trace = trace_from_rows([Row("comm 0", 0, 10, "hcom_allReduce__1_0_1")], tables={"step_trace_time": table})
    step = only_step(trace)
    assert (step.communication_ns, step.computing_ns, step.overlapped_ns) == (10 * US, 231_500, None)
    assert step.from_file == ("computing_us", "free_us")


def test_a_table_alone_still_gives_its_steps():
    step = only_step(trace_from_rows([], tables={"step_trace_time": step_table(Step=4, Computing=5)}))
    assert (step.step, step.computing_ns, step.communication_ns) == (4, 5 * US, None)


def test_a_blank_or_broken_cell_is_absent():
    trace = trace_from_rows([], tables={"step_trace_time": step_table(Step=math.nan, Computing=math.inf, Free=2)})
    assert recorded_steps(trace) == {None: {"free": 2 * US}}


def test_a_recorded_time_below_zero_or_beyond_int64_is_absent():
    table = step_table(Step=1, Computing=-1, Stage=1e307, Bubble=1e16, Free=2)
    assert recorded_steps(trace_from_rows([], tables={"step_trace_time": table})) == {1: {"free": 2 * US}}


def test_a_host_only_trace_has_steps_without_device_values():
    step = only_step(trace_from_rows([Row("host 1", 0, 50, "ProfilerStep#7", "user_annotation")], format_id="kineto"))
    assert step == Step(7, TimeRange(0, 50 * US), *[None] * 8)


def kineto_rows() -> list[Row]:
    """The device runs a step behind the host."""
    return [
        Row("host 1", 0, 50, "ProfilerStep#1", "user_annotation"),
        Row("host 1", 50, 100, "ProfilerStep#2", "user_annotation"),
        Row("annotation 7", 5, 60, "ProfilerStep#1", "gpu_user_annotation"),
        Row("host 1", 3, 4, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        Row("host 1", 40, 41, "cudaLaunchKernel", "cuda_runtime", correlation=2),
        Row("host 1", 55, 56, "cudaGraphLaunch", "cuda_runtime", correlation=3),
        Row("gpu 7", 5, 25, "gemm", "kernel", correlation=1),
        Row("gpu 7", 60, 70, "gemm", "kernel", correlation=2),
        Row("gpu 9", 65, 85, "ncclDevKernel_AllReduce", "kernel", correlation=3),
        Row("gpu 7", 80, 90, "gemm", "kernel", correlation=3),
    ]


def test_kineto_work_belongs_to_the_step_that_launched_it():
    first, second = steps(trace_from_rows(kineto_rows(), format_id="kineto"))
    assert (first.range.start_ns, first.range.end_ns) == (5 * US, 70 * US)
    assert (first.computing_ns, first.communication_ns, first.free_ns) == (30 * US, 0, 35 * US)
    assert (second.computing_ns, second.communication_ns, second.free_ns) == (10 * US, 20 * US, 0)
    assert (second.communication_not_overlapped_ns, second.overlapped_ns) == (15 * US, 5 * US)
    assert (first.preparing_ns, second.preparing_ns) == (5 * US, 15 * US)
    assert first.stage_ns is None
    assert first.bubble_ns is None


def test_a_task_without_a_launch_follows_the_task_before_it_on_its_stream():
    rows = [
        *kineto_rows(),
        Row("gpu 7", 91, 95, "unlaunched", "kernel"),
        Row("gpu 11", 0, 99, "launched before the capture", "kernel"),
    ]
    _, second = steps(trace_from_rows(rows, format_id="kineto"))
    assert second.computing_ns == 14 * US


def test_tasks_without_any_launch_belong_to_the_step_that_runs():
    rows = [row for row in kineto_rows() if row.category != "cuda_runtime"]
    first, second = steps(trace_from_rows(rows, format_id="kineto"))
    assert (first.computing_ns, second.computing_ns) == (20 * US, 20 * US)


def test_a_step_that_launched_nothing_worked_for_no_time():
    rows = [*kineto_rows(), Row("host 1", 100, 120, "ProfilerStep#3", "user_annotation")]
    last = steps(trace_from_rows(rows, format_id="kineto"))[-1]
    assert (last.step, last.computing_ns, last.communication_ns, last.free_ns) == (3, 0, 0, None)
    assert last.range == TimeRange(100 * US, 120 * US)


def test_rows_of_one_step_on_several_threads_are_one_step():
    rows = [
        Row("host 1", 0, 50, "ProfilerStep#1", "user_annotation"),
        Row("host 2", 1, 52, "ProfilerStep#1", "cpu_op"),
        Row("host 1", 60, 90, "ProfilerStep#1", "user_annotation"),
    ]
    spans = [
        (step.number, step.range.start_ns // US, step.range.end_ns // US) for step in host_steps(trace_from_rows(rows))
    ]
    assert spans == [(1, 0, 52), (1, 60, 90)]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(1, 12)), min_size=1, max_size=20),
    st.booleans(),
)
def test_the_parts_of_a_step_without_a_bubble_fill_its_stage(tasks, as_kineto):
    rows = [
        Row("gpu 9" if talks else "gpu 7", start, start + length, "ncclKernel" if talks else "gemm", "kernel")
        for talks, start, length in tasks
    ]
    step = only_step(trace_from_rows(rows, format_id="kineto" if as_kineto else "ascend-text"))
    assert None not in (step.computing_ns, step.communication_not_overlapped_ns, step.free_ns, step.overlapped_ns)
    parts_ns = step.computing_ns + step.communication_not_overlapped_ns + step.free_ns
    assert parts_ns == step.range.duration_ns
    assert 0 <= step.overlapped_ns <= min(step.computing_ns, step.communication_ns)
    assert step.stage_ns in (None, step.range.duration_ns)


@pytest.mark.parametrize("name", CNN)
def test_every_column_of_the_cnn_captures_is_recomputed(name, captures):
    trace = opened_trace(captures / "ascend" / name)
    step = only_step(trace)
    recorded = recorded_steps(trace)[50]
    assert step.step == 50
    assert step.from_file == ()
    assert set(recorded) == set(VALUES)
    for value in VALUES:
        assert getattr(step, f"{value}_ns") == pytest.approx(recorded[value], abs=0.2 * US), value


@pytest.mark.parametrize("rank", [0, 2])
def test_the_qwen_ranks_with_kernels_lack_only_the_host(rank, captures):
    trace = opened_trace(captures / "ascend" / QWEN.format(rank))
    step = only_step(trace)
    assert step.from_file == ("preparing_us",)
    for value, recorded_ns in recorded_steps(trace)[13].items():
        assert getattr(step, f"{value}_ns") == pytest.approx(recorded_ns, abs=0.2 * US), value


@pytest.mark.parametrize("rank", [1, 3])
def test_the_qwen_ranks_with_collectives_only_take_the_rest_from_the_file(rank, captures):
    trace = opened_trace(captures / "ascend" / QWEN.format(rank))
    step = only_step(trace)
    recorded = recorded_steps(trace)[13]
    assert step.communication_ns == pytest.approx(recorded["communication"], abs=1 * US)
    assert set(step.from_file) == {f"{value}_us" for value in VALUES} - {"communication_us", "bubble_us"}
    assert step.computing_ns == recorded["computing"]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("df_index_resolver.json.gz", [2, 3, 4, 5, 6]),
        ("nccl_data.json.gz", [4, 5, 6]),
        ("resnet50-schema2021.json.gz", [5, 6, 7, 8, 9, 10]),
        ("ns-resolution.json.gz", [101, 102, 103, 104, 105]),
        ("dlrm-v100-8ranks", [10]),
    ],
)
def test_kineto_steps_are_numbered_finite_and_fit_their_range(name, numbers, captures):
    for entry in opened_job(captures / "pytorch" / name).ranks:
        found = steps(entry.trace)
        assert [step.step for step in found] == numbers
        for step in found:
            values = [value for value in in_us(step).values() if value is not None]
            assert np.isfinite(values).all()
            assert step.computing_ns is not None
            assert step.communication_not_overlapped_ns is not None
            assert step.free_ns is not None
            parts_ns = step.computing_ns + step.communication_not_overlapped_ns + step.free_ns
            assert parts_ns == step.range.duration_ns
