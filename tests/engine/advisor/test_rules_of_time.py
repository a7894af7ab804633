"""Rules about time: each finds its loss where it is, says nothing where it is not, and says so where it cannot tell."""

from dataclasses import replace

import pytest

from engine.advisor.findings import Severity, severity_of
from engine.advisor.losses import loss_of
from engine.advisor.pipeline_times import makespan_ns
from engine.advisor.rules import rule_registry
from engine.advisor.rules.communication import exposed_transfer, unsplit
from engine.advisor.rules.fusion import unfused
from engine.advisor.rules.host import data_loading, host_bound, synchronization
from engine.advisor.rules.links import slow_link, small_packets
from engine.advisor.rules.pipeline import bubbles, stage_imbalance
from engine.advisor.rules.training import optimizer_time
from engine.advisor.rules.waiting import waiting
from engine.analyses.communication import LinkStatistic, SlowRank
from engine.analyses.idle import IdleCause
from engine.analyses.modules import ModuleTime
from engine.core.errors import MissingDataError
from engine.core.units import GIB, MIB, NS_PER_MS
from tests.support.examinations import (
    candidate_ms,
    collective_ms,
    examination_of,
    gaps_ms,
    rank_summary,
    step_ms,
)


@pytest.mark.parametrize(
    ("share", "severity"), [(0.05, Severity.HIGH), (0.03, Severity.MEDIUM), (0.0299, Severity.LOW), (0.0, Severity.LOW)]
)
def test_severity_is_the_share_of_the_step(share: float, severity: Severity) -> None:
    assert severity_of(share) is severity


def test_every_rule_has_an_id_of_its_own_and_a_title() -> None:
    rules = list(rule_registry())
    assert len({rule.id for rule in rules}) == len(rules) >= 25
    assert all(rule.title and "." in rule.id for rule in rules)


def test_transfer_and_waiting_are_told_apart() -> None:
    job = examination_of(
        rank_summary(steps=[step_ms(exposed=30.0, wait=20.0)]),
        collectives={0: [collective_ms(30.0, 20.0, late_rank=1)]},
    )
    (found,) = exposed_transfer(job)
    assert found.cost_ns == 10 * NS_PER_MS
    assert [part.value / NS_PER_MS for part in found.evidence] == [10.0, 10.0, 20.0]


def test_a_job_without_exposed_transfer_is_fine() -> None:
    job = examination_of(rank_summary(), collectives={0: [collective_ms(0.5)]})
    assert exposed_transfer(job) == ()


def test_a_single_device_has_no_communication_to_complain_of() -> None:
    job = examination_of(rank_summary())
    assert [list(rule(job)) for rule in (exposed_transfer, waiting, unsplit, small_packets, slow_link)] == [[]] * 5


def test_unsplit_communication_is_not_called_transfer_and_its_missing_ranks_are_named() -> None:
    job = examination_of(rank_summary(), collectives={0: [collective_ms(40.0, None, missing_ranks=(2, 3))]})
    with pytest.raises(MissingDataError):
        exposed_transfer(job)
    (found,) = unsplit(job)
    assert found.cost_ns == 40 * NS_PER_MS
    assert "ranks 2, 3" in found.remedies[0].title


def test_waiting_is_followed_to_the_rank_that_the_late_one_waited_for() -> None:
    ranks = [rank_summary(rank) for rank in range(3)]
    job = examination_of(
        *ranks,
        collectives={
            0: [collective_ms(20.0, 18.0, late_rank=1)],
            1: [collective_ms(12.0, 10.0, start=2.0, late_rank=2)],
        },
        slow_ranks=[SlowRank(1, "communicating 90 %", 18 * NS_PER_MS)],
    )
    (found,) = waiting(job)
    assert found.cost_ns == 18 * NS_PER_MS
    assert "waited itself for rank 2" in found.root_cause


def test_waiting_for_another_stage_is_left_to_the_pipeline_rules() -> None:
    job = examination_of(
        rank_summary(0),
        rank_summary(1),
        collectives={0: [collective_ms(30.0, 29.0, name="hcom_receive__1", group_name="pp", late_rank=1)]},
        slow_ranks=[SlowRank(1, "computing 99 %", 29 * NS_PER_MS)],
        stages={0: 0, 1: 1},
    )
    assert waiting(job) == []


def _two_stages(first: float, second: float) -> object:
    exchange = {"name": "hcom_batchSendRecv__1", "group_name": "pp"}
    return examination_of(
        rank_summary(0, [step_ms(computing=first)]),
        rank_summary(
            1, [step_ms(computing=second)], modules=[ModuleTime(f"layer {i}", "", "", 1, 1, True) for i in range(8)]
        ),
        collectives={
            0: [collective_ms(20.0, 19.0, late_rank=1, **exchange)],
            1: [collective_ms(6.0, 5.0, late_rank=0, start=at, **exchange) for at in (0, 20, 40)],
        },
        stages={0: 0, 1: 1},
    )


def test_uneven_stages_are_found_with_the_best_number_of_layers_to_move() -> None:
    (found,) = stage_imbalance(_two_stages(40.0, 80.0))
    assert found.cost_ns == 20 * NS_PER_MS
    (remedy,) = found.remedies
    assert remedy.estimate is not None
    assert remedy.estimate.time_ns is not None
    # Two micro-batches: half of what the slowest stage loses, and no more than a perfect balance would win.
    assert 0 < remedy.estimate.time_ns.expected <= remedy.estimate.time_ns.high == 10 * NS_PER_MS


