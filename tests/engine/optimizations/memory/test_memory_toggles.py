from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.core.units import MIB
from engine.formats.opening import open_job
from engine.formats.readers import built_in_readers
from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import AllocationEdit, Bound, Verdict
from engine.optimizations.memory import OPTIMIZATIONS
from engine.optimizations.memory.outcomes import plan_memory, recorded_memory
from engine.optimizations.selection import enabled_from_texts, refusals
from engine.trace.job import align
from engine.workloads.scenario_file import read_scenario
from tests.engine.replay.test_memory_replay import memory_trace
from tests.support.capture_graphs import plan_without_tasks

REGISTRY = optimization_registry()
FRAGMENTED = [
    (size, 10 * index, 10 * index + 5 if index % 2 else 10_000, -1) for index, size in enumerate([12, 14] * 8)
]
"""Every second block lives on and pins a segment of its own; what comes next needs more than any hole."""
GROWING = [*FRAGMENTED, *((40 + index, 1_000 + 10 * index, 9_000, -1) for index in range(8))]


def capture(blocks=GROWING, **keywords):
    return plan_without_tasks(align("made", [memory_trace(blocks, **keywords)]), {0: [500, 2_000]})


def checked(plan, optimization_id, **parameters):
    optimization = REGISTRY[optimization_id]
    return optimization.check_capture(plan, {**optimization.defaults, **parameters})


def changed(plan, optimization_id):
    optimization = REGISTRY[optimization_id]
    return optimization.on_capture(plan, optimization.defaults, Bound.EXPECTED)


def test_expandable_segments_lower_what_a_fragmented_capture_reserves():
    plan = capture()
    answer = checked(plan, "memory.expandable_segments")
    after = plan_memory(changed(plan, "memory.expandable_segments"))[0]
    assert answer.verdict is Verdict.APPLIES
    assert "more" not in answer.reason
    assert after.outcome.peak_reserved_bytes < recorded_memory(plan.capture)[0].outcome.peak_reserved_bytes


def test_expandable_segments_do_nothing_where_nothing_is_fragmented():
    plan = capture([(40, 10 * index, 10 * index + 5, -1) for index in range(8)])
    assert checked(plan, "memory.expandable_segments").verdict is Verdict.NO_EFFECT


def test_expandable_segments_are_known_to_be_on():
    plan = capture(environment={"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"})
    assert checked(plan, "memory.expandable_segments").verdict is Verdict.ALREADY_ON


def test_a_capture_without_blocks_cannot_say_what_an_allocator_would_do():
    plan = capture([])
    assert checked(plan, "memory.expandable_segments").verdict is Verdict.UNKNOWN
    assert plan_memory(plan) == {}


def test_a_threshold_needs_a_limit_that_the_capture_states():
    assert checked(capture(), "memory.gc_threshold").verdict is Verdict.UNKNOWN


def test_rules_that_cannot_be_read_are_no_answer():
    answer = checked(capture(), "memory.amc", rules="nowhere.json")
    assert answer.verdict is Verdict.UNKNOWN
    assert "nowhere.json" in answer.reason


@pytest.mark.parametrize(
    "name", ["recompute", "offload", "tiering", "reuse_fp32_parameters", "periodic_check", "restart"]
)
def test_what_a_capture_does_not_hold_needs_a_twin(name):
    answer = checked(capture(), f"memory.{name}")
    assert answer.verdict is Verdict.NEEDS_TWIN
    assert "cannscope twin" in answer.reason


def test_a_plan_is_not_changed_by_a_toggle():
    plan = capture()
    changed(plan, "memory.amc")
    assert plan.allocator is None
    assert plan_memory(plan) == dict(recorded_memory(plan.capture))


