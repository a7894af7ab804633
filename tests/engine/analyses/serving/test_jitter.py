"""Late requests and what they waited for, on runs small enough to be followed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.analyses.serving.jitter import LateLimits, Limit, jitter, late_counts, late_limits
from engine.analyses.serving.jitter_parts import Cause
from engine.analyses.serving.jitter_words import late_sentence
from engine.analyses.serving.token_gaps import token_gaps, weighted_percentile
from engine.core.errors import MissingDataError
from engine.workloads.serving.request_stream import drawn_requests
from engine.workloads.serving.serve import serve
from engine.workloads.serving.settings import Arrival, Preemption, RequestSettings, ServingSettings, TokenLengths
from tests.support.serving_prices import simple_prices
from tests.support.serving_streams import stream

MS = 1_000_000


def limits(first_ms=1e9, gap_ms=1e9):
    return LateLimits(first_ms * MS, gap_ms * MS, 0.0, 0.0, are_given=False)


def the_latest(run, **late):
    found = jitter(run, limits(**late))
    assert found.listed
    return found.listed[0]


def served(rows, blocks=1_000, prices=None, **chosen):
    return serve(stream(rows), ServingSettings(**chosen), prices or simple_prices(), blocks)


def test_a_full_batch_is_what_the_second_request_waits_for():
    late = the_latest(served([(0, 10, 10), (1, 10, 1)], max_batch=1), first_ms=50)
    assert (late.request, late.cause, late.running, late.waiting) == (1, Cause.PLACES, 1, 1)
    assert late.parts_ns[Cause.PLACES] > 80 * MS
    assert "request 1: first token took 109.0 ms" in late_sentence(late)
    assert "the batch was full: 1 sequence ran, up to 1 request waited" in late_sentence(late)


def test_missing_blocks_are_told_from_a_full_batch():
    late = the_latest(served([(0, 60, 10), (1, 60, 1)], blocks=6), first_ms=50)
    assert late.cause is Cause.BLOCKS


def test_used_up_tokens_name_the_prompt_that_used_them():
    found = jitter(served([(0, 5_000, 1), (1, 10, 1)], max_batched_tokens=256), limits(50))
    late = next(item for item in found.listed if item.request == 1)
    assert (late.cause, late.blamed, late.blamed_tokens) == (Cause.TOKENS, 0, 5_000)
    assert late_sentence(late).endswith("the longest of 5,000 tokens, of request 0")


def test_a_long_prompt_makes_a_gap_in_another_answer():
    run = served([(0, 10, 20), (25, 60_000, 1)], max_batched_tokens=1 << 16, blocks=10_000)
    late = the_latest(run, gap_ms=30)
    assert (late.request, late.limit, late.cause, late.blamed) == (0, Limit.GAP, Cause.PROMPT, 1)
    assert late.taken_ns == 70 * MS + 1_000
    assert late_counts(run, limits(gap_ms=30)) == (0, 1)


def test_idle_time_before_two_requests_is_the_engines_waiting():
    late = the_latest(served([(0, 10, 1), (70, 10, 1)], max_wait_ns=80 * MS), first_ms=60)
    assert (late.request, late.cause) == (0, Cause.COMPANY)
    assert late.parts_ns[Cause.COMPANY] == 70 * MS


def test_a_long_prompt_of_its_own_is_nobody_elses_fault():
    late = the_latest(served([(0, 100_000, 1)], max_batched_tokens=4_096, blocks=10_000), first_ms=50)
    assert late.cause is Cause.OWN_PROMPT


def test_a_preempted_answer_stands_still_until_it_is_back():
    late = the_latest(served([(0, 30, 40), (0, 30, 40)], blocks=6), gap_ms=30)
    assert (late.request, late.cause) == (1, Cause.PREEMPTED)


def test_answers_of_one_token_have_no_gaps_to_be_late_in():
    run = served([(0, 10, 1), (0, 100_000, 1)], max_batched_tokens=1 << 17, blocks=10_000, max_batch=1)
    found = jitter(run, late_limits(run))
    assert found.limits.gap_ns == 0
    assert found.late_between == 0


def test_limits_of_the_service_decide_where_there_are_any():
    run = served([(0, 10, 10), (1, 10, 10)], max_batch=1)
    given_limits = late_limits(run, slo_ttft_ns=50 * MS, slo_tpot_ns=5 * MS)
    found = jitter(run, given_limits)
    assert (found.late_first, found.late_between) == (1, 2)
    assert {item.limit for item in found.listed} == {Limit.FIRST, Limit.MEAN}
    assert jitter(run, late_limits(run, slo_ttft_ns=50 * MS)).late_between == 0


def test_a_run_alike_for_all_has_nobody_late():
    run = served([(1_000 * at, 50, 10) for at in range(40)])
    assert jitter(run, late_limits(run)).late == 0


def test_without_iterations_nothing_can_be_said():
    with pytest.raises(MissingDataError, match="iterations"):
        late_limits(serve(stream([]), ServingSettings(), simple_prices(), 10))


def test_a_weighted_percentile_counts_tokens():
    values, weights = np.array([1, 2, 3]), np.array([90, 9, 1])
    assert [weighted_percentile(values, weights, at) for at in (50, 95, 100)] == [1, 2, 3]


@settings(max_examples=60, deadline=None)
@given(
    arrival=st.sampled_from(Arrival),
    chosen=st.builds(
        ServingSettings,
        max_batch=st.integers(1, 6),
        max_batched_tokens=st.integers(8, 256),
        chunked_prefill=st.booleans(),
        preemption=st.sampled_from(Preemption),
        prefix_cache=st.booleans(),
        max_wait_ns=st.sampled_from([0, 5 * MS]),
    ),
    block_count=st.integers(4, 60),
    seed=st.integers(0, 5),
)
def test_parts_of_every_wait_add_up_to_it(arrival, chosen, block_count, seed):
    asked = RequestSettings(
        arrival, 50.0, count=25, prompt=TokenLengths(80, 0.8, 400), output=TokenLengths(30, 0.8, 90), turns=2
    )
    run = serve(drawn_requests(asked, seed), chosen, simple_prices(), block_count, seed)
    if not run.requests.finished.any():
        return
    found = jitter(run, limits(0, 1e-6))
    several = run.requests.finished & (run.requests.output_tokens > 1)
    assert (found.late_first, found.late_between) == (run.requests.finished.sum(), several.sum())
    for late in found.listed:
        assert sum(late.parts_ns.values()) == late.end_ns - late.start_ns
        assert all(part_ns > 0 for part_ns in late.parts_ns.values())
        assert late_sentence(late)
    gaps = token_gaps(run)
    assert (gaps.longest_ns <= run.requests.last_token_ns - run.requests.first_token_ns)[several].all()
