"""Ranks the others wait for: by how much they come late, what they do meanwhile, and for whom they wait themselves."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Estimate, Evidence, Finding, Unit
from engine.advisor.rules.communication import complain_if_unsplit, duration, split_collectives
from engine.advisor.rules.rule import Rule, loss
from engine.analyses.communication import SlowRank
from engine.analyses.fusion import Range3
from engine.core.number_format import format_duration_ns, format_ratio
from engine.optimizations.interface import Switch

_LISTED_EVENTS = 12


def waiting(examination: Examination) -> Sequence[Finding]:
    """Returns every rank others wait a hundredth of the step for, without those a pipeline's stages explain."""
    if not any(split_collectives(examination, rank) for rank in examination.windows):
        complain_if_unsplit(examination)
        return ()
    count = max(window.step_count for window in examination.windows.values())
    found = []
    for late in examination.summary.communication.slow_ranks:
        cost_ns = late.cost_ns / count
        if examination.share(cost_ns) >= WORTH_RATIO and not _is_stage_wait(examination, late):
            found.append(_waiting(examination, late, cost_ns))
    return found


def _is_stage_wait(examination: Examination, late: SlowRank) -> bool:
    """Returns whether most of the waiting is done by ranks of other pipeline stages: the pipeline rules speak of it."""
    stages = examination.summary.communication.stages
    inside, outside = 0, 0
    for rank in examination.windows:
        waited = sum(item.wait_ns or 0 for item in examination.collectives(rank) if item.late_rank == late.rank)
        if stages.get(rank) == stages.get(late.rank):
            inside += waited
        else:
            outside += waited
    return outside > inside


def _waiting(examination: Examination, late: SlowRank, cost_ns: float) -> Finding:
    waiters = {
        rank: sum(item.wait_ns or 0 for item in examination.collectives(rank) if item.late_rank == late.rank)
        for rank in examination.windows
        if rank != late.rank
    }
    worst = max(waiters, key=lambda rank: waiters[rank])
    items = [item for item in examination.collectives(worst) if item.late_rank == late.rank]
    items.sort(key=lambda item: -(item.wait_ns or 0))
    how = "union over all waiting ranks, per step"
    evidence = [duration(f"waiting for rank {late.rank}", cost_ns, worst, items[:_LISTED_EVENTS], how)]
    blamed = followed(examination, late.rank)
    evidence += [
        duration(f"rank {late.rank} itself waited then for rank {rank}", ns, late.rank, (), "the chain goes on")
        for rank, ns in blamed
    ]
    causes = _idle_causes(examination, late.rank)
    evidence += [duration(f"idle of rank {late.rank}: {name}", ns, late.rank, (), "per step") for name, ns in causes]
    computing = _computing_comparison(examination, late.rank)
    if computing is not None:
        evidence.append(computing)
    chain = "".join(f"; it waited itself for rank {rank}" for rank, _ in blamed)
    idle = f" (mostly {causes[0][0]})" if causes and "idle" in late.cause.split(",")[0] else ""
    return loss(
        examination,
        "communication.waiting",
        Category.COMMUNICATION,
        f"Other ranks wait {format_duration_ns(cost_ns)} of the step ({format_ratio(examination.share(cost_ns))}) "
        f"for rank {late.rank}",
        f"rank {late.rank} arrives late, meanwhile {late.cause}{idle}{chain}",
        cost_ns,
        evidence,
        (_even_out(examination, late, worst, computing),),
    )


def followed(examination: Examination, late: int) -> list[tuple[int, float]]:
    """Returns for whom a late rank itself waited while others waited for it, per step: the chain of blame.

    Only waits of the late rank that overlap others' waiting for it count; those of less than a hundredth of the step
    are left out.
    """
    offset = {entry.rank: entry.offset_ns for entry in examination.job.ranks}
    blocked = [
        (item.start_ns + offset[rank], item.start_ns + offset[rank] + (item.wait_ns or 0))
        for rank in examination.windows
        for item in examination.collectives(rank)
        if item.late_rank == late and rank != late and item.wait_ns
    ]
    totals: dict[int, float] = defaultdict(float)
    for item in examination.collectives(late):
        if item.late_rank is None or item.late_rank == late or not item.wait_ns:
            continue
        start_ns = item.start_ns + offset[late]
        stop_ns = start_ns + item.wait_ns
        overlap_ns = max((min(end, stop_ns) - max(begin, start_ns) for begin, end in blocked), default=0)
        totals[item.late_rank] += max(overlap_ns, 0)
    count = examination.windows[late].step_count if late in examination.windows else 1
    links = [(rank, ns / count) for rank, ns in totals.items() if examination.share(ns / count) >= WORTH_RATIO]
    return sorted(links, key=lambda link: -link[1])


