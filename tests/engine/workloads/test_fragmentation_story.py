"""The article's case: nothing about time is written into the scenario, and what it leads to moves with its causes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.analyses.memory_trend import MemoryVerdict, memory_trend
from engine.analyses.slowdown import run_course
from engine.workloads.results import RunResult, RunStatus
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import read_scenario
from engine.workloads.simulate import simulate

SHIPPED = Path(__file__).parents[3] / "engine" / "workloads" / "scenarios" / "fragmentation_slowdown.toml"
EIGHTHS = 8


def job(steps: int, **changes: Any) -> Scenario:
    scenario = read_scenario(SHIPPED)
    born = {name: changes.pop(name) for name in ("per_step", "lifetime_steps") if name in changes}
    memory = replace(scenario.memory, long_lived=replace(scenario.memory.long_lived, **born))
    seed = changes.pop("seed", scenario.seed)
    memory = replace(memory, **changes)
    return replace(scenario, memory=memory, seed=seed, run=replace(scenario.run, steps=steps, profile_steps=()))


def onset(result: RunResult) -> int:
    """Returns the step by which the loop had caught its tenth error, the number of steps where it never did."""
    caught = np.cumsum(result.memory[0].caught)
    return int(np.argmax(caught >= 10)) if caught[-1] >= 10 else len(caught)


def loss(result: RunResult) -> float:
    """Returns how much longer a token takes in the last eighth than in the second."""
    per_token = result.step_ns / result.tokens
    part = len(per_token) // EIGHTHS
    return float(per_token[-part:].mean() / per_token[part : 2 * part].mean()) - 1


@pytest.mark.slow
def test_the_shipped_case_runs_flat_and_then_loses_a_fifth() -> None:
    result = simulate(job(1500))
    assert result.status is RunStatus.DONE
    assert loss(result) >= 0.20
    assert 300 <= onset(result) <= 1200
    assert memory_trend(result.memory[0]).verdict is MemoryVerdict.FRAGMENTATION


@pytest.mark.slow
def test_the_analysis_dates_the_slowdown_by_the_first_caught_error() -> None:
    result = simulate(job(1500))
    slowdown = run_course(result.histories[0]).slowdown
    assert slowdown is not None
    assert abs(slowdown.onset - int(np.argmax(result.memory[0].caught > 0))) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"limit_bytes": 9_900_000_000}, {"per_step": 8.0}])
def test_less_room_or_more_long_lived_tensors_bring_it_forward(changes: dict[str, Any]) -> None:
    assert onset(simulate(job(1000, **changes))) < onset(simulate(job(1000)))


@pytest.mark.slow
def test_the_seed_moves_the_onset() -> None:
    assert len({onset(simulate(job(1000, seed=seed))) for seed in range(3)}) > 1


@pytest.mark.slow
@pytest.mark.parametrize("allocator", ["expandable", "amc"])
def test_the_cures_keep_it_flat(allocator: str) -> None:
    result = simulate(job(1500, allocator=allocator))
    assert abs(loss(result)) < 0.05
    assert result.memory[0].caught.sum() == 0


@pytest.mark.slow
def test_a_leak_is_told_from_fragmentation() -> None:
    result = simulate(job(600, lifetime_steps=0.0, allocator="expandable"))
    assert memory_trend(result.memory[0]).verdict is MemoryVerdict.LEAK


def test_without_long_lived_tensors_nothing_piles_up() -> None:
    result = simulate(job(120, per_step=0.0))
    ends = result.memory[0].end_allocated_bytes
    assert len(set(ends.tolist())) == 1
    assert result.memory[0].caught.sum() == 0
