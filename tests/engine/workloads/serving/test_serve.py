from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.analyses.serving.tables import AdmissionLimit, PhaseKind, RequestStatus
from engine.core.errors import ScenarioError
from engine.workloads.serving.request_stream import drawn_requests
from engine.workloads.serving.serve import serve
from engine.workloads.serving.settings import Arrival, Preemption, RequestSettings, ServingSettings, TokenLengths
from tests.support.serving_prices import simple_prices
from tests.support.serving_streams import stream

MS = 1_000_000


def test_a_request_alone_takes_one_iteration_per_token():
    run = serve(stream([(0, 100, 3)]), ServingSettings(), simple_prices(), 1_000)
    assert run.requests.first_token_ns[0] == 10 * MS + 100_000
    assert run.requests.last_token_ns[0] == 3 * 10 * MS + 102_000
    assert len(run.iterations) == 3
    assert run.iterations.kv_blocks.tolist() == [7, 7, 7]


def test_sequences_join_and_leave_the_batch_at_once():
    run = serve(stream([(0, 10, 5), (1, 10, 1)]), ServingSettings(), simple_prices(), 1_000)
    assert run.iterations.running.tolist() == [1, 2, 1, 1, 1]
    assert run.iterations.decode_sequences.tolist() == [0, 1, 1, 1, 1]
    assert run.requests.last_token_ns[1] < run.requests.last_token_ns[0]


def test_a_long_prompt_is_computed_in_parts_beside_answers():
    chosen = ServingSettings(max_batched_tokens=64)
    run = serve(stream([(0, 10, 20), (1, 200, 1)]), chosen, simple_prices(), 1_000)
    assert run.iterations.prefill_tokens[1:5].tolist() == [63, 63, 63, 11]
    assert run.iterations.decode_sequences[1:5].tolist() == [1, 1, 1, 1]


def test_without_chunks_prompts_come_first_and_whole():
    chosen = ServingSettings(max_batched_tokens=256, chunked_prefill=False)
    run = serve(stream([(0, 10, 20), (1, 200, 1)]), chosen, simple_prices(), 1_000)
    assert run.iterations.prefill_tokens[1] == 200
    assert run.iterations.decode_sequences[1] == 0


def test_what_does_not_fit_makes_the_last_one_leave_and_come_back():
    run = serve(stream([(0, 30, 40), (0, 30, 40)]), ServingSettings(), simple_prices(), 6)
    assert run.requests.finished.all()
    assert run.requests.preemptions.tolist() == [0, 1]
    assert PhaseKind.PREEMPTED in run.phases.kind
    assert run.iterations.kv_blocks.max() <= 6


def test_what_keeps_a_request_out_is_noted_iteration_by_iteration():
    rows = stream([(0, 100, 10), (0, 100, 10)])
    full = serve(rows, ServingSettings(max_batch=1), simple_prices(), 1_000)
    assert full.iterations.limit.tolist() == [AdmissionLimit.PLACES] * 10 + [AdmissionLimit.NONE] * 10
    short = serve(rows, ServingSettings(max_batched_tokens=100), simple_prices(), 1_000)
    assert short.iterations.limit[0] == AdmissionLimit.TOKENS
    tight = serve(rows, ServingSettings(), simple_prices(), 8)
    assert tight.iterations.limit[0] == AdmissionLimit.BLOCKS


def test_swapping_keeps_what_was_computed():
    rows = stream([(0, 30, 40), (0, 30, 40)])
    recomputed = serve(rows, ServingSettings(), simple_prices(), 6)
    swapped = serve(rows, ServingSettings(preemption=Preemption.SWAP), simple_prices(), 6)
    assert swapped.iterations.prefill_tokens.sum() < recomputed.iterations.prefill_tokens.sum()


def test_a_request_that_waits_too_long_is_let_go():
    chosen = ServingSettings(max_batch=1, timeout_ns=50 * MS)
    run = serve(stream([(0, 10, 100), (1, 10, 1)]), chosen, simple_prices(), 1_000)
    assert run.requests.status[1] == RequestStatus.TIMED_OUT
    assert run.requests.scheduled_ns[1] == -1


