from dataclasses import replace

from engine.analyses.comparison import compare
from engine.trace import Job, Trace
from engine.trace.job import align
from tests.support.opened import opened_job
from tests.support.trace_rows import Row, trace_from_rows
from tests.support.trace_text import trace_from_text

US = 1_000
MS = 1_000_000


def job(*traces: Trace) -> Job:
    return align("job", list(traces))


def test_operators_are_compared_by_type_and_a_side_that_lacks_one_counts_nothing():
    result = compare(job(trace_from_text("gpu 7 | AAAABB |")), job(trace_from_text("gpu 7 | AABBC |")))
    assert [(item.name, item.baseline_ns, item.candidate_ns, item.delta_ns) for item in result.operators] == [
        ("A", 4 * US, 2 * US, -2 * US),
        ("C", 0, 1 * US, 1 * US),
        ("B", 2 * US, 2 * US, 0),
    ]
    assert [(item.baseline_count, item.candidate_count) for item in result.operators] == [(1, 1), (0, 1), (1, 1)]


def test_without_steps_the_device_spans_are_compared():
    result = compare(job(trace_from_text("gpu 7 | AA..AA |")), job(trace_from_text("gpu 7 | AAA |")))
    assert (result.baseline_step_ns, result.candidate_step_ns) == (6 * US, 3 * US)
    assert (result.speedup_ratio, result.step_time_delta_ns) == (2.0, -3 * US)
    assert result.steps == ()


def test_the_slowest_rank_that_both_have_is_compared():
    slow, quick = trace_from_text("gpu 7 | AAAAAAAA |", rank=1), trace_from_text("gpu 7 | AA |", rank=0)
    other = trace_from_text("gpu 7 | AAAAAAAAAAAAAA |", rank=7)
    better = trace_from_text("gpu 7 | AAAA |", rank=1)
    result = compare(job(quick, slow, other), job(quick, better))
    assert (result.rank, result.candidate_rank) == (1, 1)
    assert result.speedup_ratio == 2.0


def test_single_captures_are_compared_whatever_their_ranks():
    result = compare(job(trace_from_text("gpu 7 | AA |", rank=3)), job(trace_from_text("gpu 7 | A |", rank=0)))
    assert (result.rank, result.candidate_rank) == (3, 0)


def test_runs_without_device_work_or_a_common_rank_have_nothing_to_compare():
    host = trace_from_rows([Row("host 1", 0, 10, "aten::add", "cpu_op")])
    nothing = compare(job(host), job(host))
    assert (nothing.baseline_step_ns, nothing.speedup_ratio, nothing.operators) == (None, None, ())
    left = job(trace_from_text("gpu 7 | A |", rank=0), trace_from_text("gpu 7 | A |", rank=1))
    right = job(trace_from_text("gpu 7 | A |", rank=2), trace_from_text("gpu 7 | A |", rank=3))
    assert compare(left, right).operators == ()


def test_where_only_one_side_has_steps_both_are_measured_by_their_device_span():
    kernel = Row("npu 2", 0, 30, "A", "AI_CORE", operator_type="A")
    numbered = trace_from_rows([replace(kernel, step=1), replace(kernel, start_us=40, end_us=90, step=2)])
    bare = trace_from_rows([kernel])
    result = compare(job(numbered), job(bare))
    assert (result.baseline_step_ns, result.candidate_step_ns) == (90 * US, 30 * US)
    assert result.steps == ()


def test_operators_are_summed_over_the_steps_both_have_where_one_run_is_longer():
    kernel = Row("npu 2", 0, 30, "A", "AI_CORE", operator_type="A")
    longer = trace_from_rows(
        [
            replace(kernel, step=1),
            replace(kernel, start_us=40, end_us=90, step=2),
            replace(kernel, start_us=95, end_us=99, step=3),
        ]
    )
    shorter = trace_from_rows([replace(kernel, step=1), replace(kernel, start_us=40, end_us=80, step=2)])

    result = compare(job(longer), job(shorter))

    assert [(item.position, item.baseline_ns, item.candidate_ns) for item in result.steps][1] == (1, 50 * US, 40 * US)
    assert [(item.baseline_ns, item.candidate_ns) for item in result.operators] == [(80 * US, 70 * US)]
    assert [(item.baseline_count, item.candidate_count) for item in result.operators] == [(2, 2)]


def test_a_run_compared_with_itself_changes_nothing(captures):
    capture = opened_job(captures / "ascend/910b-cnn-ddp2-text/level2/rank0_ascend_pt")
    result = compare(capture, capture)
    assert result.speedup_ratio == 1.0
    assert result.step_time_delta_ns == 0
    assert result.peak_reserved_delta_bytes == 0
    assert {item.delta_ns for item in result.operators} == {0}


def test_steps_of_a_real_job_are_paired_by_position(captures):
    capture = opened_job(captures / "pytorch/df_index_resolver.json.gz")
    result = compare(capture, capture)
    assert [item.position for item in result.steps] == [0, 1, 2, 3, 4]
    assert {item.delta_ns for item in result.steps} == {0}
    assert sorted(item.baseline_ns for item in result.steps)[2] == result.baseline_step_ns


def test_the_slowest_qwen3_rank_with_kernels_is_compared(captures):
    capture = opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2")
    result = compare(capture, capture)
    assert result.rank in (0, 2)
    assert result.baseline_step_ns is not None
    assert 700 * MS < result.baseline_step_ns < 900 * MS