def _idle_causes(examination: Examination, rank: int) -> list[tuple[str, float]]:
    """Returns why the late rank's device was idle, the largest cause first, per step."""
    if rank not in examination.windows:
        return []
    totals: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for gap in examination.summary.rank(rank).idle:
        totals[gap.cause.value.replace("_", " ")].append((gap.start_ns, gap.end_ns - gap.start_ns))
    found = []
    for name, gaps in totals.items():
        columns = np.array(gaps, dtype=np.int64)
        found.append((name, examination.per_step(rank, columns[:, 0], columns[:, 1])))
    found = [(name, ns) for name, ns in found if examination.share(ns) >= WORTH_RATIO]
    return sorted(found, key=lambda item: -item[1])[:3]


def _computing_comparison(examination: Examination, late: int) -> Evidence | None:
    """Returns how much more than its peers of the same stage the late rank computes, None where that is not known."""
    stages = examination.summary.communication.stages
    own = examination.steps.get(late)
    peers = [
        step.computing_ns
        for rank, step in examination.steps.items()
        if rank != late and step.computing_ns is not None and stages.get(rank) == stages.get(late)
    ]
    if own is None or own.computing_ns is None or not peers:
        return None
    return Evidence(
        f"rank {late} computes longer than its peers' median by",
        own.computing_ns - float(np.median(peers)),
        Unit.NS,
        rank=late,
        how="computing of the typical step",
    )


def _even_out(examination: Examination, late: SlowRank, worst: int, computing: Evidence | None) -> Action:
    spared_ns = _spared_ns(examination, late.rank, worst)
    works = computing is not None and computing.value > spared_ns / 2
    if works:
        advice = Switch(
            "any", "", "balance the input: bucket sequences by length, spread tables and experts evenly", ""
        )
    elif examination.is_ascend:
        advice = Switch(
            "torch_npu",
            "",
            "CPU_AFFINITY_CONF=2, and look at its data loading",
            "Ascend/pytorch docs/zh/api/environment_variable/performance_tuning",
            "binding is skipped with a warning if the process has a CPU affinity already",
        )
    else:
        bind = "numactl --cpunodebind=N --membind=N (its device's node), and look at its data loading"
        advice = Switch("any", "", bind, "numactl(8)")
    what = f"Give rank {late.rank} as much work as its peers" if works else f"Find what keeps rank {late.rank} back"
    return Action(
        id=f"even_out.rank_{late.rank}",
        title=what,
        how_to_apply=(advice,),
        estimate=Estimate(
            Range3(0.0, spared_ns, spared_ns),
            None,
            (
                f"rank {late.rank} then arrives with the last of the others at every collective of rank {worst}",
                "low: what keeps it back cannot be changed",
            ),
        ),
        risk="none to results",
        undo="restore the former distribution or binding",
        verify=f"waiting for rank {late.rank} in the communication table, over 5 warm steps",
    )


def _spared_ns(examination: Examination, late: int, waiter: int) -> float:
    """Returns what a waiting rank would wait less per step if the late one came with the last of the others."""
    spared = 0
    for item in examination.collectives(waiter):
        if item.late_rank != late or not item.wait_ns:
            continue
        arrivals = sorted(member.start_ns for member in item.members)
        ahead = arrivals[-1] - arrivals[-2] if len(arrivals) > 1 else item.wait_ns
        spared += min(ahead, item.wait_ns)
    return spared / examination.windows[waiter].step_count


RULES = (Rule("communication.waiting", "Ranks the others wait for", waiting),)