def test_a_full_queue_and_a_prompt_that_can_never_fit_are_refused():
    run = serve(
        stream([(0, 10, 10), (1, 10, 1), (2, 10, 1)]), ServingSettings(max_batch=1, max_queue=1), simple_prices(), 9
    )
    assert run.requests.status.tolist() == [0, 0, RequestStatus.REJECTED]
    run = serve(stream([(0, 1_000, 1)]), ServingSettings(), simple_prices(), 9)
    assert run.requests.status[0] == RequestStatus.TOO_LONG


def test_an_idle_engine_waits_for_company_no_longer_than_it_may():
    chosen = ServingSettings(max_wait_ns=5 * MS)
    run = serve(stream([(0, 10, 1), (3, 10, 1), (20, 10, 1)]), chosen, simple_prices(), 1_000)
    assert run.requests.scheduled_ns.tolist() == [5 * MS, 5 * MS, 20 * MS]


def test_a_shared_beginning_is_computed_once():
    chosen = ServingSettings(prefix_cache=True)
    rows = stream([(0, 1_000, 1), (100, 1_000, 1)], prefix=0, shared=800)
    run = serve(rows, chosen, simple_prices(), 1_000)
    assert run.requests.cached_tokens.tolist() == [0, 800]
    assert run.iterations.prefill_tokens.tolist() == [1_000, 200]
    assert serve(rows, ServingSettings(), simple_prices(), 1_000).iterations.prefill_tokens.sum() == 2_000


def test_a_cache_holds_no_more_than_it_may():
    chosen = ServingSettings(prefix_cache=True, prefix_cache_tokens=160)
    run = serve(stream([(0, 1_000, 1), (100, 1_000, 1)], prefix=0, shared=800), chosen, simple_prices(), 1_000)
    assert run.requests.cached_tokens.tolist() == [0, 160]


def test_a_session_goes_on_from_what_was_said():
    drawn = drawn_requests(
        RequestSettings(Arrival.AT_ONCE, count=2, turns=2, prompt=TokenLengths(64), output=TokenLengths(33)), 0
    )
    run = serve(drawn, ServingSettings(prefix_cache=True), simple_prices(), 1_000)
    assert drawn.prompt_tokens.tolist() == [64, 161]
    assert run.requests.cached_tokens.tolist() == [0, 96]
    assert run.requests.arrival_ns[1] >= run.requests.last_token_ns[0]


def test_guessed_tokens_shorten_answers_by_as_many_as_are_right():
    rows = stream([(0, 10, 101)])
    alone = serve(rows, ServingSettings(), simple_prices(), 1_000)
    sure = serve(rows, ServingSettings(speculative_tokens=3, acceptance_ratio=1.0), simple_prices(), 1_000)
    never = serve(rows, ServingSettings(speculative_tokens=3, acceptance_ratio=0.0), simple_prices(), 1_000)
    assert (len(alone.iterations), len(sure.iterations), len(never.iterations)) == (101, 26, 101)


def test_graphs_help_only_where_the_host_is_what_takes_long():
    rows = stream([(0, 10, 20)])
    slow_host = simple_prices(host_ns=30.0 * MS, graph_host_ns=1.0 * MS)
    quick = serve(rows, ServingSettings(), slow_host._replace(graph_mode=1), 1_000)
    assert quick.requests.last_token_ns[0] < serve(rows, ServingSettings(), slow_host, 1_000).requests.last_token_ns[0]
    prompt = stream([(0, 4_000, 1)])
    assert (
        serve(prompt, ServingSettings(), slow_host._replace(graph_mode=1), 1_000).requests.last_token_ns[0]
        == serve(prompt, ServingSettings(), slow_host, 1_000).requests.last_token_ns[0]
    )


def test_a_service_without_memory_is_an_error():
    with pytest.raises(ScenarioError, match="no memory is left"):
        serve(stream([(0, 1, 1)]), ServingSettings(), simple_prices(), 0)


