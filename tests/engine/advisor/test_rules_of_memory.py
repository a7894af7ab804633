"""Rules about memory, how a run goes, and its configuration."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine.advisor.findings import Severity
from engine.advisor.rules.configuration import deadlock, environment
from engine.advisor.rules.course import fragmentation_slowdown, out_of_memory, step_drift
from engine.advisor.rules.memory import fragmentation, headroom, leak
from engine.analyses.step_history import StepHistory
from engine.core.errors import MissingDataError
from engine.core.units import GIB, MIB
from engine.trace import TraceMetadata
from engine.workloads.results import RunStatus
from tests.support.examinations import bare_trace, examination_of, rank_summary, step_ms, with_history
from tests.support.histories import made_history


def job_with(history: StepHistory) -> object:
    return examination_of(rank_summary(), traces={0: with_history(history)})


def test_a_run_that_fragmentation_slows_is_found_with_its_onset() -> None:
    (found,) = fragmentation_slowdown(job_with(made_history(slower_from=300)))
    assert found.severity is Severity.HIGH
    assert "memory.expandable_segments" in [remedy.optimization for remedy in found.remedies]
    onset = next(part for part in found.evidence if part.metric == "onset")
    assert abs(onset.value - 300) < 80


def test_a_slowdown_the_allocator_does_not_cause_is_a_drift_and_not_fragmentation() -> None:
    job = job_with(made_history(slower_from=300, by_allocator=False))
    assert fragmentation_slowdown(job) == ()
    (found,) = step_drift(job)
    assert "not the allocator" in found.root_cause


def test_a_steady_run_has_neither() -> None:
    job = job_with(made_history())
    assert fragmentation_slowdown(job) == ()
    assert step_drift(job) == ()


def test_one_captured_step_says_nothing_of_a_course() -> None:
    job = examination_of(rank_summary())
    for rule in (fragmentation_slowdown, step_drift, out_of_memory, headroom, leak):
        with pytest.raises(MissingDataError):
            rule(job)


def test_captured_steps_that_grow_are_split_into_what_grew() -> None:
    steps = [step_ms(100.0 + n, computing=60.0, exposed=20.0, number=n, start=1000.0 * n) for n in range(40)]
    (found,) = step_drift(examination_of(rank_summary(steps=steps)))
    assert found.evidence[0].metric == "growth of idle"
    assert found.evidence[0].value == pytest.approx(found.cost_ns)


def test_live_memory_that_grows_is_a_leak_and_ends_the_run_at_a_told_step() -> None:
    history = made_history(leak_bytes=2 * GIB)
    rising = np.linspace(5 * GIB, 8 * GIB, len(history)).astype(np.int64)
    job = job_with(
        replace(history, peak_reserved_bytes=rising, retries=np.zeros_like(rising), caught=np.zeros_like(rising))
    )
    (leaking,) = leak(job)
    assert "grows by" in leaking.problem
    (ending,) = out_of_memory(job)
    # 1 GiB is left of 9, and 3 GiB were added in 799 steps.
    assert ending.evidence[0].value == pytest.approx(799 / 3, rel=0.05)


def test_an_allocator_that_serves_everything_from_its_cache_is_fine() -> None:
    history = made_history()
    calm = replace(
        history, stranded_bytes=np.full(len(history), -1), peak_reserved_bytes=np.full(len(history), 5 * GIB)
    )
    job = job_with(calm)
    assert list(fragmentation(job)) == []
    assert list(headroom(job)) == []
    assert list(leak(job)) == []
    assert list(out_of_memory(job)) == []


def test_stranded_bytes_above_what_dense_training_strands_are_fragmentation() -> None:
    history = made_history()
    count = len(history)
    job = job_with(replace(history, stranded_bytes=np.full(count, GIB), peak_reserved_bytes=np.full(count, 8 * GIB)))
    (found,) = fragmentation(job)
    assert found.evidence[2].value == pytest.approx(1 / 8)


def test_a_device_that_is_full_is_told_with_what_is_left() -> None:
    history = made_history()
    full = replace(history, peak_reserved_bytes=np.full(len(history), 9 * GIB - 10 * MIB))
    (found,) = headroom(job_with(full))
    assert "10.00 MiB left" in found.problem


def test_variables_that_cost_time_are_found_and_good_ones_are_not() -> None:
    bad = TraceMetadata(environment={"ASCEND_LAUNCH_BLOCKING": "1", "ASCEND_GLOBAL_LOG_LEVEL": "3"})
    found = environment(examination_of(rank_summary(), traces={0: bare_trace(metadata=bad)}))
    assert [item.remedies[0].id for item in found] == ["environment.ASCEND_LAUNCH_BLOCKING"]
    traces = {rank: bare_trace(rank, metadata=bad) for rank in (0, 2)}
    (found,) = environment(examination_of(*(rank_summary(rank) for rank in range(3)), traces=traces))
    assert found.evidence[0].value == 2
    good = TraceMetadata(environment={"ASCEND_LAUNCH_BLOCKING": "0", "HCCL_ALGO": ""})
    assert environment(examination_of(rank_summary(), traces={0: bare_trace(metadata=good)})) == []


def test_a_capture_without_variables_is_not_called_fine() -> None:
    with pytest.raises(MissingDataError):
        environment(examination_of(rank_summary()))


def test_a_deadlock_is_a_finding_that_stops_the_run_and_a_recorded_run_had_none() -> None:
    job = examination_of(rank_summary())
    assert deadlock(job) == ()
    side = SimpleNamespace(status=RunStatus.DEADLOCK, run=None, step_ns=np.zeros(2))
    (found,) = deadlock(replace(job, side=side))
    assert found.stops_run
    assert "step 3" in found.problem
