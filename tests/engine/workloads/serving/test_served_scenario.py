from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import ScenarioError
from engine.report.serving import analysis_of, served_document
from engine.workloads.scenario_file import read_scenario
from engine.workloads.serving.recorded_requests import recorded_requests
from engine.workloads.serving.simulate import simulate_serving

HEAD = """
name = "chat"
kind = "serving"
[model]
preset = "qwen2-0.5b"
[device]
preset = "910b2"
count = 1
[serving]
max_batch = 8
"""
USUAL = (
    'requests = { arrival = "at_once", count = 24, prompt_tokens = 300, output_tokens = { mean = 40, sigma = 0.7 } }\n'
)


def served(tmp_path: Path, body: str = USUAL, enable: dict[str, dict[str, object]] | None = None, head: str = HEAD):
    path = tmp_path / "service.toml"
    path.write_text(head + body)
    overrides = {("optimizations", key): value for key, value in (enable or {}).items()}
    return simulate_serving(read_scenario(path, overrides))


def test_a_service_answers_every_request_and_says_how_long_that_took(tmp_path):
    document = served_document(served(tmp_path), {})
    assert document["serving"]["finished"] == 24
    assert document["tokens_per_s"] > 0
    assert set(document["ttft_ms"]) == {"mean", "p50", "p90", "p99"}


def test_joining_and_leaving_at_once_beats_batches_that_stay_together(tmp_path):
    dynamic = analysis_of(served(tmp_path))
    static = analysis_of(served(tmp_path, USUAL + 'batching = "static"\n'))
    assert static.padding_ratio > 0 == dynamic.padding_ratio
    assert dynamic.output_tokens_per_s > 1.1 * static.output_tokens_per_s


def test_quantized_weights_leave_more_memory_and_take_less_time(tmp_path):
    plain, small = served(tmp_path), served(tmp_path, enable={"serving.quantization": {"weights": "w8a8"}})
    assert small.shard.weight_bytes < 0.75 * plain.shard.weight_bytes
    assert small.run.kv_block_count > plain.run.kv_block_count


def test_graphs_help_decoding_of_a_small_model_and_not_its_prompts(tmp_path):
    eager, graph = served(tmp_path), served(tmp_path, enable={"host.graph_mode": {}})
    assert analysis_of(graph).tpot.mean_ns < analysis_of(eager).tpot.mean_ns
    prompts = 'requests = { arrival = "at_once", count = 8, prompt_tokens = 8000, output_tokens = 1 }\n'
    assert np.array_equal(
        served(tmp_path, prompts).run.requests.first_token_ns,
        served(tmp_path, prompts, {"host.graph_mode": {}}).run.requests.first_token_ns,
    )


def test_a_prefix_cache_without_anything_shared_changes_nothing(tmp_path):
    plain, cached = served(tmp_path), served(tmp_path, enable={"serving.prefix_cache": {}})
    assert np.array_equal(plain.run.requests.last_token_ns, cached.run.requests.last_token_ns)


def test_the_words_of_the_article_switch_the_prefix_cache_on(tmp_path):
    asked = "count = 20, rate_per_s = 20.0, prompt_tokens = 1600, shared_prefixes = 1, shared_tokens = 1200"
    shared = f"requests = {{ {asked} }}\n"
    large = HEAD.replace("qwen2-0.5b", "llama3-8b")
    cached = served(tmp_path, shared + "prefix_cache_enable = true\nprefix_cache_size = 4096\n", head=large)
    assert analysis_of(cached).prefix_hit_ratio == pytest.approx(0.75 * 19 / 20, abs=0.01)
    assert analysis_of(cached).ttft.mean_ns < analysis_of(served(tmp_path, shared, head=large)).ttft.mean_ns


def test_experts_and_tensor_groups_are_priced(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(
        HEAD.replace("qwen2-0.5b", "gpt-oss-20b").replace("count = 1", "count = 4")
        + USUAL
        + 'weights = "mxfp4"\n[parallel]\ntensor = 4\n'
    )
    result = simulate_serving(read_scenario(path))
    assert result.shard.weight_bytes < 5e9
    assert analysis_of(result).finished == 24


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("max_btch = 3\n", "max_batch"),
        ("acceptance_ratio = 1.5\n", "share"),
        ("prefix_cache = true\nprefix_cache_enable = true\n", "same thing"),
        ('batching = "static"\nrequests = { arrival = "closed_loop" }\n', "do not wait for each other"),
        ("[parallel]\npipeline = 1\ntensor = 1\n[optimizations]\n'fusion.rope' = {}\n", "does not act"),
    ],
)
def test_what_a_service_cannot_do_is_one_clear_error(tmp_path, body, words):
    with pytest.raises(ScenarioError, match=words):
        served(tmp_path, body)


def test_recorded_requests_keep_arrivals_lengths_and_sessions(tmp_path):
    path = tmp_path / "requests.csv"
    path.write_text("arrival_s,prompt_tokens,output_tokens,session\n2.5,10,3,b\n1.0,20,4,a\n4.0,30,5,a\n")
    stream = recorded_requests(path)
    assert stream.arrival_ns.tolist() == [0, 1_500_000_000, 3_000_000_000]
    assert stream.prompt_tokens.tolist() == [20, 10, 30]
    assert stream.session[0] == stream.session[2] != stream.session[1]
    lines = tmp_path / "requests.jsonl"
    lines.write_text('{"arrival_s": 1.0, "prompt_tokens": 20, "output_tokens": 4}\n')
    assert recorded_requests(lines).output_tokens.tolist() == [4]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no requests"),
        ("a,b\n1,2\n", "no column arrival_s"),
        ("arrival_s,prompt_tokens,output_tokens\n1,x,3\n", "request 1: prompt_tokens is 'x'"),
        ("arrival_s,prompt_tokens,output_tokens\n1,0,3\n", "at least 1"),
        ('{"arrival_s": 1', "line 1"),
        ("arrival_s,prompt_tokens,output_tokens\nnan,1,3\n", "at least 0"),
    ],
)
def test_requests_that_cannot_be_read_name_the_row(tmp_path, text, words):
    path = tmp_path / "requests.csv"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=words):
        recorded_requests(path)


def test_the_recorded_vllm_run_can_be_read(captures):
    path = captures.parent / "reference/validation/llmservingsim/RTXPRO6000_Llama-3.1-8B_requests.csv"
    assert len(recorded_requests(path)) == 300
