"""Weights, gradients and activations in DDR between their uses: what the peak loses and what the step pays."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import ScenarioError
from engine.devices.catalogue import load_device
from engine.graph.task_graph import TaskKind
from engine.runtime.allocators.interface import RequestKind
from engine.workloads.items import Item, ItemKind
from engine.workloads.memory_plan import program_requests
from engine.workloads.persistent_memory import persistent_memory
from engine.workloads.results import RunResult, RunStatus
from engine.workloads.run_state import prepared_run
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate
from engine.workloads.tiering import copy_ns
from tests.support.scheduled_steps import ALONE, scheduled_steps, step_times_ns

FUSED: dict[str, Any] = {"fusion.attention": {}, "fusion.rms_norm": {}, "fusion.swiglu": {}, "fusion.rope": {}}
OVERLAPS = {f"communication.overlap_{what}": {} for what in ("gradients", "parameters", "tensor_parallel")}
MODEL = {"layers": 8, "hidden": 1024, "ffn": 4096, "heads": 16, "vocab": 2000}
LAYER_ELEMENTS = 4 * 1024**2 + 3 * 1024 * 4096 + 2 * 1024
EVERYTHING = ["weights", "gradients", "optimizer_state", "activations"]


def scenario(cold: list[str], distance: int = 1, **tables: Any) -> Scenario:
    document: dict[str, Any] = {
        "model": MODEL,
        "device": {"preset": "910b2"},
        "batch": {"micro": 16, "global": 32, "sequence_length": 4096},
        "run": {"steps": 3},
        "optimizations": FUSED,
        "memory": {},
    }
    document |= tables
    tiers = {"tiering": {"cold": cold, "prefetch_distance": distance}} if cold else {}
    return scenario_from_document({**document, "memory": {**document["memory"], **tiers}}, Path())


@cache
def run(cold: tuple[str, ...], distance: int = 1) -> RunResult:
    return simulate(scenario(list(cold), distance))


@pytest.mark.parametrize(("name", "element_bytes"), [("weights", 2), ("gradients", 4)])
def test_the_peak_falls_by_less_than_the_layers_hold_and_everything_is_back_after_the_step(
    name: str, element_bytes: int
) -> None:
    plain, tiered = run(()).memory[0], run((name,)).memory[0]
    fall = int(plain.peak_allocated_bytes[2] - tiered.peak_allocated_bytes[2])
    # The peak stands at the turn, where the layers next to it are in use.
    assert 3 * LAYER_ELEMENTS * element_bytes < fall < 8 * LAYER_ELEMENTS * element_bytes
    assert tiered.end_allocated_bytes[2] == pytest.approx(plain.end_allocated_bytes[2], rel=1e-3)


def test_a_larger_distance_keeps_more_in_hbm_and_costs_less_time() -> None:
    for name in ("weights", "gradients", "activations"):
        peaks = [int(run((name,), distance).memory[0].peak_allocated_bytes[2]) for distance in (1, 2, 3)]
        times = [int(run((name,), distance).step_ns[2]) for distance in (1, 2, 3)]
        assert peaks == sorted(peaks)
        assert times == sorted(times, reverse=True)


def test_late_copies_hold_the_step_for_as_long_as_they_are_late() -> None:
    tiered, plain = run(("gradients",)), run(())
    moved = int(tiered.memory[0].migrated_bytes[2])
    assert 0 < tiered.step_ns[2] - plain.step_ns[2] < copy_ns(load_device("910b2"), moved) * 1.1


def test_weights_are_copied_out_once_and_brought_back_for_every_pass() -> None:
    items = prepared_run(scenario(["weights"])).programs[0].items
    counts = {kind: sum(item.kind is kind for item in items) for kind in ItemKind}
    assert counts[ItemKind.EVICT] < counts[ItemKind.PREFETCH]
    assert counts[ItemKind.DROP] >= counts[ItemKind.TAKE] > 0
    moved = int(run(("weights",)).memory[0].migrated_bytes[2])
    assert moved == 2 * LAYER_ELEMENTS * (counts[ItemKind.EVICT] + counts[ItemKind.PREFETCH])


@pytest.mark.parametrize("allocator", ["caching", "expandable", "stitching", "static", "amc"])
def test_every_allocator_serves_layers_that_come_and_go(allocator: str) -> None:
    tables = {"batch": {"micro": 2, "global": 4, "sequence_length": 1024}, "memory": {"allocator": allocator}}
    result = simulate(scenario(EVERYTHING, **tables))
    assert result.status is RunStatus.DONE
    assert result.memory[0].peak_allocated_bytes[2] < simulate(scenario([], **tables)).memory[0].peak_allocated_bytes[2]


def test_activations_leave_as_the_offloading_of_activations_lets_them() -> None:
    offloaded = simulate(scenario([], optimizations={**FUSED, "memory.offload": {"prefetch_distance": 2}}))
    tiered = run(("activations",), 2)
    assert tiered.step_ns.tolist() == offloaded.step_ns.tolist()
    assert tiered.memory[0].peak_allocated_bytes.tolist() == offloaded.memory[0].peak_allocated_bytes.tolist()


JOBS: dict[str, dict[str, Any]] = {
    "one device": {},
    "single precision": {"model": {**MODEL, "dtype": "fp32"}},
    "shared master weights": {"optimizations": {**FUSED, "memory.reuse_fp32_parameters": {}}},
    "replicas": {"device": {"preset": "910b2", "count": 2}},
    "overlaps": {
        "device": {"preset": "910b2", "count": 8},
        "parallel": {"tensor": 2, "pipeline": 2},
        "optimizations": {**FUSED, **OVERLAPS},
    },
    "chunks of stages": {
        "device": {"preset": "910b2", "count": 2},
        "parallel": {"pipeline": 2, "virtual_pipeline": 2},
        "memory": {"recompute": "full"},
    },
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("cold", [["weights", "gradients"], EVERYTHING], ids=len)
def test_both_resolutions_of_a_step_agree_whatever_is_cold(job: str, cold: list[str]) -> None:
    given_ = scenario(cold, **{"batch": {"micro": 1, "global": 4, "sequence_length": 1024}, **JOBS[job]})
    for by_operator_ns, in_blocks_ns in step_times_ns(given_, ALONE, 1):
        assert by_operator_ns == in_blocks_ns
    for by_operator_ns, in_blocks_ns in step_times_ns(given_, None, 1):
        assert by_operator_ns == pytest.approx(in_blocks_ns, rel=1e-3)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sampled_from(["weights", "gradients", "optimizer_state"]), min_size=1, max_size=3, unique=True),
    st.integers(1, 2),
    st.sampled_from(list(JOBS)),
)
def test_every_tensor_is_in_hbm_where_it_is_used_and_nowhere_twice(cold: list[str], distance: int, job: str) -> None:
    tables = {"batch": {"micro": 1, "global": 4, "sequence_length": 512}, **JOBS[job]}
    given_ = scenario(cold, distance, **tables)
    state = prepared_run(given_)
    for program, memory in zip(state.programs, state.memories, strict=True):
        held = persistent_memory(state.scenario, program.weights)
        there = dict.fromkeys(range(len(held.sizes)), True)
        placed = program_requests(memory.plan, program.items, [0] * len(program.items), 1)
        own = np.flatnonzero(placed.log.block < memory.plan.persistent_count)
        requests = {int(item): [] for item in placed.item}
        for row in own.tolist():
            requests[int(placed.item[row])].append(row)
        for at, item in enumerate(program.items):
            for row in requests.get(at, []):
                block, allocates = int(placed.log.block[row]), placed.log.kind[row] == RequestKind.ALLOCATE
                assert there[block] is not allocates
                there[block] = allocates
            assert all(there[block] for block in _used(item, program.items, held))
        assert all(there.values())


def _used(item: Item, items: tuple[Item, ...], held: Any) -> list[int]:
    if item.block.startswith("optimizer"):
        return [*held.weights, *held.gradients, *held.state]
    if not item.block.startswith("layer."):
        return []
    slots = sorted({other.slot for other in items if other.block.startswith("layer.")})
    number = slots.index(item.slot)
    used = [held.weights[number]] if held.weights else []
    return used + ([held.gradients[number]] if held.gradients and item.block.startswith("layer.backward") else [])


@pytest.mark.parametrize("name", ["weights", "gradients"])
def test_a_distance_that_keeps_every_layer_is_refused(name: str) -> None:
    model = {**MODEL, "layers": 1, "dtype": "fp32"}
    with pytest.raises(ScenarioError, match=f"no layer's {name} have uses more than prefetch_distance 9 apart"):
        simulate(scenario([name], 9, model=model))


def test_a_stage_without_room_for_moves_keeps_its_layers_where_another_has_room() -> None:
    tables = {"device": {"preset": "910b2", "count": 4}, "parallel": {"pipeline": 4}}
    batch = {"micro": 1, "global": 4, "sequence_length": 1024}
    state = prepared_run(scenario(["gradients"], 6, batch=batch, **tables))
    evicts = [sum(item.kind is ItemKind.EVICT for item in program.items) for program in state.programs]
    assert evicts[0] > 0
    assert evicts[-1] == 0


def test_gradients_leave_only_after_what_writes_them() -> None:
    (graph, result), _ = next(scheduled_steps(scenario(["gradients"]), ALONE, 1))
    copies = np.flatnonzero(graph.kind == TaskKind.COPY)
    clearing = next(at for at, name in enumerate(graph.name.tolist()) if "Zeros" in graph.strings.text(name)) + 1
    assert graph.kind[clearing] == TaskKind.VECTOR
    assert (result.start_ns[copies] >= result.end_ns[clearing]).all()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"memory": {"on_out_of_memory": "split"}}, "abort"),
        ({"optimizations": {"memory.offload": {}}}, "keep one of the two"),
        ({"memory": {"limit_bytes": 1 << 50}, "model": {**MODEL, "layers": 512, "hidden": 8192, "ffn": 32768}}, "DDR"),
    ],
)
def test_what_cannot_leave_is_said(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        simulate(scenario(EVERYTHING, 9, **tables))
