"""What fusions answer on simulated jobs, and that the catalogue's entries are complete."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.optimizations.fusion import OPTIMIZATIONS
from engine.optimizations.interface import Group, Optimization, Verdict
from engine.workloads.optimization_ids import OPTIMIZATION_IDS
from engine.workloads.scenario import Scenario, WorkloadKind
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate

MODEL = {"layers": 2, "hidden": 512, "ffn": 1408, "heads": 8, "vocab": 8000}
NOT_REAL = ("confusion_transpose", "TKernel", "AMC", "graph_op_shrink")


def scenario(preset: str = "910b2", **tables: Any) -> Scenario:
    base: dict[str, dict[str, Any]] = {
        "model": MODEL,
        "device": {"preset": preset, "count": 1},
        "batch": {"micro": 1, "global": 2, "sequence_length": 512},
    }
    merged = {key: {**base.get(key, {}), **tables.get(key, {})} for key in {**base, **tables}}
    return scenario_from_document(merged, Path())


def optimization(name: str) -> Optimization:
    return next(item for item in OPTIMIZATIONS if item.id == f"fusion.{name}")


def verdict(name: str, job: Scenario) -> Verdict:
    toggle = optimization(name)
    return toggle.check_scenario(job, toggle.defaults).verdict


def test_every_id_of_the_catalogue_has_its_fusion() -> None:
    known = {item for item in OPTIMIZATION_IDS if item.startswith("fusion.")}
    assert {item.id for item in OPTIMIZATIONS} == known


@pytest.mark.parametrize("toggle", OPTIMIZATIONS, ids=lambda item: item.id)
def test_an_entry_says_how_to_switch_it_on_for_real_undo_and_verify_it(toggle: Optimization) -> None:
    assert toggle.group is Group.FUSION
    assert not toggle.simulator_only
    assert all((toggle.title, toggle.summary, toggle.switches, toggle.risk, toggle.undo, toggle.verify))
    assert toggle.provenance
    for switch in toggle.switches:
        assert switch.framework
        assert switch.switch
        assert switch.documented_in
        assert not any(word in f"{switch.switch} {switch.note}" for word in NOT_REAL)


def test_a_dense_model_in_single_operators_can_fuse_all_of_them() -> None:
    names = (
        "attention",
        "rms_norm",
        "swiglu",
        "rope",
        "cross_entropy",
        "optimizer",
        "gradient_accumulation",
        "add_norm",
    )
    assert {verdict(name, scenario()) for name in names} == {Verdict.APPLIES}


def test_what_a_model_does_not_have_cannot_be_fused() -> None:
    gpt = scenario(model={"gated": False})
    assert {verdict(name, gpt) for name in ("rms_norm", "swiglu", "rope")} == {Verdict.NO_EFFECT}
    assert verdict("matmul_all_reduce", scenario()) is Verdict.NO_EFFECT
    assert verdict("custom", scenario()) is Verdict.NO_EFFECT


def test_experts_can_be_routed_by_fused_kernels_and_have_no_mc2() -> None:
    job = scenario(model={"experts": 4, "top_k": 2}, device={"count": 2}, parallel={"tensor": 2})
    assert verdict("custom", job) is Verdict.APPLIES
    assert verdict("matmul_all_reduce", job) is Verdict.NO_EFFECT
    dense = scenario(device={"count": 2}, parallel={"tensor": 2})
    assert verdict("matmul_all_reduce", dense) is Verdict.APPLIES


def test_cuda_jobs_run_with_what_megatron_has_always_shipped() -> None:
    job = scenario("a100-80g")
    for name in ("softmax_dropout", "optimizer", "gradient_accumulation"):
        assert verdict(name, job) is Verdict.ALREADY_ON


def test_a_softmax_inside_the_fused_attention_is_none_of_its_own() -> None:
    job = replace(scenario(), optimizations={"fusion.attention": {}})
    assert verdict("softmax_dropout", job) is Verdict.NO_EFFECT
    assert verdict("attention", job) is Verdict.ALREADY_ON


def test_a_service_is_priced_with_fused_kernels() -> None:
    job = replace(scenario(), kind=WorkloadKind.SERVING)
    assert {verdict(item.id.partition(".")[2], job) for item in OPTIMIZATIONS} == {Verdict.NO_EFFECT}


@pytest.mark.parametrize("toggle", OPTIMIZATIONS, ids=lambda item: item.id)
def test_a_fusion_that_applies_changes_the_run_and_one_that_does_not_does_not(toggle: Optimization) -> None:
    job = scenario()
    changed = toggle.on_scenario(job, toggle.defaults)
    assert changed.enabled(toggle.id)
    assert not job.enabled(toggle.id)
    applies = toggle.check_scenario(job, toggle.defaults).verdict is Verdict.APPLIES
    before, after = (simulate(item).step_ns.tolist() for item in (job, changed))
    assert (before != after) == applies
