"""Services with optimizations switched on: the shipped ones, what they gain, and where nothing is gained."""

import json
from importlib import resources
from pathlib import Path

import pytest

from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import Verdict
from engine.optimizations.selection import enabled_from_texts
from engine.report.whatif import answer, whatif_document
from engine.whatif.run import applicability, what_if
from engine.whatif.subject import scenario_subject
from engine.workloads.scenario_file import read_scenario
from engine.workloads.scenarios import shipped_scenarios

REGISTRY = optimization_registry()
SERVICES = [name for name in shipped_scenarios() if name.startswith("serving_")]


def shipped(name: str, overrides=None):
    with resources.as_file(shipped_scenarios()[name]) as path:
        return scenario_subject(read_scenario(Path(path), overrides))


def asked(name: str, *texts: str, overrides=None):
    return what_if(shipped(name, overrides), enabled_from_texts(texts, REGISTRY), REGISTRY)


def test_a_prefix_cache_takes_the_shared_part_off_the_first_token():
    result = asked("serving_prefix_cache", "serving.prefix_cache")
    before, after = result.baseline.serving.ttft, result.candidate.serving.ttft
    hit = 1392 / 3700  # whole blocks of the 1,400 shared tokens
    assert result.candidate.serving.prefix_hit_ratio == pytest.approx(hit * 39 / 40, abs=0.001)
    assert 0.7 * hit < 1 - after.p50_ns / before.p50_ns < hit


def test_three_quarters_of_prompts_in_the_cache_give_three_to_four_times_the_requests():
    result = asked("serving_prefix_throughput", "serving.prefix_cache")
    gained = result.candidate.serving.requests_per_s / result.baseline.serving.requests_per_s
    assert 3.0 < gained < 4.0
    assert result.candidate.serving.ttft.mean_ns < 0.4 * result.baseline.serving.ttft.mean_ns
    assert result.gain.expected_ns == pytest.approx(
        result.baseline.serving.e2e.mean_ns - result.candidate.serving.e2e.mean_ns
    )


def test_a_prefix_cache_gains_nothing_where_prompts_share_nothing():
    alone = {("serving", "requests", "shared_prefixes"): 0}
    result = asked("serving_prefix_cache", "serving.prefix_cache", overrides=alone)
    assert result.applicability["serving.prefix_cache"].verdict is Verdict.NO_EFFECT
    assert result.gain.expected_ns == 0.0


def test_more_sequences_at_once_multiply_the_tokens_of_a_service():
    static = asked("serving_dynamic_batching", "serving.dynamic_batching:max_batch=16")
    gained = static.candidate.tokens_per_s / static.baseline.tokens_per_s
    assert gained > 3.0
    assert static.baseline.serving.padding_ratio > 0.3
    assert static.candidate.serving.padding_ratio == 0.0


def test_batching_gains_nothing_at_one_sequence():
    one = {("serving", "max_batch"): 1}
    result = asked("serving_dynamic_batching", "serving.dynamic_batching", overrides=one)
    assert result.applicability["serving.dynamic_batching"].verdict is Verdict.NO_EFFECT
    assert result.gain.expected_ns == 0.0


def test_graphs_shorten_answers_and_leave_prompts_alone():
    result = asked("serving_decode_latency", "host.graph_mode")
    assert result.candidate.serving.tpot.mean_ns < 0.7 * result.baseline.serving.tpot.mean_ns
    assert result.candidate.serving.ttft.mean_ns == pytest.approx(result.baseline.serving.ttft.mean_ns, rel=1e-6)
    prompts = {("serving", "requests", "output_tokens"): 1}
    alone = asked("serving_decode_latency", "host.graph_mode", overrides=prompts)
    assert alone.gain.expected_ns == 0.0


def test_eight_bits_help_once_the_host_is_out_of_the_way():
    result = asked("serving_decode_latency", "host.graph_mode", "serving.quantization")
    both = {item.id: item for item in result.contributions}
    assert both["serving.quantization"].alone_ns < 0 < both["serving.quantization"].gain_ns
    graph = asked("serving_decode_latency", "host.graph_mode").candidate.serving.tpot.mean_ns
    assert result.candidate.serving.tpot.mean_ns < 0.8 * graph


def test_a_service_is_answered_in_requests_and_documents_itself():
    result = asked("serving_prefix_cache", "serving.prefix_cache")
    assert "request " in answer(result)
    document = json.loads(json.dumps(whatif_document(result, {})))
    assert document["baseline"]["ttft_ms"]["p50"] > document["candidate"]["ttft_ms"]["p50"]
    assert document["speedup_ratio"] > 1.0
    assert document["devices_for_equal_throughput"]["candidate"] is None
    assert any("one answered request" in note for note in document["notes"])


def test_training_toggles_are_told_that_the_job_serves():
    result = asked("serving_prefix_cache", "fusion.attention")
    assert result.applicability["fusion.attention"].reason.startswith("the job serves requests")
    assert result.candidate is result.baseline


@pytest.mark.parametrize("name", SERVICES)
def test_every_toggle_answers_a_shipped_service(name):
    assert set(applicability(shipped(name), REGISTRY)) == {item.id for item in REGISTRY}
