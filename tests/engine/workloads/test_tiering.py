"""Cold tensors in DDR: what the peak loses, what the step pays, what a scenario may say."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core.errors import ScenarioError
from engine.core.units import MIB
from engine.devices.catalogue import load_device
from engine.graph.task_graph import TaskKind
from engine.runtime.allocators.interface import DriverAction
from engine.workloads.executed import Executed
from engine.workloads.items import ItemKind
from engine.workloads.recording import record_run
from engine.workloads.results import RunResult, RunStatus
from engine.workloads.run_state import prepared_run
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate
from engine.workloads.step_graph import StepGraphWriter
from engine.workloads.step_memory import serve_step
from engine.workloads.tiering import PIECE_BYTES, copy_ns, moved_pieces

FUSED: dict[str, Any] = {"fusion.attention": {}, "fusion.rms_norm": {}, "fusion.swiglu": {}, "fusion.rope": {}}
MODEL = {"layers": 8, "hidden": 1024, "ffn": 4096, "heads": 16, "vocab": 2000}
STATE_BYTES = 12 * (8 * (4 * 1024**2 + 3 * 1024 * 4096) + 2 * 2000 * 1024)
"""Twelve bytes for every weight of eight gated layers and two vocabulary matrices; norms are below the tolerance."""


def scenario(memory: dict[str, Any], **tables: Any) -> Scenario:
    document: dict[str, Any] = {
        "model": MODEL,
        "device": {"preset": "910b2"},
        "batch": {"micro": 16, "global": 32, "sequence_length": 4096},
        "run": {"steps": 3},
        "optimizations": FUSED,
    }
    return scenario_from_document({**document, "memory": memory, **tables}, Path())


@cache
def run(distance: int) -> RunResult:
    """Returns a run whose optimizer state leaves HBM, or stays there for distance 0."""
    tiering = {"cold": ["optimizer_state"], "prefetch_distance": distance}
    return simulate(scenario({"tiering": tiering} if distance else {}))


def test_the_peak_falls_by_what_was_evicted() -> None:
    plain, tiered = run(0).memory[0], run(5).memory[0]
    fall = int(plain.peak_allocated_bytes[2] - tiered.peak_allocated_bytes[2])
    assert fall == pytest.approx(STATE_BYTES, rel=2e-3)
    moved = int(tiered.migrated_bytes[2]) // 2
    # A block larger than what is asked for by less than a MiB is not split, so a piece may hold that much more.
    assert abs(fall - moved) < MIB * len(moved_pieces(np.array([moved])))
    assert plain.migrated_bytes[2] == 0
    assert tiered.peak_reserved_bytes[2] < plain.peak_reserved_bytes[2]


def test_hidden_copies_leave_the_step_as_long_as_it_was() -> None:
    assert run(5).step_ns[2] == run(0).step_ns[2]


def test_a_prefetch_distance_too_small_exposes_the_copies() -> None:
    copy_time_ns = copy_ns(load_device("910b2"), STATE_BYTES)
    exposed_ns = [int(run(distance).step_ns[2] - run(0).step_ns[2]) for distance in (2, 4, 5)]
    assert exposed_ns[0] > exposed_ns[1] > exposed_ns[2] == 0
    assert exposed_ns[0] < 2 * copy_time_ns


def test_everything_is_back_after_the_step() -> None:
    plain, tiered = run(0).memory[0], run(5).memory[0]
    assert tiered.end_allocated_bytes[2] == pytest.approx(plain.end_allocated_bytes[2], rel=1e-3)
    assert tiered.end_allocated_bytes[0] == pytest.approx(tiered.end_allocated_bytes[2], rel=1e-3)


def test_every_move_is_a_driver_action_with_an_address_and_a_copy_on_the_timeline() -> None:
    given = scenario({"tiering": {"cold": ["optimizer_state"]}})
    state = prepared_run(given)
    memory = state.memories[0]
    assert memory.load(state.persistent[0])
    served: list[Any] = []
    executed = serve_step(state, 0, 0, served)
    assert executed is not None
    driver = served[0][1].run.driver
    moves = np.flatnonzero(driver.action == DriverAction.MIGRATE)
    pieces = moved_pieces(np.full(3, STATE_BYTES // 3))
    assert len(moves) == 2 * len(pieces)
    assert (driver.address[moves] > 0).all()
    assert (np.diff(driver.request) >= 0).all()
    assert _copied_bytes(state.machine, state.transfer_bytes, state.classes[0], executed) == (
        driver.size_bytes[moves].sum()
    )


def _copied_bytes(machine: Any, transfer_bytes: Any, ranks: Any, executed: list[Executed]) -> float:
    writer = StepGraphWriter(machine, transfer_bytes)
    writer.add_class(0, ranks, executed)
    graph = writer.graph()
    return float(graph.bytes[graph.kind == TaskKind.COPY].sum())


def test_a_capture_of_such_a_run_shows_the_copies() -> None:
    result = run(5)
    trace = record_run(result.profiled, result.histories, 1).ranks[0].trace
    copies = trace.strings.text
    names = [copies(int(name)) for name in trace.events.name]
    assert names.count("MEMCPY_ASYNC") == 2 * len(moved_pieces(np.full(3, STATE_BYTES // 3)))


def test_copies_take_the_host_link_at_its_stated_rate() -> None:
    device = load_device("910b2")
    assert copy_ns(device, 2 * PIECE_BYTES) - copy_ns(device, PIECE_BYTES) == pytest.approx(PIECE_BYTES / 25, rel=0.3)


def test_pieces_are_as_large_as_what_they_are_made_of() -> None:
    pieces = moved_pieces(np.array([PIECE_BYTES, PIECE_BYTES + 1, 5]))
    assert pieces.tolist() == [PIECE_BYTES, PIECE_BYTES, 1, 5]


def test_a_program_without_cold_tensors_has_no_copies() -> None:
    kinds = {item.kind for item in prepared_run(scenario({})).programs[0].items}
    assert not kinds & {ItemKind.EVICT, ItemKind.PREFETCH}


@pytest.mark.parametrize("allocator", ["caching", "caching-cuda", "expandable", "stitching", "static", "amc"])
def test_every_allocator_serves_two_tiers(allocator: str) -> None:
    batch = {"micro": 2, "global": 4, "sequence_length": 1024}
    memory = {"allocator": allocator, "tiering": {"cold": ["optimizer_state"]}}
    result = simulate(scenario(memory, batch=batch))
    assert result.status is RunStatus.DONE
    assert result.memory[0].migrated_bytes[2] > 0


@pytest.mark.parametrize(
    "tensors",
    [
        {"inner_flags": {"memory_hierachy": "DDR"}},
        'inner_flags={"memory_hierachy": "DDR"}',
        {"inner_flags": {"memory_hierarchy": "DDR"}},
    ],
)
def test_the_tier_may_be_given_by_the_flags_of_a_tensor(tensors: Any) -> None:
    tiering = scenario({"tensors": {"optimizer_state": tensors}}).memory.tiering
    assert tiering is not None
    assert tiering.cold == ("optimizer_state",)


def test_a_tensor_flagged_for_the_hbm_stays_there() -> None:
    assert scenario({"tensors": {"weights": 'inner_flags={"memory_hierachy": "HBM"}'}}).memory.tiering is None


def test_the_optimization_switches_it_on() -> None:
    tiering = scenario({}, optimizations={"memory.tiering": {"prefetch_distance": 4}}).memory.tiering
    assert tiering is not None
    assert (tiering.cold, tiering.prefetch_distance) == (("optimizer_state",), 4)


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"tiering": {"cold": ["optimiser_state"]}}, "did you mean optimizer_state"),
        ({"tiering": {"cold": ["weight"]}}, "did you mean weights"),
        ({"tiering": {"cold": "optimizer_state"}}, "must be a list"),
        ({"tiering": {"distance": 2}}, "did you mean prefetch_distance"),
        ({"tensors": {"weights": {"inner_flags": {"memory_hierachy": "L2"}}}}, "known: HBM, DDR"),
        ({"tensors": {"weights": {"flags": {}}}}, "memory.tensors.weights must be"),
        ({"tensors": {"weights": "inner_flags={"}}, "cannot be read"),
        (
            {
                "tiering": {"cold": ["optimizer_state"]},
                "tensors": {"optimizer_state": {"inner_flags": {"memory_hierachy": "HBM"}}},
            },
            "memory.tensors keeps in HBM",
        ),
    ],
)
def test_what_cannot_be_done_is_said(memory: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        scenario(memory)


def test_a_distance_the_step_has_no_room_for_names_the_largest() -> None:
    given = scenario({"tiering": {"cold": ["optimizer_state"], "prefetch_distance": 50}})
    with pytest.raises(ScenarioError, match=r"a step of 40 blocks allows 1 to 13"):
        simulate(given)


def test_state_that_does_not_fit_into_the_host_s_memory_is_refused() -> None:
    model = {**MODEL, "layers": 128, "hidden": 4096, "ffn": 16384, "heads": 32}
    given = scenario({"tiering": {"cold": ["optimizer_state"]}, "limit_bytes": 10**12}, model=model)
    with pytest.raises(ScenarioError, match=r"into DDR; device 910b2 has"):
        simulate(given)


def test_splitting_micro_batches_and_tiers_exclude_each_other() -> None:
    given = scenario({"tiering": {"cold": ["optimizer_state"]}, "on_out_of_memory": "split"})
    with pytest.raises(ScenarioError, match="abort"):
        simulate(given)