def test_even_stages_are_fine() -> None:
    assert stage_imbalance(_two_stages(78.0, 80.0)) == ()


def test_bubbles_are_what_the_slowest_stage_waits_and_more_micro_batches_halve_the_filling() -> None:
    (found,) = bubbles(_two_stages(40.0, 80.0))
    assert found.cost_ns == 15 * NS_PER_MS
    (remedy,) = found.remedies
    assert remedy.estimate is not None
    assert remedy.estimate.time_ns is not None
    assert remedy.estimate.time_ns.low == 0
    assert remedy.estimate.time_ns.expected == 10 * NS_PER_MS


def test_a_pipeline_of_equal_stages_takes_micro_batches_plus_stages_minus_one() -> None:
    assert makespan_ns([80.0, 80.0], 4) == pytest.approx(20.0 * (4 + 2 - 1))


def test_what_makes_the_late_stage_longer_counts_as_a_cause_of_the_waiting() -> None:
    job = _two_stages(40.0, 80.0)
    slow = replace(job.summary.ranks[1], fusion_candidates=(candidate_ms(),))
    job = replace(job, summary=replace(job.summary, ranks=(job.summary.ranks[0], slow)))
    (found,) = unfused(job)
    treated = loss_of(job, found)
    assert treated.id == "waiting for stage 2"
    assert treated.cost_ns == 19 * NS_PER_MS


def test_a_fusion_is_reported_per_step_on_the_rank_where_it_wins_most() -> None:
    steps = [step_ms(number=n, start=100.0 * n) for n in (1, 2)]
    job = examination_of(
        rank_summary(0, steps, fusion=[candidate_ms(total=10.0, saving=(2.0, 3.0, 4.0))]),
        rank_summary(1, steps, fusion=[candidate_ms(total=20.0)]),
    )
    (found,) = unfused(job)
    assert found.cost_ns == 5 * NS_PER_MS
    assert found.evidence[0].rank == 1
    kernels = candidate_ms().launches / 2
    assert found.evidence[2].value == kernels
    assert f"per step in {kernels:.0f} kernels" in found.problem
    assert found.severity is Severity.HIGH


def test_a_fusion_that_cannot_win_a_hundredth_of_the_step_is_not_worth_a_sentence() -> None:
    job = examination_of(rank_summary(fusion=[candidate_ms(saving=(0.1, 0.5, 0.9))]))
    assert unfused(job) == []


def test_without_kernels_nothing_is_called_fine() -> None:
    job = examination_of(rank_summary(operators=()))
    with pytest.raises(MissingDataError):
        unfused(job)
    with pytest.raises(MissingDataError):
        host_bound(job)


def test_idle_time_goes_to_the_rule_of_its_cause() -> None:
    gaps = (*gaps_ms(IdleCause.HOST_SLOW, 6.0, 4.0), *gaps_ms(IdleCause.DATA_LOADING, 3.0))
    job = examination_of(rank_summary(idle=gaps))
    (bound,) = host_bound(job)
    (loading,) = data_loading(job)
    assert (bound.cost_ns, loading.cost_ns) == (10 * NS_PER_MS, 3 * NS_PER_MS)
    assert synchronization(job) == ()


def test_gaps_outside_the_measured_steps_cost_nothing() -> None:
    late = replace(gaps_ms(IdleCause.HOST_SLOW, 50.0)[0], start_ns=200 * NS_PER_MS, end_ns=250 * NS_PER_MS)
    job = examination_of(rank_summary(idle=[late]))
    assert host_bound(job) == ()


def test_many_small_collectives_are_judged_by_the_fixed_part_of_their_own_times() -> None:
    sizes = [MIB * n for n in (1, 2, 3, 4)] * 6
    items = [collective_ms(0.3 + size / MIB * 0.1, size_bytes=size) for size in sizes]
    job = examination_of(rank_summary(), collectives={0: items})
    (found,) = small_packets(job)
    assert found.evidence[0].value == pytest.approx(0.3 * NS_PER_MS, rel=1e-3)
    assert found.cost_ns == pytest.approx(23 * 0.3 * NS_PER_MS, rel=1e-3)


def test_collectives_of_one_size_cannot_tell_their_fixed_part() -> None:
    job = examination_of(rank_summary(), collectives={0: [collective_ms(1.0)] * 9})
    with pytest.raises(MissingDataError):
        small_packets(job)


def test_a_link_slower_than_its_neighbours_is_found() -> None:
    def link(milliseconds: float) -> list[LinkStatistic]:
        return [LinkStatistic("HCCS", GIB, round(milliseconds * NS_PER_MS), None)]

    ranks = [rank_summary(rank) for rank in range(3)]
    (found,) = slow_link(examination_of(*ranks, links={0: link(50.0), 1: link(50.0), 2: link(100.0)}))
    assert "rank 2" in found.problem
    assert found.cost_ns == pytest.approx(50 * NS_PER_MS)
    assert slow_link(examination_of(*ranks, links={rank: link(50.0) for rank in range(3)})) == []


def test_the_optimizer_is_a_finding_from_a_twentieth_of_the_step_on() -> None:
    def job(milliseconds: float) -> object:
        module = ModuleTime("(outside modules)", "optimizer", "", 57, round(milliseconds * NS_PER_MS), False)
        return examination_of(rank_summary(modules=[module]))

    (found,) = optimizer_time(job(5.0))
    assert "every weight" in found.root_cause
    assert "of its own" not in found.root_cause, "a fused optimizer may take that long as well"
    assert optimizer_time(job(4.9)) == ()