def test_a_block_that_is_edited_away_is_not_allocated():
    plan = capture([(40, 10, 100, -1), (60, 20, 100, -1)])
    table = plan.capture.job.ranks[0].trace.memory.allocations
    edit = AllocationEdit(np.array([0, table.size_bytes[1]]), table.freed_at_ns)
    after = plan_memory(replace(plan, edits={0: edit}))[0]
    assert after.outcome.peak_allocated_bytes == 60 * MIB
    assert recorded_memory(plan.capture)[0].outcome.peak_allocated_bytes == 100 * MIB


def test_a_block_that_is_freed_earlier_makes_room():
    plan = capture([(40, 10, 100, -1), (60, 50, 100, -1)])
    table = plan.capture.job.ranks[0].trace.memory.allocations
    after = plan_memory(replace(plan, edits={0: AllocationEdit(table.size_bytes, np.array([40, 100]))}))[0]
    assert after.outcome.peak_allocated_bytes == 60 * MIB


@pytest.mark.parametrize(
    ("texts", "environment", "words"),
    [
        (["memory.expandable_segments", "memory.max_split_size"], {}, "torch_npu refuses"),
        (["memory.gc_threshold", "memory.expandable_segments"], {}, "torch_npu refuses"),
        (["memory.amc", "memory.stitching"], {}, "allocator of its own"),
        (["memory.offload", "memory.recompute"], {}, "nothing to offload"),
    ],
)
def test_conflicting_toggles_are_refused_with_the_reason(texts, environment, words):
    found = refusals(enabled_from_texts(texts, REGISTRY), environment)
    assert any(words in item.reason for item in found)


def test_every_memory_toggle_states_its_switch_its_risk_and_how_to_undo_it():
    for item in OPTIMIZATIONS:
        assert item.switches, item.id
        assert item.risk, item.id
        assert item.undo, item.id
        assert item.verify, item.id


def scenario(tmp_path, body):
    path = tmp_path / "job.toml"
    head = '[model]\npreset = "qwen2-1.5b"\n[device]\npreset = "910b2"\ncount = 1\n[batch]\nmicro = 1\nglobal = 1\n'
    path.write_text(f"{head}{body}")
    return read_scenario(path)


def test_in_a_job_whose_steps_are_alike_no_allocator_has_anything_to_cure(tmp_path):
    alike = scenario(tmp_path, "sequence_length = 1024\n")
    for name in ("expandable_segments", "stitching", "static_plan", "amc", "periodic_check", "restart"):
        optimization = REGISTRY[f"memory.{name}"]
        assert optimization.check_scenario(alike, optimization.defaults).verdict is Verdict.NO_EFFECT, name


def test_in_a_job_whose_lengths_vary_allocators_apply(tmp_path):
    varied = scenario(
        tmp_path, 'sequence_length = { distribution = "lognormal", mean = 1024, sigma = 0.5, max = 4096 }\n'
    )
    for name in ("expandable_segments", "stitching", "static_plan", "amc", "periodic_check", "restart"):
        optimization = REGISTRY[f"memory.{name}"]
        assert optimization.check_scenario(varied, optimization.defaults).verdict is Verdict.APPLIES, name


def test_tiering_and_rules_reach_the_memory_settings(tmp_path):
    alike = scenario(tmp_path, "sequence_length = 1024\n")
    tiering, amc = REGISTRY["memory.tiering"], REGISTRY["memory.amc"]
    assert tiering.on_scenario(alike, {"prefetch_distance": 3}).memory.tiering.prefetch_distance == 3
    assert amc.on_scenario(alike, {"rules": "my.json"}).memory.rules == "my.json"
    assert alike.memory.tiering is None


def test_the_qwen3_capture_has_nothing_an_allocator_could_save(captures: Path):
    job = open_job([captures / "ascend/910b-qwen3-0.6b-pp2dp2"], built_in_readers())
    plan = plan_without_tasks(job)
    known = recorded_memory(plan.capture)
    assert checked(plan, "memory.expandable_segments").verdict is Verdict.ALREADY_ON
    assert known[0].outcome.peak_reserved_bytes == pytest.approx(10_372 * MIB, rel=0.005)
