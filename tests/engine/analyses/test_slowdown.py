from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.memory_trend import MemoryVerdict
from engine.analyses.slowdown import pettitt_chance, run_course, stall_share_of_variance
from engine.core.units import GIB
from tests.support.histories import made_history


@pytest.mark.parametrize("onset", [120, 200, 450, 600])
@pytest.mark.parametrize("by_allocator", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_onset_is_found_within_ten_steps(onset, by_allocator, seed):
    slowdown = run_course(made_history(slower_from=onset, by_allocator=by_allocator, seed=seed)).slowdown
    assert abs(slowdown.onset - onset) <= 10


@pytest.mark.parametrize("onset", [200, 450])
@pytest.mark.parametrize("seed", range(5))
def test_stalls_date_the_onset_though_steps_are_slow_by_chance(onset, seed):
    generator = np.random.default_rng(seed)
    plain = made_history(seed=seed)
    stall_ns = np.where((np.arange(800) >= onset) & (generator.random(800) < 0.4), 900_000_000, 0)
    noise_ns = (generator.normal(size=800) * 150e6).astype(np.int64)
    history = replace(plain, step_ns=plain.step_ns + noise_ns + stall_ns, stall_ns=stall_ns)
    assert abs(run_course(history).slowdown.onset - onset) <= 10


def test_the_onset_is_found_though_lengths_vary():
    slowdown = run_course(made_history(slower_from=450)).slowdown
    assert 0.3 < slowdown.loss_ratio < 0.6
    assert slowdown.stall_share_ratio == pytest.approx(0.5, abs=0.1)


def test_growing_holes_are_called_fragmentation():
    course = run_course(made_history(slower_from=300))
    assert course.trend.verdict is MemoryVerdict.FRAGMENTATION
    assert "because memory is fragmented" in course.sentence
    assert "retries" in course.sentence


def test_growing_live_memory_is_called_a_leak():
    course = run_course(made_history(slower_from=300, leak_bytes=2 * GIB))
    assert course.trend.verdict is MemoryVerdict.LEAK
    assert "because live memory grows to the limit" in course.sentence


def test_a_run_that_slows_down_without_retries_is_not_blamed_on_the_allocator():
    course = run_course(made_history(slower_from=300, by_allocator=False))
    assert course.slowdown is not None
    assert "the allocator is not why" in course.sentence


def test_a_steady_run_has_no_onset():
    course = run_course(made_history())
    assert course.slowdown is None
    assert course.sentence.startswith("Step time is steady at")


def test_a_small_drift_is_not_worth_a_sentence():
    assert run_course(made_history(slower_from=100, loss_ratio=0.02)).slowdown is None


def test_a_short_run_says_that_it_is_short():
    assert "too few" in run_course(made_history(20)).sentence


def test_stalls_explain_a_slowdown_of_theirs_and_nothing_else():
    by_allocator, otherwise = made_history(slower_from=300), made_history(slower_from=300, by_allocator=False)
    assert stall_share_of_variance(by_allocator, 300, 800) > 0.9
    assert stall_share_of_variance(by_allocator, 0, 300) is None
    assert stall_share_of_variance(otherwise, 300, 800) is None
    assert stall_share_of_variance(by_allocator, 5, 7) is None


def test_equal_steps_have_no_drift():
    assert pettitt_chance(np.ones(100)) == 1.0


@given(st.integers(0, 1000), st.integers(40, 300))
def test_the_chance_of_noise_is_a_probability(seed, count):
    chance = pettitt_chance(np.random.default_rng(seed).normal(size=count))
    assert 0 < chance <= 1
