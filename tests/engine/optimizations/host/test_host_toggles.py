"""Host toggles on recorded simulated jobs against the jobs simulated with them, and where they win nothing."""

from dataclasses import replace

import numpy as np
import pytest

from engine.optimizations.host.static_shapes import changing_steps
from engine.optimizations.interface import Bound, Verdict
from engine.workloads.scenario import LengthDistribution
from tests.support.simulated_job import small_job
from tests.support.toggled_jobs import closed_loop, job, plan_of, toggle

TOLERANCE_RATIO = 0.05


@pytest.mark.parametrize(
    ("identifier", "parameters"),
    [("host.graph_mode", {}), ("host.async_dispatch", {"level": 2}), ("host.async_dispatch", {"level": 0})],
)
def test_toggle_on_a_host_bound_recording_agrees_with_the_simulation(identifier, parameters):
    loop = closed_loop(identifier, "host-bound", parameters)
    assert loop.answer.verdict is Verdict.APPLIES
    assert abs(loop.error_ratio) < TOLERANCE_RATIO
    assert abs(loop.simulated_ns / loop.base_ns - 1) > 0.1


@pytest.mark.parametrize("identifier", ["host.graph_mode", "host.async_dispatch"])
def test_a_compute_bound_job_wins_nothing_from_less_host_time(identifier):
    loop = closed_loop(identifier, "alone")
    assert loop.answer.verdict is Verdict.NO_EFFECT
    assert "ahead of the device" in loop.answer.reason
    assert abs(loop.error_ratio) < 0.01


def test_graph_mode_needs_one_sequence_length():
    item, scenario = toggle("host.graph_mode"), job("alone")
    lengths = replace(scenario.batch.lengths, distribution=LengthDistribution.LOGNORMAL, sigma=0.5, minimum=64)
    varying = replace(scenario, batch=replace(scenario.batch, lengths=lengths))
    answer = item.check_scenario(varying, item.defaults)
    assert answer.verdict is Verdict.NO_EFFECT
    assert "static shapes" in answer.reason


def test_steps_with_other_shapes_are_told():
    graph = small_job(steps=3)
    assert changing_steps(graph) is not None
    assert not changing_steps(graph).differ
    shape = graph.shape.copy()
    step = np.flatnonzero((graph.step == 1) & (graph.rank == 0) & (shape >= 0))
    shape[step[:2]] = graph.strings.id_of("MatMulV3")
    changed = changing_steps(replace(graph, shape=shape))
    assert changed.differ
    assert (changed.different, changed.steps) == (1, 3)
    assert changed.example == "step 1: other shapes"


def test_the_level_a_job_runs_at_is_already_on():
    item = toggle("host.async_dispatch")
    assert item.check_capture(plan_of("host-bound"), {"level": 1}).verdict is Verdict.ALREADY_ON
    assert item.check_scenario(job("host-bound"), {"level": 1}).verdict is Verdict.ALREADY_ON


def test_groups_on_streams_of_their_own_need_no_further_stream():
    item = toggle("host.streams")
    assert item.check_capture(plan_of("tensors and replicas"), item.defaults).verdict is Verdict.ALREADY_ON
    assert item.check_scenario(job("tensors and replicas"), item.defaults).verdict is Verdict.ALREADY_ON


def test_groups_that_share_a_stream_are_taken_apart():
    item, plan = toggle("host.streams"), plan_of("tensors and replicas")
    graph = plan.graph
    calls = graph.group >= 0
    crowded = replace(plan, graph=replace(graph, stream=np.where(calls, 2, graph.stream).astype(np.int32)))
    assert item.check_capture(crowded, item.defaults).verdict is Verdict.APPLIES
    apart = item.on_capture(crowded, {"count": 8}, Bound.EXPECTED).graph
    lanes = {(int(stream), int(group)) for stream, group in zip(apart.stream[calls], apart.group[calls], strict=True)}
    assert len({stream for stream, _ in lanes}) == len({group for _, group in lanes})


@pytest.mark.parametrize("identifier", ["host.graph_mode", "host.async_dispatch"])
def test_a_scenario_says_whether_its_host_is_ahead(identifier):
    item = toggle(identifier)
    told = item.check_scenario(job("alone"), item.defaults)
    assert told.verdict is Verdict.NO_EFFECT
    assert "the host is ahead of the device: the" in told.reason
    assert item.check_scenario(job("host-bound"), item.defaults).verdict is Verdict.APPLIES
