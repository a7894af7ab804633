"""Layouts of simulated jobs, and layers moved between the stages of recorded ones."""

import numpy as np
import pytest

from engine.optimizations.interface import Bound, Verdict
from engine.optimizations.parallel.stage_layers import Stage, recorded_stages, shifted
from tests.support.toggled_jobs import MODEL, job, plan_of, step_ns, toggle

LAYOUT = toggle("parallel.layout")


def with_values(**changes):
    return {**LAYOUT.defaults, **changes}


def test_a_job_is_laid_out_anew_on_the_same_devices():
    chosen = with_values(tensor=4)
    told = LAYOUT.check_scenario(job("replicas"), chosen)
    assert told.verdict is Verdict.APPLIES
    assert "DP 4 × TP 1 × PP 1" in told.reason
    assert "DP 1 × TP 4 × PP 1" in told.reason
    changed = LAYOUT.on_scenario(job("replicas"), chosen)
    assert (changed.parallel.data, changed.parallel.tensor) == (1, 4)
    assert job("replicas").parallel.tensor == 1


def test_a_layout_that_does_not_fit_says_what_would():
    told = LAYOUT.check_scenario(job("replicas"), with_values(tensor=3))
    assert told.verdict is Verdict.UNKNOWN
    assert "nearest that fit" in told.reason


def test_without_a_choice_the_layout_stays():
    assert LAYOUT.check_scenario(job("replicas"), LAYOUT.defaults).verdict is Verdict.NO_EFFECT
    assert LAYOUT.check_scenario(job("replicas"), with_values(data=4)).verdict is Verdict.ALREADY_ON


def test_a_capture_without_stages_needs_a_twin():
    assert LAYOUT.check_capture(plan_of("replicas"), LAYOUT.defaults).verdict is Verdict.NEEDS_TWIN
    assert LAYOUT.check_capture(plan_of("stages"), with_values(micro=2)).verdict is Verdict.NEEDS_TWIN


def test_the_layers_of_each_stage_are_counted_from_its_kernels():
    stages = recorded_stages(plan_of("stages"))
    assert [stage.number for stage in stages] == [0, 1]
    assert stages[1].computing_ns > stages[0].computing_ns  # the loss
    for stage in stages:
        assert stage.layers in (0, MODEL["layers"] // 2)


@pytest.mark.parametrize("shift", [0.5, 1])
def test_moving_layers_moves_their_time(shift):
    plan = plan_of("stages")
    graph = plan.graph
    slow_task = np.flatnonzero((graph.rank == 2) & (graph.stream == 1))[:10].astype(np.int32)
    fast_task = np.flatnonzero((graph.rank == 0) & (graph.stream == 1))[:10].astype(np.int32)
    slow, fast = Stage(1, 0.0, 2, 0.0, slow_task), Stage(0, 0.0, 2, 0.0, fast_task)
    moved = shifted(graph, slow, fast, shift)
    assert np.allclose(moved.duration_ns[slow_task], graph.duration_ns[slow_task] * (1 - shift / 2), atol=1)
    assert np.allclose(moved.duration_ns[fast_task], graph.duration_ns[fast_task] * (1 + shift / 2), atol=1)


def test_more_layers_than_a_stage_has_cannot_move():
    plan = plan_of("stages")
    if LAYOUT.check_capture(plan, LAYOUT.defaults).verdict is Verdict.APPLIES:
        assert LAYOUT.check_capture(plan, with_values(stage_shift=40)).verdict is Verdict.UNKNOWN
        assert step_ns(LAYOUT.on_capture(plan, LAYOUT.defaults, Bound.EXPECTED)) <= step_ns(plan)
