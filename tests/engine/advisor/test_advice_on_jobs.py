"""Advice on real captures and simulated jobs: what an engineer would act on, in that order."""

from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

from engine.advisor.advise import advise, examine
from engine.advisor.examination import examine_job
from engine.advisor.recommendations import Advice, GainMethod
from engine.advisor.rules import rule_registry
from engine.core.units import NS_PER_MS
from engine.devices.spec import DType
from engine.optimizations.catalogue import optimization_registry
from engine.whatif.subject import ScenarioSubject, Subject, capture_subject
from engine.workloads.scenario import Recompute
from engine.workloads.scenario_file import read_scenario
from tests.support.opened import opened_job


def advice_on(subject: Subject) -> Advice:
    return advise(examine(subject), subject, rule_registry(), optimization_registry())


@cache
def qwen(path: Path) -> Advice:
    return advice_on(capture_subject(opened_job(path)))


@pytest.fixture
def four_ranks(captures: Path) -> Advice:
    return qwen(captures / "ascend" / "910b-qwen3-0.6b-pp2dp2")


def shipped(name: str) -> ScenarioSubject:
    path = Path(str(resources.files("engine.workloads.scenarios").joinpath(f"{name}.toml")))
    return ScenarioSubject(read_scenario(path))


def test_qwens_second_stage_comes_first_then_its_layers_then_more_micro_batches(four_ranks: Advice) -> None:
    first, second, third = four_ranks.recommendations[:3]
    assert first.id == "fusion.cross_entropy"
    assert "rank 2 (stage 2 of 2)" in first.problem
    assert second.id == "pipeline.balance_stages"
    assert "231.1 ms against 400.8 ms" in second.problem
    assert third.id == "pipeline.more_micro_batches"
    assert {item.loss.id for item in (first, second, third)} == {"waiting for stage 2"}


def test_qwens_gains_are_reruns_and_what_needs_a_twin_says_so(four_ranks: Advice) -> None:
    first, second, third = four_ranks.recommendations[:3]
    assert first.gain.method is second.gain.method is GainMethod.RERUN
    assert first.gain.time_ns is not None
    assert 30 * NS_PER_MS < first.gain.time_ns.low <= first.gain.time_ns.expected <= first.gain.time_ns.high
    assert first.gain.time_ns.high < 100 * NS_PER_MS
    assert third.gain.method is GainMethod.ANALYTIC
    assert third.optimization is None
    assert any("twin" in text for text in third.gain.assumptions)


def test_overlap_on_qwen_can_win_no_more_than_its_transfer(four_ranks: Advice) -> None:
    (transfer,) = [item for item in four_ranks.findings if item.rule == "communication.exposed_transfer"]
    assert transfer.cost_ns == pytest.approx(102 * NS_PER_MS, rel=0.01)
    overlaps = [item for item in four_ranks.recommendations if item.id.startswith("communication.overlap")]
    assert all(item.gain.time_ns is not None and item.gain.time_ns.high <= transfer.cost_ns for item in overlaps)


def test_expandable_segments_are_known_to_be_on_in_qwen_and_nothing_simulated_is_advised(four_ranks: Advice) -> None:
    told = {item.id: item.verdict for item in four_ranks.passed}
    assert told["memory.expandable_segments"] == "already on"
    assert told["fusion.attention"] == "already on"
    assert not any(item.simulator_only for item in four_ranks.recommendations)


def test_together_wins_less_than_the_sum_and_more_than_the_best(four_ranks: Advice) -> None:
    combined = four_ranks.combined
    assert combined is not None
    assert combined.gain.time_ns is not None
    singles = [
        item.gain.time_ns.expected
        for item in four_ranks.recommendations
        if item.optimization is not None and item.gain.time_ns is not None
    ]
    assert max(singles) < combined.gain.time_ns.expected < combined.sum_ns


def test_the_critical_path_of_qwen_runs_mostly_on_its_second_stage(four_ranks: Advice) -> None:
    path = four_ranks.path
    assert path is not None
    assert path.length_ns == pytest.approx(810 * NS_PER_MS, rel=0.01)
    assert path.ranks[2] + path.ranks.get(3, 0) > path.length_ns / 2
    assert sum(path.parts.values()) == path.length_ns == sum(path.ranks.values())


def test_qwens_vocabulary_is_no_multiple_of_what_cube_cores_fetch(four_ranks: Advice) -> None:
    (padded,) = [item for item in four_ranks.recommendations if item.id == "computing.aligned_shapes"]
    assert "151936" in padded.problem
    assert padded.title == "Pad the vocabulary"
    assert padded.gain.method is GainMethod.NOT_QUANTIFIABLE


def test_predictions_that_rest_on_inferred_dependencies_are_marked_weak(four_ranks: Advice) -> None:
    assert four_ranks.recommendations[0].gain.weak
    assert "weak prediction" in " ".join(four_ranks.recommendations[0].gain.assumptions)


