"""What the shipped jobs come to when their optimizations are switched on: nothing is fitted to the claims they test."""

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from engine.workloads.results import RunResult
from engine.workloads.scenario import RunSettings
from engine.workloads.scenario_file import read_scenario
from engine.workloads.scenarios import shipped_scenarios
from engine.workloads.simulate import simulate

ALL_FUSED: dict[str, Any] = {
    f"fusion.{name}": {}
    for name in ("attention", "rms_norm", "swiglu", "rope", "cross_entropy", "optimizer", "gradient_accumulation")
}


def run(name: str, optimizations: dict[str, Any], overrides: dict[tuple[str, ...], Any] | None = None) -> RunResult:
    with resources.as_file(shipped_scenarios()[name]) as path:
        scenario = read_scenario(Path(path), overrides)
    chosen = {**scenario.optimizations, **optimizations}
    return simulate(replace(scenario, run=RunSettings(2, ()), optimizations=chosen))


def peak_bytes(result: RunResult) -> int:
    return max(int(memory.peak_reserved_bytes[-1]) for memory in result.memory)


def test_an_attention_layer_in_one_kernel_is_half_as_fast_again() -> None:
    plain, fused = run("attention_layer", {}), run("attention_layer", {"fusion.attention": {}})
    assert fused.tokens_per_s >= 1.45 * plain.tokens_per_s


def test_a_dense_job_trains_between_the_stated_rates() -> None:
    micro: dict[tuple[str, ...], Any] = {("batch", "micro"): 1}
    plain = run("dense_one_server", {}, micro)
    fused = run("dense_one_server", ALL_FUSED, micro)
    assert plain.tokens_per_s / 8 == pytest.approx(12_500, rel=0.10)
    assert fused.tokens_per_s / 8 == pytest.approx(18_200, rel=0.10)


def test_managed_memory_alone_wins_little_and_keeping_less_costs_time() -> None:
    plain, managed = run("managed_memory", {}), run("managed_memory", {"memory.amc": {}})
    less = run("managed_memory", {"memory.amc": {}, "memory.recompute": {}})
    assert 0.97 < peak_bytes(managed) / peak_bytes(plain) < 1.0
    assert managed.step_ns[-1] == plain.step_ns[-1]
    assert peak_bytes(less) <= (19.1 / 28.5) * peak_bytes(plain)
    assert 1.15 < less.step_ns[-1] / plain.step_ns[-1] < 1.4
