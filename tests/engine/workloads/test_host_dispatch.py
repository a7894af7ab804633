"""How operators reach the device: the task queue's levels and captured graphs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core.errors import ScenarioError
from engine.workloads.host_dispatch import USUAL_LEVEL, dispatching_device, load_task_queue_parts
from engine.workloads.results import RunResult
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate

TINY = {"layers": 4, "hidden": 256, "ffn": 512, "heads": 4, "vocab": 512}
WIDE = {"layers": 2, "hidden": 4096, "ffn": 11008, "heads": 32, "vocab": 8192}


def scenario(optimizations: dict[str, Any], model: dict[str, Any], length: Any = 128, **tables: Any) -> Scenario:
    document = {
        "model": model,
        "device": {"preset": "910b2"},
        "batch": {"micro": 1, "global": 2, "sequence_length": length},
        "optimizations": optimizations,
        **tables,
    }
    return scenario_from_document(document, Path())


def run(optimizations: dict[str, Any], model: dict[str, Any] = TINY, length: int = 128) -> RunResult:
    return simulate(scenario(optimizations, model, length))


def test_the_usual_dispatch_is_level_one() -> None:
    plain = scenario({}, TINY)
    assert dispatching_device(plain) is plain.device
    same = scenario({"host.async_dispatch": {"level": USUAL_LEVEL}}, TINY)
    assert dispatching_device(same).host_dispatch_ns == plain.device.host_dispatch_ns


def test_every_level_moves_work_off_the_programs_thread() -> None:
    parts = load_task_queue_parts()
    assert parts.operator_ns(0) > parts.operator_ns(1) > parts.operator_ns(2)
    assert parts.operator_ns(0) == parts.framework_ns + parts.workspace_ns + parts.launch_ns
    assert parts.operator_ns(1) == pytest.approx(22_000, rel=0.02), "the timeline's own spacing of operators"


def test_a_step_bound_by_the_host_follows_the_level() -> None:
    step = {level: run({"host.async_dispatch": {"level": level}}).step_ns[-1] for level in (0, 1, 2)}
    assert step[0] > step[1] > step[2]
    assert step[1] == run({}).step_ns[-1]
    assert step[0] / step[1] == pytest.approx(load_task_queue_parts().ratio(0), rel=0.05)


def test_graph_mode_removes_the_host_time_of_small_operators() -> None:
    assert run({"host.graph_mode": {}}).step_ns[-1] < 0.6 * run({}).step_ns[-1]


@pytest.mark.parametrize("toggle", [{"host.graph_mode": {}}, {"host.async_dispatch": {"level": 2}}])
def test_a_step_bound_by_computing_gains_nothing(toggle: dict[str, Any]) -> None:
    plain, changed = run({}, WIDE, 4096), run(toggle, WIDE, 4096)
    assert changed.step_ns[-1] == pytest.approx(plain.step_ns[-1], rel=1e-3)


def test_captured_graphs_keep_a_pool_of_their_own() -> None:
    plain, captured = run({}, WIDE, 1024), run({"host.graph_mode": {}}, WIDE, 1024)
    assert np.array_equal(captured.memory[0].end_allocated_bytes, plain.memory[0].end_allocated_bytes)
    assert captured.memory[0].driver_calls[0] >= plain.memory[0].driver_calls[0]
    assert captured.memory[0].driver_calls[-1] == 0


@pytest.mark.parametrize(
    ("optimizations", "tables", "message"),
    [
        ({"host.graph_mode": {}}, {"batch": {"sequence_length": {"mean": 100.0, "max": 128}}}, "static shapes"),
        ({"host.graph_mode": {}}, {"memory": {"on_out_of_memory": "split"}}, "cannot split"),
        ({"host.graph_mode": {"x": 1}}, {}, "not a key"),
        ({"host.async_dispatch": {"level": 3}}, {}, "0, 1 and 2"),
        ({"host.async_dispatch": {}}, {"device": {"preset": "a100-80g"}}, "torch_npu"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    optimizations: dict[str, Any], tables: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        simulate(scenario(optimizations, TINY, **tables))


def test_a_scenario_may_state_its_hosts_time_per_operator() -> None:
    slow = simulate(scenario({}, TINY, device={"preset": "910b2", "host_dispatch_us": 48}))
    assert slow.step_ns[-1] == pytest.approx(4 * run({}).step_ns[-1], rel=0.05)
    with pytest.raises(ScenarioError, match="at least 0"):
        scenario({}, TINY, device={"preset": "910b2", "host_dispatch_us": -1})
