"""What fusions answer on real captures, and what a rerun gives there."""

from functools import cache
from pathlib import Path

import pytest

from engine.graph.checks import topological_order
from engine.optimizations.fusion import OPTIMIZATIONS
from engine.optimizations.interface import Applicability, Bound, CapturePlan, Optimization, Verdict
from engine.replay.capture_graph import CaptureGraph
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from tests.support.opened import opened_job

MS = 1e6
QWEN3 = "ascend/910b-qwen3-0.6b-pp2dp2"
H100 = "pytorch/h100-qwen1.5-0.5b.json.gz"


@cache
def graph_of(path: Path) -> CaptureGraph:
    return capture_graph(opened_job(path))


def plan_of(path: Path) -> CapturePlan:
    capture = graph_of(path)
    return CapturePlan(capture, capture.graph)


def optimization(name: str) -> Optimization:
    return next(item for item in OPTIMIZATIONS if item.id == f"fusion.{name}")


def answer(plan: CapturePlan, name: str) -> Applicability:
    toggle = optimization(name)
    return toggle.check_capture(plan, toggle.defaults)


def gains_ms(plan: CapturePlan, name: str) -> list[float]:
    toggle = optimization(name)
    before = float(replay_time(plan.capture).step_ns.mean())
    changed = [toggle.on_capture(plan, toggle.defaults, bound) for bound in Bound]
    for item in changed:
        assert len(topological_order(item.graph)) == len(item.graph)
    return [(before - float(replay_time(item.capture, item.graph).step_ns.mean())) / MS for item in changed]


def test_qwen3_already_runs_with_most_fusions(captures: Path) -> None:
    plan = plan_of(captures / QWEN3)
    for name in ("attention", "rms_norm", "swiglu", "rope"):
        assert answer(plan, name).verdict is Verdict.ALREADY_ON
    assert "no derivative" in answer(plan, "add_norm").reason
    assert answer(plan, "matmul_all_reduce").reason == "tensor parallelism of 1: no tensor is shared"


def test_the_loss_of_qwen3s_second_stage_is_worth_most(captures: Path) -> None:
    plan = plan_of(captures / QWEN3)
    found = answer(plan, "cross_entropy")
    assert found.verdict is Verdict.APPLIES
    assert "are 48 kernels and take 100.1 ms" in found.reason
    low, expected, high = gains_ms(plan, "cross_entropy")
    assert 0 < low <= expected <= high <= 100.1
    others = [gains_ms(plan, name)[1] for name in ("optimizer", "gradient_accumulation")]
    assert expected > max(others) > 0


def test_qwen3s_additions_and_optimizer_kernels_are_counted(captures: Path) -> None:
    plan = plan_of(captures / QWEN3)
    assert answer(plan, "gradient_accumulation").reason.startswith("226 FP32 += BF16 additions")
    assert "kernels run one by one on 2 ranks" in answer(plan, "optimizer").reason


def test_a_gpu_job_in_single_operators_wins_by_norms_and_rotations(captures: Path) -> None:
    plan = plan_of(captures / H100)
    for name, least in (("rms_norm", 3.0), ("swiglu", 0.3), ("rope", 1.5)):
        low, expected, high = gains_ms(plan, name)
        assert 0 < low <= expected <= high
        assert expected > least
    assert answer(plan, "matmul_all_reduce").reason == "the operators are Ascend's"


@pytest.mark.parametrize("path", ["pytorch/df_index_resolver.json.gz", "pytorch/alexnet.json.gz"])
def test_a_job_without_such_chains_has_nothing_to_fuse(captures: Path, path: str) -> None:
    plan = plan_of(captures / path)
    for toggle in OPTIMIZATIONS:
        found = toggle.check_capture(plan, toggle.defaults)
        assert found.verdict in (Verdict.NO_EFFECT, Verdict.ALREADY_ON, Verdict.UNKNOWN)
        assert found.reason
