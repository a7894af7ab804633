"""What a simulated job does about its memory: offloading, releases, restarts, recomputation, parameters of rules."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core.errors import ScenarioError
from engine.workloads.results import RunResult
from engine.workloads.run_state import prepared_run
from engine.workloads.scenario import Recompute, Scenario
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate

MODEL = {"layers": 8, "hidden": 1024, "ffn": 2816, "heads": 16, "vocab": 4096}
FUSED: dict[str, Any] = {"fusion.attention": {}, "fusion.rms_norm": {}, "fusion.swiglu": {}, "fusion.rope": {}}
LEAK = {"long_lived": {"per_step": 4.0, "lifetime_steps": 0}}


def scenario(optimizations: dict[str, Any], **tables: Any) -> Scenario:
    document: dict[str, Any] = {
        "model": MODEL,
        "device": {"preset": "910b2", "count": tables.get("parallel", {}).get("pipeline", 1)},
        "batch": {"micro": 2, "global": 4, "sequence_length": 2048},
        "optimizations": {**FUSED, **optimizations},
        **tables,
    }
    return scenario_from_document(document, Path())


def run(optimizations: dict[str, Any], **tables: Any) -> RunResult:
    return simulate(scenario(optimizations, **tables))


def activation_bytes(result: RunResult) -> int:
    memory = result.memory[0]
    return int(memory.peak_allocated_bytes[-1]) - memory.persistent_bytes


@pytest.mark.parametrize("pipeline", [1, 2])
@pytest.mark.parametrize("distance", [1, 2])
def test_offloaded_activations_leave_hbm_and_come_back(pipeline: int, distance: int) -> None:
    tables = {"parallel": {"pipeline": pipeline}}
    plain, moved = run({}, **tables), run({"memory.offload": {"prefetch_distance": distance}}, **tables)
    memory = moved.memory[0]
    assert activation_bytes(moved) < activation_bytes(plain)
    assert int(memory.migrated_bytes[-1]) > 0 == int(plain.memory[0].migrated_bytes[-1])
    assert np.array_equal(memory.end_allocated_bytes, plain.memory[0].end_allocated_bytes)
    assert moved.step_ns[-1] >= plain.step_ns[-1]


def test_what_is_offloaded_is_what_a_layer_keeps_both_ways() -> None:
    moved = run({"memory.offload": {"prefetch_distance": 1}, "memory.recompute": {"granularity": "full"}})
    stream_bytes = 2 * 2048 * 1024 * 2
    assert int(moved.memory[0].migrated_bytes[-1]) % (2 * stream_bytes) == 0, "checkpoints alone: inputs of layers"


def test_a_longer_notice_hides_more_of_the_copies_and_holds_more() -> None:
    near, far = (run({"memory.offload": {"prefetch_distance": distance}}) for distance in (1, 4))
    assert far.step_ns[-1] <= near.step_ns[-1]
    assert activation_bytes(far) >= activation_bytes(near)


def test_offloading_is_recorded_operator_by_operator_as_it_was_scheduled() -> None:
    moved = run({"memory.offload": {}})
    assert moved.profiled is not None
    assert moved.profiled.steps


def test_a_periodic_check_gives_the_cache_back_and_pays_for_it() -> None:
    plain, checked = (run(chosen, run={"steps": 4}) for chosen in ({}, {"memory.periodic_check": {"every_steps": 2}}))
    reserved = checked.memory[0].end_reserved_bytes
    assert reserved[1] < reserved[0], "released after the second step"
    assert checked.step_ns[1] > plain.step_ns[1], "its driver calls"
    assert checked.step_ns[2] > plain.step_ns[2], "taking the memory again"
    assert checked.step_ns[0] == plain.step_ns[0]


def test_a_restart_costs_what_is_stated_and_forgets_what_leaked() -> None:
    leaking = run({}, run={"steps": 6}, memory=LEAK)
    fresh = run({"memory.restart": {"every_steps": 4, "cost_s": 2.5}}, run={"steps": 6}, memory=LEAK)
    assert fresh.step_ns[4] - leaking.step_ns[4] >= 2_500_000_000
    assert fresh.step_ns[3] == leaking.step_ns[3]
    assert fresh.memory[0].end_allocated_bytes[4] < leaking.memory[0].end_allocated_bytes[4]
    assert fresh.memory[0].end_allocated_bytes[3] == leaking.memory[0].end_allocated_bytes[3]


def test_recomputation_acts_by_its_granularity() -> None:
    chosen = prepared_run(scenario({"memory.recompute": {"granularity": "selective"}})).scenario
    assert chosen.memory.recompute is Recompute.SELECTIVE
    full, selective = (run({"memory.recompute": {"granularity": item}}) for item in ("full", "selective"))
    assert full.step_ns[-1] > run({}).step_ns[-1]
    assert activation_bytes(full) < activation_bytes(run({}))
    assert selective.step_ns[-1] == run({}).step_ns[-1], "flash attention keeps no scores: nothing to compute again"


def test_computing_the_activation_function_again_frees_its_result() -> None:
    again, plain = run({"memory.recompute": {"granularity": "activation"}}), run({})
    kept_bytes = 2 * 2048 * 2816 * 2
    saved_bytes = activation_bytes(plain) - activation_bytes(again)
    assert saved_bytes == pytest.approx(8 * kept_bytes, rel=0.13), "of eight layers, or of all but the one at work"
    assert plain.step_ns[-1] < again.step_ns[-1] < 1.1 * plain.step_ns[-1]


@pytest.mark.parametrize("data", [1, 2])
def test_reusing_fp32_parameters_saves_two_bytes_of_every_one_a_rank_keeps_the_state_of(data: int) -> None:
    tables = {"device": {"preset": "910b2", "count": data}, "parallel": {"data": data}}
    plain = run({}, **tables).memory[0].persistent_bytes
    reusing = run({"memory.reuse_fp32_parameters": {}}, **tables).memory[0].persistent_bytes
    parameters = plain / (6 + 12 / data)
    assert plain - reusing == pytest.approx(2 * parameters / data, rel=1e-3)


def test_the_collection_threshold_and_the_split_limit_act_with_their_values() -> None:
    lengths = {"distribution": "lognormal", "mean": 1024, "sigma": 0.6, "max": 2048}
    varied = {"batch": {"micro": 2, "global": 4, "sequence_length": lengths}, "run": {"steps": 12}}
    calls = [
        int(run({"memory.gc_threshold": {"threshold": ratio}}, **varied).memory[0].driver_calls.sum())
        for ratio in (0.02, 0.99)
    ]
    assert calls[0] > calls[1]
    reserved = [
        int(run({"memory.max_split_size": {"size_mb": size}}, **varied).memory[0].peak_reserved_bytes.max())
        for size in (21, 4096)
    ]
    assert reserved[0] != reserved[1]


def test_rules_of_automatic_memory_management_may_come_with_the_toggle(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"no_such_rule": 1}), encoding="utf-8")
    with pytest.raises(Exception, match="no_such_rule"):
        run({"memory.amc": {"rules": str(rules)}})
    assert run({"memory.amc": {}}).step_ns[-1] > 0


@pytest.mark.parametrize(
    ("optimizations", "tables", "message"),
    [
        ({"memory.offload": {}}, {"batch": {"sequence_length": {"mean": 100.0, "max": 128}}}, "one batch"),
        ({"memory.offload": {}}, {"memory": {"on_out_of_memory": "split"}}, "abort"),
        ({"memory.offload": {"prefetch_distance": 99}}, {}, "lower prefetch_distance"),
        ({"memory.restart": {"every_steps": 0}}, {}, "at least 1"),
        ({"memory.periodic_check": {"often": 1}}, {}, "not a key"),
        ({"memory.gc_threshold": {"threshold": 1.5}}, {}, "between 0 and 1"),
        ({"memory.max_split_size": {"size_mb": 20}}, {}, "at least 21"),
        ({"memory.recompute": {"granularity": "some"}}, {}, "granularity is"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    optimizations: dict[str, Any], tables: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        run(optimizations, **tables)


def test_tiers_act_wherever_the_toggle_was_switched_on() -> None:
    """What-if runs switch optimizations on after a file was read."""
    plain = scenario({})
    chosen = replace(plain, optimizations={**plain.optimizations, "memory.tiering": {"prefetch_distance": 2}})
    assert int(simulate(chosen).memory[0].migrated_bytes[-1]) > 0
