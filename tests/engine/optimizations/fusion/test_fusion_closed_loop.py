"""Each fusion on a recorded simulated job against the job simulated with it: here the truth is known."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.graph.checks import topological_order
from engine.optimizations.fusion import OPTIMIZATIONS
from engine.optimizations.interface import Bound, CapturePlan, Optimization, Verdict
from engine.optimizations.memory.outcomes import plan_memory
from engine.replay.capture_graph import CaptureGraph
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import scenario_from_document
from tests.support.closed_loop import SimulatedRecording, recorded

MODEL = {"layers": 2, "hidden": 2048, "ffn": 5632, "heads": 16, "vocab": 32000}
JOBS: dict[str, dict[str, Any]] = {
    "dense": {},
    "host-bound": {"batch": {"sequence_length": 256, "global": 4}},
    "gpt": {"model": {"gated": False}},
    "tensor": {"device": {"count": 2}, "parallel": {"tensor": 2}},
    "eight tensors, host-bound": {
        "device": {"count": 8},
        "parallel": {"tensor": 8},
        "batch": {"sequence_length": 1024},
    },
    "stages": {"device": {"count": 2}, "parallel": {"pipeline": 2}, "batch": {"global": 3}},
    "interleaved": {
        "model": {"layers": 4},
        "device": {"count": 2},
        "parallel": {"pipeline": 2, "schedule": "interleaved", "virtual_pipeline": 2},
    },
    "contexts": {"device": {"count": 2}, "parallel": {"context": 2}},
    "recomputed": {"memory": {"recompute": "full"}},
    "replicas": {"device": {"count": 2}, "parallel": {"data": 2}},
}
CASES = [
    *((job, name) for job in ("dense", "host-bound") for name in (
        "attention", "cross_entropy", "rms_norm", "swiglu", "rope", "softmax_dropout", "optimizer",
        "gradient_accumulation",
    )),
    *(("gpt", name) for name in ("attention", "add_norm", "softmax_dropout", "gradient_accumulation")),
    *(("tensor", name) for name in ("attention", "rms_norm", "matmul_all_reduce")),
    ("eight tensors, host-bound", "matmul_all_reduce"),
    ("stages", "attention"),
    ("stages", "cross_entropy"),
    ("interleaved", "attention"),
    ("contexts", "attention"),
    ("recomputed", "attention"),
    ("recomputed", "rms_norm"),
    ("replicas", "attention"),
    ("replicas", "swiglu"),
]  # fmt: skip
TOLERANCE_RATIO = 0.05


def optimization(name: str) -> Optimization:
    return next(item for item in OPTIMIZATIONS if item.id == f"fusion.{name}")


def scenario(job: str) -> Scenario:
    changes = JOBS[job]
    base: dict[str, dict[str, Any]] = {
        "model": MODEL,
        "device": {"preset": "910b2", "count": 1},
        "batch": {"micro": 1, "global": 2, "sequence_length": 4096},
    }
    tables = {key: {**base.get(key, {}), **changes.get(key, {})} for key in {**base, **changes}}
    return scenario_from_document(tables, Path())


@lru_cache(maxsize=len(JOBS))
def recording(job: str) -> tuple[SimulatedRecording, CaptureGraph]:
    found = recorded(scenario(job))
    return found, capture_graph(found.job)


def plan_of(job: str) -> CapturePlan:
    capture = recording(job)[1]
    return CapturePlan(capture, capture.graph, scenario(job).device)


def step_ns(plan: CapturePlan) -> float:
    return float(replay_time(plan.capture, plan.graph).step_ns.mean())


@pytest.mark.parametrize(("job", "name"), CASES)
def test_the_prediction_on_the_recording_is_what_the_job_does_with_it(job: str, name: str) -> None:
    plan, toggle = plan_of(job), optimization(name)
    assert toggle.check_capture(plan, toggle.defaults).verdict is Verdict.APPLIES
    assert toggle.check_scenario(scenario(job), toggle.defaults).verdict is Verdict.APPLIES
    predicted = step_ns(toggle.on_capture(plan, toggle.defaults, Bound.EXPECTED))
    truth = recorded(toggle.on_scenario(scenario(job), toggle.defaults)).step_ns
    assert predicted == pytest.approx(truth, rel=TOLERANCE_RATIO)


@pytest.mark.parametrize(("job", "name"), [case for case in CASES if case[0] in ("dense", "tensor")])
def test_a_fusion_applies_once_in_the_order_of_its_bounds_and_leaves_an_order(job: str, name: str) -> None:
    plan, toggle = plan_of(job), optimization(name)
    times = []
    for bound in Bound:
        changed = toggle.on_capture(plan, toggle.defaults, bound)
        assert toggle.on_capture(changed, toggle.defaults, bound).graph is changed.graph
        assert len(topological_order(changed.graph)) == len(changed.graph)
        assert changed.graph is not plan.graph
        times.append(step_ns(changed))
    assert times[0] >= times[1] >= times[2]
    assert toggle.check_capture(changed, toggle.defaults).verdict is not Verdict.APPLIES


def test_a_job_with_everything_on_has_nothing_left_to_fuse() -> None:
    chosen = {f"fusion.{name}": {} for name in ("attention", "rms_norm", "swiglu", "rope", "cross_entropy")}
    fused = replace(scenario("dense"), optimizations=chosen)
    capture = capture_graph(recorded(fused).job)
    plan = CapturePlan(capture, capture.graph, fused.device)
    for identifier in chosen:
        toggle = optimization(identifier.partition(".")[2])
        assert toggle.check_capture(plan, toggle.defaults).verdict is Verdict.ALREADY_ON
        assert toggle.check_scenario(fused, toggle.defaults).verdict is Verdict.ALREADY_ON
        assert toggle.on_capture(plan, toggle.defaults, Bound.HIGH) is plan


def test_fusions_that_are_switched_on_together_do_not_take_kernels_from_each_other() -> None:
    plan, chosen = plan_of("dense"), scenario("dense")
    for name in ("attention", "cross_entropy", "rms_norm", "swiglu", "rope", "gradient_accumulation"):
        toggle = optimization(name)
        plan, chosen = toggle.on_capture(plan, {}, Bound.EXPECTED), toggle.on_scenario(chosen, {})
    assert step_ns(plan) == pytest.approx(recorded(chosen).step_ns, rel=TOLERANCE_RATIO)


def test_blocks_of_scores_are_no_longer_asked_for() -> None:
    plan, toggle = plan_of("dense"), optimization("attention")
    trace = plan.capture.job.ranks[0].trace
    edit = toggle.on_capture(plan, toggle.defaults, Bound.EXPECTED).edits[0]
    gone = (edit.size_bytes == 0) & (trace.memory.allocations.size_bytes > 0)
    score_bytes = 16 * 4096 * 4096 * 2
    assert int(trace.memory.allocations.size_bytes[gone].max()) >= score_bytes
    kept = trace.memory.allocations.size_bytes[~gone]
    assert np.array_equal(edit.size_bytes[~gone], kept)


@pytest.mark.parametrize("name", ["attention", "rms_norm", "swiglu", "softmax_dropout", "optimizer"])
def test_the_memory_log_without_intermediates_peaks_where_the_job_does(name: str) -> None:
    plan, toggle = plan_of("dense"), optimization(name)
    predicted = plan_memory(toggle.on_capture(plan, toggle.defaults, Bound.EXPECTED))[0].outcome.peak_allocated_bytes
    truth = recorded(toggle.on_scenario(scenario("dense"), toggle.defaults)).result.memory[0].peak_allocated_bytes[-1]
    assert predicted == pytest.approx(int(truth), rel=0.01)


def test_a_loss_over_a_vocabulary_that_ranks_share_cannot_be_one_kernel() -> None:
    toggle = optimization("cross_entropy")
    answer = toggle.check_capture(plan_of("tensor"), {})
    assert answer.verdict is Verdict.NO_EFFECT
    assert "has to run between" in answer.reason


def test_transfers_of_single_devices_are_not_joined_with_products() -> None:
    answer = optimization("matmul_all_reduce").check_capture(plan_of("dense"), {})
    assert (answer.verdict, answer.reason) == (
        Verdict.NO_EFFECT,
        "tensor parallelism of 1: no tensor is shared",
    )