SERVED = st.builds(
    ServingSettings,
    max_batch=st.integers(1, 8),
    max_batched_tokens=st.integers(8, 256),
    chunked_prefill=st.booleans(),
    preemption=st.sampled_from(Preemption),
    prefix_cache=st.booleans(),
    prefix_cache_tokens=st.sampled_from([0, 64, 1_000]),
    speculative_tokens=st.integers(0, 3),
    acceptance_ratio=st.sampled_from([0.0, 0.5, 1.0]),
    timeout_ns=st.sampled_from([0, 200 * MS]),
    max_queue=st.sampled_from([0, 3]),
    max_wait_ns=st.sampled_from([0, 5 * MS]),
)
ASKED = st.builds(
    RequestSettings,
    arrival=st.sampled_from(Arrival),
    rate_per_s=st.sampled_from([1.0, 50.0]),
    users=st.integers(1, 4),
    count=st.integers(1, 30),
    prompt=st.builds(TokenLengths, mean=st.floats(1, 200), sigma=st.sampled_from([0.0, 0.8]), maximum=st.just(400)),
    output=st.builds(TokenLengths, mean=st.floats(1, 60), sigma=st.sampled_from([0.0, 0.8]), maximum=st.just(100)),
    turns=st.integers(1, 3),
    shared_prefixes=st.integers(0, 2),
    shared_tokens=st.sampled_from([0, 40]),
)


@settings(max_examples=150, deadline=None)
@given(asked=ASKED, chosen=SERVED, block_count=st.integers(4, 60), seed=st.integers(0, 5))
def test_no_request_is_lost_and_no_block_exists_twice(asked, chosen, block_count, seed):
    drawn = drawn_requests(asked, seed)
    run = serve(drawn, chosen, simple_prices(), block_count, seed)
    requests, steps = run.requests, run.iterations
    assert np.isin(requests.status, [int(item) for item in RequestStatus]).all()
    done = requests.finished
    assert (requests.output_tokens[done] == drawn.output_tokens[done]).all()
    assert (requests.output_tokens[~done] == 0).all()
    assert (steps.kv_blocks + steps.cached_blocks <= block_count).all()
    assert (steps.running <= chosen.max_batch).all()
    assert (requests.scheduled_ns[done] >= requests.arrival_ns[done]).all()
    assert (requests.first_token_ns[done] <= requests.last_token_ns[done]).all()
    if chosen.timeout_ns:
        assert (requests.scheduled_ns - requests.arrival_ns <= chosen.timeout_ns)[done].all()
    if chosen.prefix_cache_tokens:
        assert (steps.cached_blocks * chosen.block_tokens < chosen.prefix_cache_tokens + chosen.block_tokens).all()
    left = run.blocks_left
    assert left is not None
    assert left.held == 0
    assert left.free + left.cached == block_count
    assert ((steps.limit == AdmissionLimit.NONE) == (steps.waiting == 0)).all()
    again = serve(drawn, chosen, simple_prices(), block_count, seed)
    assert (again.requests.last_token_ns == requests.last_token_ns).all()
    assert (run.phases.end_ns >= run.phases.start_ns).all()
    if not chosen.prefix_cache and len(steps):
        fits = -(-(drawn.prompt_tokens + drawn.output_tokens) // chosen.block_tokens) <= block_count
        assert (requests.status[~fits] != RequestStatus.FINISHED).all()


def test_a_batch_of_one_gains_nothing_from_a_larger_limit():
    rows = stream([(200 * index, 10, 3) for index in range(5)])
    small = serve(rows, ServingSettings(max_batch=1), simple_prices(), 100)
    large = serve(rows, replace(ServingSettings(), max_batch=64), simple_prices(), 100)
    assert (small.requests.last_token_ns == large.requests.last_token_ns).all()


def test_a_text_that_a_shorter_prompt_shares_in_part_does_not_pin_what_that_prompt_needs():
    rows = stream([(0, 45, 10), (100, 20, 40)], prefix=0, shared=40)
    chosen = ServingSettings(prefix_cache=True, preemption=Preemption.SWAP, max_batch=1)
    run = serve(rows, chosen, simple_prices(), 4)
    assert run.requests.finished.all()


def test_answers_go_on_where_a_prompt_that_should_come_first_finds_no_place_after_all():
    asked = RequestSettings(
        Arrival.BURSTY,
        count=11,
        turns=3,
        prompt=TokenLengths(49.5, 0.8, 400),
        output=TokenLengths(38),
        shared_prefixes=2,
        shared_tokens=40,
    )
    chosen = ServingSettings(
        max_batch=7,
        max_batched_tokens=79,
        chunked_prefill=False,
        preemption=Preemption.SWAP,
        prefix_cache=True,
        prefix_cache_tokens=1_000,
    )
    run = serve(drawn_requests(asked, 0), chosen, simple_prices(), 17)
    assert np.isin(run.requests.status, (RequestStatus.FINISHED, RequestStatus.TOO_LONG)).all()
