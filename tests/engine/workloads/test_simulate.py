"""Whole runs: times, memory, what the training loop does when memory runs out."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from engine.core.errors import ScenarioError
from engine.report.simulation import run_document, run_text
from engine.workloads.results import RunResult, RunStatus
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate

SMALL = {"layers": 4, "hidden": 1024, "ffn": 4096, "heads": 16, "vocab": 32000}
FUSED = {"fusion.attention": {}, "fusion.rms_norm": {}, "fusion.swiglu": {}, "fusion.rope": {}}


def run(**tables: Any) -> RunResult:
    document: dict[str, Any] = {
        "model": SMALL,
        "device": {"preset": "910b2", "count": 1},
        "batch": {"micro": 1, "global": 4, "sequence_length": 2048},
        "run": {"steps": 3},
        "optimizations": FUSED,
    }
    for name, values in tables.items():
        document[name] = values if name == "optimizations" else {**document.get(name, {}), **values}
    return simulate(scenario_from_document(document, Path()))


def test_the_first_step_pays_for_the_memory_and_the_others_are_alike() -> None:
    result = run()
    assert result.status is RunStatus.DONE
    assert result.step_ns[0] > result.step_ns[1] == result.step_ns[2]
    assert result.memory[0].driver_calls[0] > 0 == result.memory[0].driver_calls[1]


def test_the_same_seed_gives_the_same_run() -> None:
    lengths = {"distribution": "lognormal", "mean": 1024, "sigma": 0.5, "max": 2048}
    first, second = (run(batch={"sequence_length": lengths}, run={"steps": 5}) for _ in range(2))
    assert np.array_equal(first.step_ns, second.step_ns)
    assert np.array_equal(first.memory[0].peak_reserved_bytes, second.memory[0].peak_reserved_bytes)
    document = {"model": SMALL, "device": {"preset": "910b2"}, "batch": {"sequence_length": lengths}, "seed": 1}
    other = simulate(scenario_from_document(document, Path()))
    assert not np.array_equal(other.tokens[:3], first.tokens[:3])


def test_fusions_make_steps_shorter() -> None:
    assert run(optimizations={}).step_ns[2] > 1.3 * run().step_ns[2]


def test_bubbles_follow_the_schedule() -> None:
    """p stages and m micro-batches of one length idle (p − 1)/(m + p − 1) of the step; ends and waits blur it."""
    even = {"model": {"vocab": 512, "layers": 8}, "device": {"count": 4}, "parallel": {"pipeline": 4}}
    few = run(**even, batch={"global": 4}).bubble_ratio
    many = run(**even, batch={"global": 32}).bubble_ratio
    assert few > 2.5 * many
    assert few == pytest.approx(3 / 7, rel=0.35)


def test_interleaving_shortens_the_bubbles() -> None:
    plain = run(device={"count": 2}, parallel={"pipeline": 2}, batch={"global": 4})
    interleaved = run(device={"count": 2}, parallel={"pipeline": 2, "virtual_pipeline": 2}, batch={"global": 4})
    assert interleaved.bubble_ratio < plain.bubble_ratio
    assert interleaved.status is RunStatus.DONE


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("stages", [2, 4])
def test_every_schedule_ends(schedule: str, stages: int) -> None:
    result = run(device={"count": stages}, parallel={"pipeline": stages, "schedule": schedule}, batch={"global": 6})
    assert result.status is RunStatus.DONE


def test_gpipe_holds_more_activations_than_one_forward_one_backward() -> None:
    peaks = {
        schedule: run(device={"count": 2}, parallel={"pipeline": 2, "schedule": schedule}, batch={"global": 8})
        .memory[0]
        .peak_allocated_bytes.max()
        for schedule in ("gpipe", "1f1b")
    }
    assert peaks["gpipe"] > peaks["1f1b"]


def test_recomputing_saves_memory_and_costs_time() -> None:
    plain, full = run(), run(memory={"recompute": "full"})
    assert full.memory[0].peak_allocated_bytes[2] < plain.memory[0].peak_allocated_bytes[2]
    assert full.step_ns[2] > 1.15 * plain.step_ns[2]


def test_everything_but_the_weights_is_free_after_a_step() -> None:
    memory = run().memory[0]
    assert memory.end_allocated_bytes[0] == memory.end_allocated_bytes[2]
    assert memory.end_allocated_bytes[2] == pytest.approx(memory.persistent_bytes, rel=1e-3)


def test_eighteen_bytes_are_kept_per_parameter() -> None:
    """4 layers of 12·h² and two matrices of the vocabulary, gated: 4·(4 + 3·4)·h² in layers."""
    parameters = 4 * (4 * 1024**2 + 3 * 1024 * 4096) + 2 * 32000 * 1024
    assert run().memory[0].persistent_bytes == pytest.approx(18 * parameters, rel=1e-3)


def test_overlapping_gradients_hides_communication() -> None:
    layout = {"device": {"count": 8}, "batch": {"global": 8}}
    exposed = run(**layout)
    hidden = run(**layout, optimizations={**FUSED, "communication.overlap_gradients": {}})
    assert hidden.communication_share_ratio < exposed.communication_share_ratio
    assert hidden.step_ns[2] < exposed.step_ns[2]


def test_too_little_memory_ends_the_run_and_says_for_what() -> None:
    result = run(memory={"limit_bytes": 2_600_000_000})
    assert result.status is RunStatus.OUT_OF_MEMORY
    assert result.memory[0].failed_bytes > 0


def test_the_loop_can_split_the_micro_batch_instead() -> None:
    batch = {"micro": 4, "global": 8}
    peak = int(run(batch=batch).memory[0].peak_reserved_bytes.max())
    limit = {"limit_bytes": int(peak * 0.8), "on_out_of_memory": "split"}
    split = run(batch=batch, memory=limit)
    assert split.status is RunStatus.DONE
    assert split.memory[0].caught.sum() > 0
    assert split.step_ns[2] > run(batch=batch).step_ns[2]
    assert run(batch=batch, memory={"limit_bytes": int(peak * 0.8)}).status is RunStatus.OUT_OF_MEMORY


@pytest.mark.parametrize("count", [2, 4])
def test_experts_and_contexts_can_be_spread(count: int) -> None:
    model = {**SMALL, "ffn": 1024, "experts": 8, "top_k": 2}
    experts = run(model=model, device={"count": count}, parallel={"expert": count})
    contexts = run(device={"count": count}, parallel={"context": count})
    assert experts.status is contexts.status is RunStatus.DONE
    assert experts.memory[0].persistent_bytes < run(model=model).memory[0].persistent_bytes


def test_an_optimization_that_does_not_act_here_is_refused() -> None:
    with pytest.raises(ScenarioError, match="does not act on a simulated training job"):
        run(optimizations={"serving.prefix_cache": {}})


@pytest.mark.parametrize("allocator", ["caching", "caching-cuda", "expandable", "stitching", "static", "amc"])
def test_every_allocator_runs_a_job_under_its_limit(allocator: str) -> None:
    memory = run(memory={"allocator": allocator, "limit_bytes": 6_000_000_000}).memory[0]
    assert 0 < memory.peak_allocated_bytes.max() <= memory.peak_reserved_bytes.max() <= 6_000_000_000


def test_rules_of_automatic_memory_management_come_from_the_file_beside_the_scenario(tmp_path: Path) -> None:
    """Rules that give every free page back at each synchronisation leave less reserved after a step and cost calls."""
    rules = {"format": 1, "defragmentation": {"release_stranded_mib": 0}}
    (tmp_path / "release.json").write_text(json.dumps(rules), encoding="utf-8")
    lengths = {"distribution": "lognormal", "mean": 1024, "sigma": 0.5, "max": 2048}
    born = {"per_step": 8, "lifetime_steps": 2}
    document: dict[str, Any] = {"model": SMALL, "device": {"preset": "910b2"}, "run": {"steps": 5}}
    document |= {"batch": {"micro": 2, "global": 4, "sequence_length": lengths}, "optimizations": FUSED}
    memory = {"allocator": "amc", "long_lived": born}
    shipped = simulate(scenario_from_document({**document, "memory": memory}, tmp_path)).memory[0]
    memory["rules"] = "release.json"
    ruled = simulate(scenario_from_document({**document, "memory": memory}, tmp_path)).memory[0]
    assert ruled.end_reserved_bytes[4] < ruled.peak_reserved_bytes[4]
    assert ruled.end_reserved_bytes[4] < shipped.end_reserved_bytes[4]
    assert ruled.driver_calls[1:].sum() > shipped.driver_calls[1:].sum()
    assert ruled.stall_ns[4] > shipped.stall_ns[4]


def test_compaction_is_labelled_as_something_only_a_simulator_does(tmp_path: Path) -> None:
    rules = {"simulator_only_compaction": True, "defragmentation": {"release_stranded_mib": 0}}
    (tmp_path / "compact.json").write_text(json.dumps(rules), encoding="utf-8")
    document: dict[str, Any] = {"model": SMALL, "device": {"preset": "910b2"}, "run": {"steps": 5}}
    born = {"per_step": 8, "lifetime_steps": 2}
    memory: dict[str, Any] = {"allocator": "amc", "rules": "compact.json", "long_lived": born}
    result = simulate(scenario_from_document({**document, "memory": memory}, tmp_path))
    assert result.memory[0].compacted_bytes.sum() > 0
    history = run_document(result, {})["history"][0]
    assert history["simulator_only_compacted_bytes"] == result.memory[0].compacted_bytes.tolist()
    text = StringIO()
    Console(file=text, width=200).print(run_text(result))
    assert "only a simulator can do that" in text.getvalue()
    memory["tiering"] = {"cold": ["optimizer_state"]}
    with pytest.raises(ScenarioError, match="simulator_only_compaction"):
        simulate(scenario_from_document({**document, "memory": memory}, tmp_path))


def test_two_allocators_at_once_are_refused() -> None:
    with pytest.raises(ScenarioError, match="several allocators"):
        run(optimizations={"memory.amc": {}, "memory.stitching": {}})