def test_missing_ranks_come_first_where_they_hide_three_quarters_of_the_step(captures: Path) -> None:
    job = opened_job(captures / "ascend" / "910b-cnn-ddp2-text" / "level1")
    found = advice_on(capture_subject(job))
    assert found.recommendations[0].id == "open_peers"
    assert "ranks 2, 3, 4, 5, 6, 7" in found.recommendations[0].title


def test_a_straggler_is_named_with_what_it_costs(captures: Path) -> None:
    found = advice_on(capture_subject(opened_job(captures / "pytorch" / "dlrm-v100-8ranks")))
    assert found.recommendations[0].id == "even_out.rank_7"
    assert all("torch_npu" not in switch.switch for item in found.recommendations for switch in item.how_to_apply)


def test_a_rank_with_three_times_the_batch_is_found_on_hosts_too(captures: Path) -> None:
    job = opened_job(captures / "pytorch" / "gpt-cpu" / "ddp4_gloo")
    found = advise(examine_job(job), None, rule_registry(), optimization_registry())
    first = found.recommendations[0]
    assert first.id == "even_out.rank_2"
    assert first.gain.method is GainMethod.ANALYTIC


def test_waiting_for_data_is_judged_against_steps_with_what_lies_between_them(captures: Path) -> None:
    found = advice_on(capture_subject(opened_job(captures / "pytorch" / "resnet50-schema2021.json.gz")))
    first = found.recommendations[0]
    assert first.id == "io.data_loading"
    assert first.gain.time_ratio is not None
    assert first.gain.time_ratio.expected == pytest.approx(0.29, abs=0.01)


def test_unfused_attention_is_found_and_its_gain_is_that_of_a_rerun() -> None:
    subject = shipped("unfused_attention")
    found = advice_on(subject)
    first = found.recommendations[0]
    assert first.id == "fusion.attention"
    assert first.gain.method is GainMethod.RERUN
    assert first.gain.time_ns is not None
    assert first.gain.time_ns.low == first.gain.time_ns.expected == first.gain.time_ns.high


def test_bubbles_are_answered_by_a_job_with_more_micro_batches_that_is_really_run() -> None:
    found = advice_on(shipped("pipeline_bubbles"))
    (more,) = [item for item in found.recommendations if item.id == "pipeline.more_micro_batches"]
    assert more.gain.method is GainMethod.RERUN
    assert more.gain.time_ratio is not None
    # Two stages with two micro-batches idle a third of the time, with four a fifth.
    assert 0.05 < more.gain.time_ratio.expected < 1 / 3


def test_products_in_single_precision_are_found_and_mixed_precision_is_run() -> None:
    given = shipped("unfused_attention").scenario
    wide = replace(given, model=replace(given.model, dtype=DType.FP32))
    found = advice_on(ScenarioSubject(wide))
    (mixed,) = [item for item in found.recommendations if item.optimization == "precision.mixed"]
    assert mixed.findings[0].rule == "computing.single_precision"
    assert mixed.gain.method is GainMethod.RERUN


def test_a_healthy_job_is_not_advised_to_change_for_nothing() -> None:
    found = advice_on(shipped("healthy_training"))
    high = [item for item in found.recommendations if item.gain.time_ratio and item.gain.time_ratio.expected > 0.05]
    assert [item.id for item in high] == []


SMALL = """
name = "too small"
[model]
layers = 4
hidden = 2048
ffn = 5632
heads = 16
vocab = 32000
[device]
preset = "910b2"
[batch]
micro = 4
global = 4
sequence_length = 2048
[memory]
limit_bytes = {limit}
"""


def out_of_memory(folder: Path, limit_bytes: int) -> Advice:
    path = folder / "job.toml"
    path.write_text(SMALL.format(limit=limit_bytes), encoding="utf-8")
    return advice_on(ScenarioSubject(read_scenario(path)))


def test_a_job_out_of_memory_is_advised_what_lets_it_run(tmp_path: Path) -> None:
    found = out_of_memory(tmp_path, 10_800_000_000)
    assert "memory.recompute" in {item.id for item in found.recommendations[:2]}
    assert all(item.findings[0].stops_run for item in found.recommendations[:2])
    # A job that never ran has no step to win time against.
    assert all(item.gain.time_ns is None for item in found.recommendations[:2])
    assert "runs to its end" in found.recommendations[0].gain.assumptions[0]


def test_a_job_nothing_can_save_says_so_and_calls_nothing_else_fine(tmp_path: Path) -> None:
    found = out_of_memory(tmp_path, 9_000_000_000)
    assert found.recommendations == ()
    assert [finding.rule for finding in found.unanswered] == ["memory.out_of_memory"]
    assert found.checked_and_fine == ()


def test_recomputation_with_room_to_spare_is_tried_without() -> None:
    given = shipped("unfused_attention").scenario
    subject = ScenarioSubject(replace(given, memory=replace(given.memory, recompute=Recompute.FULL)))
    found = advice_on(subject)
    (less,) = [item for item in found.recommendations if item.id == "memory.less_recompute"]
    assert less.gain.time_ns is not None
    assert less.gain.time_ns.expected > 0
