"""What-if on simulated jobs: every figure is a run, sets are rerun together, what conflicts is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.progress import NEVER_CANCELLED, no_progress
from engine.optimizations.interface import Verdict
from engine.optimizations.selection import enabled_from_texts
from engine.whatif.run import applicability, what_if
from engine.whatif.scenario_changes import changed
from engine.whatif.scenario_side import scenario_side
from engine.whatif.scenario_what_if import saved_ns
from engine.whatif.subject import ScenarioSubject, open_subject
from engine.workloads.scenario_file import scenario_from_document
from tests.support.sample_optimizations import sample_registry


def job(**tables):
    document = {
        "name": "small",
        "model": {"layers": 2, "hidden": 1024, "ffn": 2816, "heads": 16, "vocab": 4000},
        "device": {"preset": "910b2", "count": 1},
        "batch": {"micro": 1, "global": 1, "sequence_length": 2048},
        "run": {"steps": 2},
    }
    return scenario_from_document({**document, **tables}, Path())


def replicated(count=4):
    return job(
        device={"preset": "910b2", "count": count},
        batch={"micro": 1, "global": 2 * count, "sequence_length": 2048},
    )


def ask(scenario, *texts):
    registry = sample_registry()
    return what_if(ScenarioSubject(scenario), enabled_from_texts(texts, registry), registry)


def test_a_gain_is_the_difference_of_two_runs_of_their_own():
    scenario = job()

    result = ask(scenario, "fusion.attention")

    alone = scenario_side(job(optimizations={"fusion.attention": {}}))
    assert result.candidate.mean_step_ns == alone.mean_step_ns
    assert result.gain.expected_ns == saved_ns(scenario_side(scenario), alone) > 0
    assert result.speedup_ratio > 1
    assert [item.id for item in result.contributions] == ["fusion.attention"]
    assert result.contributions[0].gain_ns == result.contributions[0].alone_ns == result.gain.expected_ns


def test_contributions_lead_from_the_baseline_to_the_candidate():
    result = ask(job(), "fusion.rms_norm", "fusion.attention")

    assert [item.id for item in result.contributions] == ["fusion.attention", "fusion.rms_norm"]
    assert sum(item.gain_ns for item in result.contributions) == pytest.approx(result.gain.expected_ns)


def test_operators_of_both_sides_are_named_with_their_time():
    result = ask(job(), "fusion.attention")

    assert "FlashAttentionScore" in result.candidate.operator_ns
    assert "FlashAttentionScore" not in result.baseline.operator_ns
    assert result.baseline.operator_ns["MatMulV3"] == result.candidate.operator_ns["MatMulV3"] > 0


def test_operator_times_count_every_rank():
    one, four = scenario_side(replicated(1)), scenario_side(replicated(4))

    assert four.operator_ns["MatMulV3"] == 4 * one.operator_ns["MatMulV3"]
    assert sorted(four.peak_reserved_bytes) == [0, 1, 2, 3]


def test_what_conflicts_is_refused_with_the_reason_and_nothing_is_rerun():
    result = ask(job(), "memory.expandable_segments", "memory.max_split_size")

    assert [item.id for item in result.refused] == ["memory.expandable_segments"]
    assert "pages are mapped" in result.refused[0].reason
    assert result.candidate is result.baseline
    assert result.contributions == ()


def test_what_conflicts_with_the_job_as_it_runs_is_refused_too():
    result = ask(job(optimizations={"memory.expandable_segments": {}}), "memory.max_split_size")

    assert "memory.expandable_segments conflicts with memory.max_split_size" in result.refused[0].reason


def test_what_misses_another_is_refused_unless_the_job_has_it():
    needing = "communication.overlap_parameters"

    assert "needs communication.overlap_gradients" in ask(job(), needing).refused[0].reason
    assert not ask(job(optimizations={"communication.overlap_gradients": {}}), needing).refused


def test_what_no_simulated_job_acts_on_is_refused_rather_than_ignored():
    registry = sample_registry()
    scenario = job(optimizations={"memory.max_split_size": {}})
    chosen = enabled_from_texts(["fusion.attention"], registry)

    broken = changed(job(kind="serving"), chosen)

    assert "serving" in broken.refused[0].reason
    assert changed(scenario, chosen).scenario.enabled("memory.max_split_size")


def test_already_on_changes_nothing_and_says_so():
    result = ask(job(optimizations={"fusion.attention": {}}), "fusion.attention")

    assert result.applicability["fusion.attention"].verdict is Verdict.ALREADY_ON
    assert result.contributions == ()
    assert result.gain.expected_ns == 0
    assert result.inferred_share_ratio is None


def test_a_faster_job_needs_fewer_devices_for_the_same_throughput():
    result = ask(replicated(), "fusion.attention")

    assert result.devices_for_equal_throughput < 4
    fewer = result.devices_for_equal_throughput
    batch = {"micro": 1, "global": 2 * fewer, "sequence_length": 2048}
    on = {"fusion.attention": {}}
    again = scenario_side(job(device={"preset": "910b2", "count": fewer}, batch=batch, optimizations=on))
    assert again.tokens_per_s >= result.baseline.tokens_per_s


def test_the_timeline_of_a_side_holds_all_ranks():
    side = scenario_side(replicated(2))

    assert [entry.rank for entry in side.record(no_progress, NEVER_CANCELLED).ranks] == [0, 1]


def test_every_optimization_has_an_answer_before_it_is_pressed():
    found = applicability(ScenarioSubject(job()), sample_registry())

    assert list(found) == [item.id for item in sample_registry()]
    assert {item.verdict for item in found.values()} == {Verdict.APPLIES}


def test_a_run_out_of_memory_is_told_and_no_gain_is_made_up():
    tight = job(memory={"limit_bytes": 64_000_000})

    result = ask(tight, "fusion.attention")

    assert result.baseline.status.value == "oom"
    assert result.speedup_ratio is None
    assert result.gain.expected_ns == 0
    assert any("ran out of memory" in note for note in result.notes)


def test_a_toml_file_is_a_scenario(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text('[model]\npreset = "qwen2-1.5b"\n[device]\npreset = "910b2"\n', encoding="utf-8")

    subject = open_subject([path], {("run", "steps"): 1})

    assert subject.scenario.run.steps == 1
    assert subject.path == path


def test_a_service_is_a_subject_like_any_job(tmp_path):
    path = tmp_path / "service.toml"
    path.write_text('kind = "serving"\n[model]\npreset = "qwen2-1.5b"\n[device]\npreset = "910b2"\n', encoding="utf-8")

    subject = open_subject([path])

    assert subject.baseline().serving is not None


IDS = [item.id for item in sample_registry()]


@given(st.lists(st.sampled_from(IDS), unique=True))
def test_switching_on_leaves_the_scenario_as_it_was_and_off_again_gives_it_back(ids):
    scenario = job()
    chosen = enabled_from_texts(ids, sample_registry())

    on = changed(scenario, chosen)

    assert scenario == job()
    assert {item.id for item in on.applied} == set(ids) == set(on.scenario.optimizations)
    assert changed(scenario, ()).scenario == scenario
