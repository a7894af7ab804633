"""Advice on services: what requests lose time to, what helps, and what was looked at and is fine."""

from importlib import resources
from pathlib import Path

import pytest

from engine.advisor.advise import advise, examine
from engine.advisor.findings import Category
from engine.advisor.rules import rule_registry
from engine.optimizations.catalogue import optimization_registry
from engine.report.advice_document import advice_document
from engine.whatif.subject import scenario_subject
from engine.workloads.scenario_file import read_scenario
from engine.workloads.scenarios import shipped_scenarios


def advice_on(name: str, overrides=None):
    with resources.as_file(shipped_scenarios()[name]) as path:
        subject = scenario_subject(read_scenario(Path(path), overrides))
    return advise(examine(subject), subject, rule_registry(), optimization_registry())


def found(advice) -> set[str]:
    return {finding.rule for finding in advice.findings}


def test_a_queue_before_a_small_batch_is_given_more_places():
    advice = advice_on("serving_dynamic_batching", {("serving", "requests", "count"): 60})
    assert {"service.queueing", "service.small_batch", "service.padding", "service.host_bound"} <= found(advice)
    first = advice.recommendations[0]
    assert first.optimization.startswith("serving.dynamic_batching:max_batch=")
    assert first.gain.time_ratio.expected > 0.5
    assert first.category is Category.SERVING
    assert all(rule.startswith("service.") for rule in advice.checked_and_fine)


def test_prompts_that_begin_alike_are_cached():
    advice = advice_on("serving_prefix_cache")
    assert "service.prompts" in found(advice)
    assert "serving.prefix_cache" in [item.optimization for item in advice.recommendations]
    cached = {("serving", "prefix_cache"): True}
    assert "service.prompts" not in found(advice_on("serving_prefix_cache", cached))


def test_a_cache_that_finds_nothing_is_told():
    useless = {("serving", "prefix_cache"): True, ("serving", "requests", "shared_prefixes"): 0}
    assert "service.useless_cache" in found(advice_on("serving_prefix_cache", useless))


def test_sequences_that_have_to_leave_need_room_or_fewer_of_them():
    crowded = {
        ("serving", "batching"): "continuous",
        ("serving", "max_batch"): 24,
        ("serving", "kv_blocks"): 200,
        ("serving", "requests"): {"arrival": "at_once", "count": 24, "prompt_tokens": 50, "output_tokens": 400},
    }
    advice = advice_on("serving_dynamic_batching", crowded)
    assert "service.preemption" in found(advice)


def test_a_services_advice_is_a_document_with_its_switches():
    document = advice_document(advice_on("serving_decode_latency"))
    graph = next(item for item in document["recommendations"] if item["id"] == "host.graph_mode")
    assert graph["gain"]["time_ratio"]["expected"] == pytest.approx(0.45, abs=0.1)
    assert any(switch["framework"] == "vllm-ascend" for switch in graph["how_to_apply"])


def test_late_requests_are_told_with_the_limit_that_keeps_them_on_time():
    uneven = {
        ("serving", "batching"): "continuous",
        ("serving", "max_batch"): 16,
        ("serving", "max_batched_tokens"): 32768,
        ("serving", "requests"): {
            "rate_per_s": 0.3,
            "count": 60,
            "prompt_tokens": {"mean": 1500, "sigma": 1.5, "max": 30000},
            "output_tokens": 100,
        },
    }
    advice = advice_on("serving_dynamic_batching", uneven)
    late = next(finding for finding in advice.findings if finding.rule == "service.late")
    assert "latest: request " in late.problem
    action = next(item for item in advice.recommendations if item.id == "service.limit.max_batched_tokens")
    assert action.how_to_apply[0].switch.startswith("--max-num-batched-tokens ")
