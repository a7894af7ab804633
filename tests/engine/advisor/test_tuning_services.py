"""Tuning a service: what requests lose time to, and what wins it back."""

from importlib import resources
from pathlib import Path

import pytest

from engine.advisor.bottlenecks import Loss, bottlenecks
from engine.advisor.service_losses import phase_ratios
from engine.advisor.tuning import tune
from engine.optimizations.catalogue import optimization_registry
from engine.whatif.subject import scenario_subject
from engine.workloads.scenario_file import read_scenario
from engine.workloads.scenarios import shipped_scenarios


def subject(name: str, overrides=None):
    with resources.as_file(shipped_scenarios()[name]) as path:
        return scenario_subject(read_scenario(Path(path), overrides))


def rounds_of(name: str, overrides=None, rounds: int = 2):
    return list(tune(subject(name, overrides), optimization_registry(), rounds))


def test_requests_that_wait_for_places_get_them():
    fewer = {("serving", "requests", "count"): 60}
    first = rounds_of("serving_dynamic_batching", fewer, rounds=1)[0]
    assert first.bottleneck.loss is Loss.QUEUE
    assert first.added.startswith("serving.dynamic_batching:max_batch=")
    assert first.gain_ratio > 1.0


def test_a_host_that_is_behind_replays_graphs():
    first = rounds_of("serving_decode_latency", rounds=1)[0]
    assert (first.bottleneck.loss, first.added) == (Loss.DISPATCH, "host.graph_mode")


def test_shared_prompts_are_cached_once_the_host_is_out_of_the_way():
    assert [item.added for item in rounds_of("serving_prefix_cache")] == ["host.graph_mode", "serving.prefix_cache"]


def test_what_a_service_is_for_comes_after_what_it_loses():
    side = subject("serving_prefix_cache").baseline()
    losses = [item.loss for item in bottlenecks(side)]
    assert losses.index(Loss.DISPATCH) < losses.index(Loss.PROMPTS)
    assert sum(phase_ratios(side.service.run).values()) == pytest.approx(1.0)


def test_what_refuses_requests_is_not_kept():
    crowded = {("serving", "timeout_s"): 20.0, ("serving", "requests", "count"): 60}
    (item,) = rounds_of("serving_dynamic_batching", crowded, rounds=1)

    assert "leaves more requests unanswered" in {attempt.reason for attempt in item.attempts}
    assert item.side.serving.finished == item.side.serving.requests
