"""What can be switched on in a service, what cannot, and that training and serving are told apart."""

from pathlib import Path

import pytest

from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import Group, Verdict
from engine.workloads.scenario_file import read_scenario
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
"""
TRAINING = '[model]\npreset = "qwen2-0.5b"\n[device]\npreset = "910b2"\ncount = 1\n'
SHARED = "requests = { count = 20, prompt_tokens = 600, shared_prefixes = 2, shared_tokens = 300 }\n"
REGISTRY = optimization_registry()
SERVING = [item for item in REGISTRY if item.group is Group.SERVING]


def scenario(tmp_path: Path, body: str = "", head: str = HEAD):
    path = tmp_path / "job.toml"
    path.write_text(head + body)
    return read_scenario(path)


def verdict(tmp_path: Path, identifier: str, body: str = "", **parameters):
    item = REGISTRY[identifier]
    return item.check_scenario(scenario(tmp_path, body), {**item.defaults, **parameters})


@pytest.mark.parametrize("item", SERVING, ids=lambda item: item.id)
def test_a_training_job_is_told_that_it_serves_nobody(tmp_path, item):
    answer = item.check_scenario(scenario(tmp_path, head=TRAINING), item.defaults)
    assert (answer.verdict, answer.reason) == (Verdict.NO_EFFECT, "the job trains; this is about serving requests")


@pytest.mark.parametrize("item", REGISTRY, ids=lambda item: item.id)
def test_every_toggle_answers_a_service(tmp_path, item):
    answer = item.check_scenario(scenario(tmp_path, SHARED), item.defaults)
    if item.group is not Group.SERVING and item.id != "host.graph_mode":
        assert (answer.verdict, answer.reason) == (
            Verdict.NO_EFFECT,
            "the job serves requests; this is about steps of training",
        )
    assert answer.reason


@pytest.mark.parametrize("item", SERVING, ids=lambda item: item.id)
def test_switching_on_leaves_the_scenario_alone_and_is_already_on_afterwards(tmp_path, item):
    given = scenario(tmp_path, SHARED + 'batching = "static"\nchunked_prefill = false\n')
    changed = item.on_scenario(given, {**item.defaults, **({"max_batch": 8} if "max_batch" in item.defaults else {})})
    assert given.optimizations == {}
    again = item.check_scenario(changed, changed.optimizations[item.id])
    assert again.verdict is Verdict.ALREADY_ON
    assert simulate_serving(changed).run.requests.finished.all()


@pytest.mark.parametrize(
    ("identifier", "body", "expected", "word"),
    [
        ("serving.prefix_cache", SHARED, Verdict.APPLIES, "288 of 600 tokens of a prompt (48 %)"),
        ("serving.prefix_cache", "", Verdict.NO_EFFECT, "each begins differently"),
        ("serving.prefix_cache", SHARED.replace("300", "10"), Verdict.NO_EFFECT, "a block has 16"),
        ("serving.prefix_cache", "requests = { turns = 3 }\n", Verdict.APPLIES, "3 in a session"),
        ("serving.prefix_cache", SHARED + 'batching = "static"\n', Verdict.NO_EFFECT, "stay together"),
        ("serving.prefix_cache", SHARED + "prefix_cache_enable = true\n", Verdict.ALREADY_ON, "whatever memory leaves"),
        ("serving.dynamic_batching", "", Verdict.ALREADY_ON, "up to 32 sequences"),
        ("serving.dynamic_batching", 'batching = "static"\nmax_batch = 4\n', Verdict.APPLIES, "batches of up to 4"),
        ("serving.dynamic_batching", 'batching = "static"\nmax_batch = 1\n', Verdict.NO_EFFECT, "one sequence"),
        (
            "serving.dynamic_batching",
            'batching = "static"\nrequests = { arrival = "closed_loop", users = 1 }\n',
            Verdict.NO_EFFECT,
            "one sequence",
        ),
        ("serving.chunked_prefill", "", Verdict.ALREADY_ON, "8,192"),
        ("serving.chunked_prefill", "chunked_prefill = false\n", Verdict.APPLIES, "stands still"),
        (
            "serving.chunked_prefill",
            "chunked_prefill = false\nrequests = { output_tokens = 1 }\n",
            Verdict.NO_EFFECT,
            "one token",
        ),
        ("serving.speculative", "", Verdict.APPLIES, "1.72 tokens"),
        ("serving.speculative", "requests = { output_tokens = 1 }\n", Verdict.NO_EFFECT, "nothing to guess"),
        ("serving.quantization", "", Verdict.APPLIES, "of weights instead of"),
        ("serving.quantization", 'weights = "w8a8"\n', Verdict.ALREADY_ON, "w8a8"),
        ("host.graph_mode", "", Verdict.APPLIES, "costs the host"),
        ("host.graph_mode", "requests = { output_tokens = 1 }\n", Verdict.NO_EFFECT, "nothing but prompts"),
        ("host.graph_mode", "graph_mode = true\n", Verdict.ALREADY_ON, "captured graphs"),
    ],
)
def test_toggles_say_what_they_do_to_a_service(tmp_path, identifier, body, expected, word):
    answer = verdict(tmp_path, identifier, body)
    assert answer.verdict is expected, answer.reason
    assert word in answer.reason


def test_recorded_sessions_share_what_was_said_where_they_are_long_enough(tmp_path):
    rows = "arrival_s,prompt_tokens,output_tokens,session\n0,100,10,a\n9,{},10,a\n"
    (tmp_path / "x.csv").write_text(rows.format(200))
    assert "1 of 2 recorded requests" in verdict(tmp_path, "serving.prefix_cache", 'file = "x.csv"\n').reason
    served = simulate_serving(scenario(tmp_path, 'file = "x.csv"\nprefix_cache = true\n'))
    assert served.run.requests.cached_tokens.tolist() == [0, 96]
    (tmp_path / "x.csv").write_text(rows.format(50))
    assert verdict(tmp_path, "serving.prefix_cache", 'file = "x.csv"\n').verdict is Verdict.NO_EFFECT


def test_more_places_apply_to_a_service_that_is_dynamic_already(tmp_path):
    answer = verdict(tmp_path, "serving.dynamic_batching", max_batch=64)
    assert (answer.verdict, "64 sequences instead of 32" in answer.reason) == (Verdict.APPLIES, True)


def test_formats_for_experts_do_nothing_to_a_dense_model(tmp_path):
    assert verdict(tmp_path, "serving.quantization", weights="mxfp4").verdict is Verdict.NO_EFFECT


def test_every_serving_toggle_names_a_real_switch():
    for item in SERVING:
        assert item.switches[0].framework == "vllm-ascend"
        assert item.risk
        assert item.undo
        assert item.verify
