"""What-if on recorded jobs: tasks are rewritten and replayed; what a gain rests on is said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, no_progress
from engine.core.registry import Registry
from engine.graph.task_graph import Stream, TaskKind
from engine.optimizations.answers import applies, no_effect
from engine.optimizations.interface import Bound, Conflict, Group
from engine.optimizations.selection import Enabled
from engine.replay.replay_time import replay_time
from engine.runtime.scheduler import schedule
from engine.whatif.capture_what_if import devices_for_equal_throughput, weakness
from engine.whatif.inferred import own_lag_ns, with_own_lags
from engine.whatif.run import applicability, what_if
from engine.whatif.subject import capture_subject, open_subject
from engine.workloads.scenario_file import scenario_from_document
from tests.support.closed_loop import recorded
from tests.support.sample_optimizations import sample_optimization
from tests.support.simulated_job import small_job

COMPUTING = (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX)


def scenario(**tables):
    document = {
        "name": "small",
        "model": {"layers": 2, "hidden": 2048, "ffn": 5632, "heads": 16, "vocab": 8000},
        "device": {"preset": "910b2", "count": 4},
        "parallel": {"data": 2, "pipeline": 2},
        "batch": {"micro": 1, "global": 8, "sequence_length": 4096},
        "run": {"steps": 3},
    }
    return scenario_from_document({**document, **tables}, Path())


@pytest.fixture(scope="module")
def recording():
    return recorded(scenario())


@pytest.fixture
def subject(recording):
    return capture_subject(recording.job)


def faster(identifier, group, low, expected, high, **changes):
    """An optimization that makes all computing of a capture take a share of its time."""
    share = {Bound.LOW: low, Bound.EXPECTED: expected, Bound.HIGH: high}

    def on_capture(plan, parameters, bound):
        graph = plan.graph
        scaled = np.where(np.isin(graph.kind, COMPUTING), np.rint(graph.duration_ns * share[bound]), graph.duration_ns)
        rewritten = replace(graph, duration_ns=scaled.astype(np.int64))
        return replace(plan, graph=rewritten, assumptions=(*plan.assumptions, f"{identifier} holds"))

    settings = {"check_capture": lambda plan, parameters: applies("there are kernels"), "on_capture": on_capture}
    return sample_optimization(identifier, group, **settings, **changes)


HALF = faster("fusion.half", Group.FUSION, 0.8, 0.5, 0.4)
TENTH = faster("host.tenth", Group.HOST, 0.95, 0.9, 0.85)
NOTHING = sample_optimization(
    "memory.nothing",
    Group.MEMORY,
    check_capture=lambda plan, parameters: no_effect("nothing is there"),
    conflicts=(Conflict("host.tenth", "it is a test"), Conflict("environment:SWITCH=on", "the job has it on")),
)
REGISTRY = Registry((HALF, TENTH, NOTHING))


def on(*items):
    return [Enabled(item, item.defaults) for item in items]


def test_a_capture_is_replayed_with_what_is_switched_on(subject):
    result = what_if(subject, on(HALF), REGISTRY)

    halved = replay_time(subject.capture, HALF.on_capture(subject.plan, {}, Bound.EXPECTED).graph)
    assert result.candidate.mean_step_ns == halved.step_ns.mean() < result.baseline.mean_step_ns
    assert result.gain.expected_ns == result.baseline.mean_step_ns - result.candidate.mean_step_ns
    assert 0 < result.gain.low_ns < result.gain.expected_ns < result.gain.high_ns
    assert abs(result.replay_error_ratio) < 0.03
    assert "fusion.half holds" in result.assumptions


def test_sets_are_rerun_together_in_the_order_of_the_catalogue(subject):
    result = what_if(subject, on(TENTH, HALF), REGISTRY)

    assert [item.id for item in result.contributions] == ["fusion.half", "host.tenth"]
    assert sum(item.gain_ns for item in result.contributions) == pytest.approx(result.gain.expected_ns)
    assert result.contributions[1].alone_ns > result.contributions[1].gain_ns


def test_what_would_change_nothing_is_left_out_and_says_why(subject):
    result = what_if(subject, on(NOTHING), REGISTRY)

    assert result.applicability["memory.nothing"].reason == "nothing is there"
    assert result.candidate is result.baseline
    assert result.gain.expected_ns == 0
    assert result.inferred_share_ratio is None


def test_what_conflicts_is_refused_and_not_rerun(subject):
    result = what_if(subject, on(TENTH, NOTHING), REGISTRY)

    assert "it is a test" in result.refused[0].reason
    assert result.candidate is result.baseline


def test_switches_the_recorded_job_has_on_are_known(recording):
    first = recording.job.ranks[0]
    metadata = replace(first.trace.metadata, environment={"SWITCH": "on"})
    ranks = (replace(first, trace=replace(first.trace, metadata=metadata)), *recording.job.ranks[1:])

    result = what_if(capture_subject(replace(recording.job, ranks=ranks)), on(NOTHING), REGISTRY)

    assert "the job has it on" in result.refused[0].reason


def test_applying_leaves_the_capture_as_it_was(subject):
    before = subject.capture.graph.duration_ns.copy()

    what_if(subject, on(HALF, TENTH), REGISTRY)

    assert np.array_equal(subject.capture.graph.duration_ns, before)
    assert what_if(subject, (), REGISTRY).gain.expected_ns == 0


def test_both_sides_can_be_recorded_and_name_their_operators(subject):
    result = what_if(subject, on(HALF), REGISTRY)

    job = result.candidate.record(no_progress, NEVER_CANCELLED)
    assert [entry.rank for entry in job.ranks] == [0, 1, 2, 3]
    name = "MatMulV3"
    assert result.candidate.operator_ns[name] == pytest.approx(result.baseline.operator_ns[name] / 2, rel=1e-3)


def test_shares_say_where_the_slowest_rank_spends_its_step(subject):
    shares = what_if(subject, on(HALF), REGISTRY).baseline.shares

    assert shares.cube_ratio > 0.2
    assert shares.vector_ratio > 0.2
    whole = [getattr(shares, name) for name in shares.__slots__]
    assert sum(whole) == pytest.approx(1)


def test_every_optimization_has_an_answer_on_a_capture(subject):
    found = applicability(subject, REGISTRY)

    assert [found[item.id].reason for item in REGISTRY] == [
        "there are kernels",
        "there are kernels",
        "nothing is there",
    ]


def test_a_capture_has_no_keys_to_set(tmp_path):
    with pytest.raises(ScenarioError, match="cannscope twin"):
        open_subject([tmp_path], {("run", "steps"): 3})


def test_a_prediction_is_weak_for_a_reason():
    assert weakness(0.01, 0.1) is None
    assert "off by -7.0%" in weakness(-0.07, 0.0)
    assert "80% of the gain" in weakness(0.0, 0.8)
    assert " and " in weakness(0.07, 0.8)
    assert "no length" in weakness(None, None)


def test_equal_throughput_takes_whole_replicas(recording):
    assert devices_for_equal_throughput(recording.job, 100, 1.0, 0.6) == 60
    assert devices_for_equal_throughput(recording.job, 4, 1.0, 0.6) == 4
    assert devices_for_equal_throughput(recording.job, 4, 1.0, 0.5) == 2
    assert devices_for_equal_throughput(recording.job, 4, 0.0, 0.5) is None


@given(seed=st.integers(0, 1000), share=st.floats(0, 1))
def test_time_of_their_own_in_place_of_inferred_waits_reproduces_the_baseline(seed, share):
    graph = small_job()
    chosen = np.random.default_rng(seed).random(len(graph)) < share
    waits = (graph.stream != Stream.HOST) | (graph.kind == TaskKind.SYNCHRONIZE)
    marked = replace(graph, inferred=(chosen & waits).astype(np.uint8))
    baseline = schedule(marked)

    other = with_own_lags(marked, marked, own_lag_ns(marked, baseline))

    again = schedule(other)
    assert again.is_complete
    assert again.makespan_ns == baseline.makespan_ns
    kept = other.kind != TaskKind.GAP
    assert np.array_equal(again.end_ns[kept], baseline.end_ns)


def test_a_gain_through_inferred_waits_only_is_all_inferred(recording):
    subject = capture_subject(recording.job)
    # A graph whose every device task waits for another stream by inference only: nothing recorded carries the gain.
    graph = subject.capture.graph
    marked = replace(graph, inferred=np.where(np.isin(graph.kind, COMPUTING), 1, 0).astype(np.uint8))
    subject.capture = replace(subject.capture, graph=marked)

    share = what_if(subject, on(HALF), REGISTRY).inferred_share_ratio

    assert 0 <= share <= 1
