"""Communication toggles of a simulated job: each changes what it should, and nothing where nothing is to be gained."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import ScenarioError
from engine.graph.collective_kinds import CollectiveKind
from engine.workloads.communication_settings import CommunicationSettings, communication_settings, job_network
from engine.workloads.gradient_exchange import ROW, GradientExchanges, payload_bytes, sent_count
from engine.workloads.items import Item, ItemKind
from engine.workloads.parameters import WeightTensor
from engine.workloads.program import stage_program
from engine.workloads.results import RunResult
from engine.workloads.scenario import Parallelism, Scenario
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate

MODEL = {"layers": 4, "hidden": 2048, "ffn": 8192, "heads": 16, "vocab": 32000}
NAMES = ("attention", "rms_norm", "swiglu", "rope", "cross_entropy", "optimizer", "gradient_accumulation")
FUSED: dict[str, dict[str, Any]] = {f"fusion.{name}": {} for name in NAMES}
OVERLAP, TOP_K, QUANTIZED, CHUNKING, ALGORITHM = (
    f"communication.{name}"
    for name in ("overlap_gradients", "topk_compression", "quantized_gradients", "chunking", "algorithm")
)
STREAMS = "host.streams"
ALONE = {"device": {"count": 1, "per_node": 1}, "parallel": {"tensor": 1}}
REPLICAS = {"parallel": {"tensor": 1}, "device": {"count": 8, "per_node": 1}}


def job(optimizations: dict[str, dict[str, Any]], **tables: Any) -> Scenario:
    document: dict[str, Any] = {
        "model": MODEL,
        "device": {"preset": "910b2", "count": 8, "per_node": 4},
        "parallel": {"tensor": 4},
        "batch": {"micro": 1, "global": 8, "sequence_length": 4096},
        "run": {"steps": 2, "profile_steps": [1]},
        "optimizations": {**FUSED, **optimizations},
    }
    for name, values in tables.items():
        document[name] = {**document[name], **values}
    return scenario_from_document(document, Path())


def run(optimizations: dict[str, dict[str, Any]], **tables: Any) -> RunResult:
    return simulate(job(optimizations, **tables))


def step_ns(optimizations: dict[str, dict[str, Any]], **tables: Any) -> int:
    return int(run(optimizations, **tables).step_ns[-1])


@cache
def plain() -> RunResult:
    return run({})


@pytest.mark.parametrize(
    "toggle", [{OVERLAP: {}}, {TOP_K: {}}, {QUANTIZED: {}}, {CHUNKING: {}}, {ALGORITHM: {}}, {STREAMS: {"count": 1}}]
)
def test_one_device_has_nothing_to_gain(toggle: dict[str, dict[str, Any]]) -> None:
    alone, toggled = run({}, **ALONE), run(toggle, **ALONE)
    assert np.array_equal(alone.step_ns, toggled.step_ns)
    assert np.array_equal(alone.memory[0].peak_allocated_bytes, toggled.memory[0].peak_allocated_bytes)


def test_small_buckets_cost_calls_and_large_ones_hide_nothing() -> None:
    """Buckets of a megabyte pay for every call; one for all gradients waits for the last layer."""
    times = {size: step_ns({OVERLAP: {"bucket_bytes": size}}, **REPLICAS) for size in (1 << 20, 1 << 26, 1 << 40)}
    assert times[1 << 26] < times[1 << 20]
    assert times[1 << 26] < times[1 << 40]
    assert times[1 << 40] == step_ns({}, **REPLICAS)
    assert times[1 << 26] == pytest.approx(step_ns({OVERLAP: {}}, **REPLICAS), rel=0.1)


def test_compression_is_faster_over_slow_links_and_keeps_what_it_does_not_send() -> None:
    before, after = run({}, **REPLICAS), run({TOP_K: {"ratio": 0.01}}, **REPLICAS)
    assert after.step_ns[-1] < before.step_ns[-1]
    assert after.communication_share_ratio < before.communication_share_ratio
    gradients = 4 * sum(tensor.element_count for tensor in stage_program(job({}, **REPLICAS), 0).weights)
    assert after.memory[0].persistent_bytes - before.memory[0].persistent_bytes == gradients
    forgets = run({TOP_K: {"ratio": 0.01, "error_feedback": False}}, **REPLICAS)
    assert forgets.memory[0].persistent_bytes == before.memory[0].persistent_bytes
    assert forgets.step_ns[-1] < after.step_ns[-1]


def test_sending_too_much_is_slower_than_sending_everything() -> None:
    """Pairs of value and position are gathered, not reduced: eight replicas send 8 × 0.4 × 8 bytes for 4."""
    times = [step_ns({TOP_K: {"ratio": ratio}}, **REPLICAS) for ratio in (0.001, 0.01, 0.1, 0.4)]
    assert times == sorted(times)
    assert times[-1] > step_ns({}, **REPLICAS)


def test_selection_costs_time_of_its_own_where_links_are_fast() -> None:
    """Inside a server the passes over all gradients are what is left of a small gain."""
    fast = {"parallel": {"tensor": 1}, "device": {"count": 8, "per_node": 8}}
    exchange = payload_bytes(CommunicationSettings(sent_ratio=0.01), 10**8, 8) / payload_bytes(
        CommunicationSettings(), 10**8, 8
    )
    assert exchange == pytest.approx(0.16, rel=0.02)
    slow_gain = step_ns({}, **REPLICAS) - step_ns({TOP_K: {}}, **REPLICAS)
    fast_gain = step_ns({}, **fast) - step_ns({TOP_K: {}}, **fast)
    assert fast_gain < 0.5 * slow_gain


def test_fewer_bits_make_the_exchange_shorter() -> None:
    full, half, byte = (run(toggle, **REPLICAS) for toggle in ({}, {QUANTIZED: {"bits": 16}}, {QUANTIZED: {"bits": 8}}))
    assert full.step_ns[-1] > half.step_ns[-1] > byte.step_ns[-1]
    assert full.memory[0].persistent_bytes == byte.memory[0].persistent_bytes


def test_compressed_exchanges_can_overlap() -> None:
    both = step_ns({OVERLAP: {}, TOP_K: {}}, **REPLICAS)
    assert both < step_ns({TOP_K: {}}, **REPLICAS)
    assert both < step_ns({OVERLAP: {}}, **REPLICAS)


@pytest.mark.parametrize("name", ["ring", "mesh", "halving_doubling", "hierarchical"])
def test_no_algorithm_beats_the_choice_of_the_soonest_inside_a_server(name: str) -> None:
    layout = {"device": {"count": 4}, "parallel": {"tensor": 4}}
    assert step_ns({ALGORITHM: {"name": name}}, **layout) >= step_ns({ALGORITHM: {"name": "auto"}}, **layout)


def test_a_ring_uses_one_link_of_a_mesh() -> None:
    assert job_network(job({})).algorithm is None
    assert step_ns({ALGORITHM: {"name": "ring"}}) > 1.2 * int(plain().step_ns[-1])


def test_chunks_hide_transfers_until_their_calls_cost_more() -> None:
    times = {count: step_ns({CHUNKING: {"chunks": count}}) for count in (1, 2, 4, 32, 64)}
    assert times[1] == plain().step_ns[-1]
    assert min(times[2], times[4]) < times[1]
    assert times[4] < times[32] < times[64]


def test_chunks_keep_the_memory_of_a_step() -> None:
    chunked = run({CHUNKING: {"chunks": 4}})
    assert np.array_equal(chunked.memory[0].peak_allocated_bytes, plain().memory[0].peak_allocated_bytes)


def test_one_queue_lets_transfers_of_layers_wait_for_gradients() -> None:
    two, one = run({OVERLAP: {}, STREAMS: {"count": 2}}), run({OVERLAP: {}, STREAMS: {"count": 1}})
    assert two.step_ns[-1] == step_ns({OVERLAP: {}})
    assert one.step_ns[-1] > two.step_ns[-1]
    assert one.communication_share_ratio > two.communication_share_ratio


def test_a_scenario_may_state_how_much_transfers_slow_computing() -> None:
    hidden = {CHUNKING: {}, "communication.overlap_tensor_parallel": {}}
    times = [step_ns(hidden, device={"transfer_contention_ratio": ratio}) for ratio in (0, 0.043, 0.5)]
    assert times[0] < times[1] < times[2]
    assert times[1] == step_ns(hidden)


def test_one_queue_changes_nothing_where_gradients_come_last() -> None:
    assert step_ns({STREAMS: {"count": 1}}) == plain().step_ns[-1]


@pytest.mark.parametrize(
    ("optimizations", "what"),
    [
        ({TOP_K: {}, QUANTIZED: {}}, "exclude each other"),
        ({CHUNKING: {}, "fusion.matmul_all_reduce": {}}, "MC2 hides"),
        ({TOP_K: {"ratio": 1.5}}, r"communication\.topk_compression\.ratio is 1\.5"),
        ({QUANTIZED: {"bits": 4}}, "must be 16 or 8"),
        ({CHUNKING: {"chunks": 1000}}, "at most 64"),
        ({ALGORITHM: {"name": "rings"}}, "did you mean ring"),
        ({STREAMS: {"streams": 2}}, r"host\.streams\.streams is not a key"),
    ],
)
def test_what_cannot_be_says_why(optimizations: dict[str, dict[str, Any]], what: str) -> None:
    with pytest.raises(ScenarioError, match=what):
        run(optimizations)


@given(st.floats(0.0005, 0.5), st.integers(1, 10**9))
def test_at_least_one_gradient_of_every_row_is_sent(ratio: float, elements: int) -> None:
    sent = sent_count(CommunicationSettings(sent_ratio=ratio), elements)
    assert -(-elements // ROW) <= sent <= elements
    assert sent == pytest.approx(ratio * elements, abs=0.5 * (elements / ROW + 1) + elements / ROW + 1)


LAYERS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=12)


@settings(max_examples=50)
@given(LAYERS, st.integers(0, 1 << 24), st.sampled_from([2, 4, 8]))
def test_buckets_exchange_every_gradient_once(layers: list[tuple[int, int]], bucket_bytes: int, replicas: int) -> None:
    exchanges = GradientExchanges(Parallelism(data=replicas), 0, CommunicationSettings(bucket_bytes=bucket_bytes))
    items: list[Item] = []
    for plain_count, expert_count in layers:
        items += exchanges.ready((WeightTensor("a", plain_count), WeightTensor("b", expert_count, is_expert=True)))
    items += exchanges.rest()
    assert sum(item.payload_bytes for item in items) == 4 * sum(sum(layer) for layer in layers)
    assert all(item.kind is ItemKind.EXCHANGE and item.payload_bytes > 0 for item in items)
    assert len({item.key for item in items}) == len(items)


def test_compressed_gradients_are_gathered_and_others_reduced() -> None:
    kinds = {
        name: {item.collective for item in stage_program(job(chosen), 0).items if item.key[:1] == ("reduce",)}
        for name, chosen in {"plain": {}, "sparse": {TOP_K: {}}, "narrow": {QUANTIZED: {}}}.items()
    }
    assert kinds["plain"] == kinds["narrow"] == {CollectiveKind.REDUCE_SCATTER}
    assert kinds["sparse"] == {CollectiveKind.ALL_GATHER}


def test_settings_of_a_plain_job_are_the_defaults() -> None:
    assert communication_settings(job({})) == CommunicationSettings()
