"""Exposed communication: transfer that could be hidden, waiting and who causes it, and what cannot be told apart."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from engine.advisor.collective_purpose import Purpose, purpose_of
from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Estimate, Evidence, Finding, Toggle, Unit
from engine.advisor.rules.rule import Rule, loss
from engine.analyses.communication import Collective, SlowRank
from engine.analyses.fusion import Range3
from engine.core.errors import MissingDataError
from engine.core.number_format import format_duration_ns, format_ratio
from engine.optimizations.interface import Switch
from engine.trace.trace import TimeRange

OPEN_PEERS = "open_peers"
"""Id of the recommendation to open more captures."""
_LISTED_EVENTS = 12
_TOGGLES = {
    Purpose.GRADIENTS: (
        "communication.overlap_gradients",
        "communication.chunking",
        "communication.quantized_gradients",
        "communication.topk_compression",
        "communication.algorithm",
    ),
    Purpose.PARAMETERS: ("communication.overlap_parameters", "communication.algorithm"),
    Purpose.TENSOR: ("fusion.matmul_all_reduce", "communication.overlap_tensor_parallel", "communication.chunking"),
    Purpose.OTHER: ("communication.chunking", "communication.algorithm"),
}
"""What can be tried against transfer of each purpose; whether it applies is the optimization's own verdict."""


def exposed_transfer(examination: Examination) -> Sequence[Finding]:
    """Returns the transfer no computing covers, on the rank with the most of it."""
    split = {rank: _split(examination, rank) for rank in examination.windows}
    totals = {rank: sum(_exposed_transfer_ns(item) for item in items) for rank, items in split.items() if items}
    if not totals:
        _complain(examination)
        return ()
    count = {rank: examination.windows[rank].step_count for rank in totals}
    rank = max(totals, key=lambda each: totals[each] / count[each])
    items = split[rank]
    exposed_ns = totals[rank] / count[rank]
    if examination.share(exposed_ns) < WORTH_RATIO:
        return ()
    hideable_ns = sum(item.hideable_ns or 0 for item in items) / count[rank]
    waiting_ns = sum(item.exposed_wait_ns or 0 for item in items) / count[rank]
    largest = sorted(items, key=lambda item: -_exposed_transfer_ns(item))[:_LISTED_EVENTS]
    evidence = (
        _number("exposed transfer", exposed_ns, rank, largest, "elapsed − waiting − computing beside it, per step"),
        _number(
            "of it at most hideable behind computing", hideable_ns, rank, (), "computing of the same step not taken"
        ),
        _number("waiting for late ranks, which no overlap wins", waiting_ns, rank, (), "until the last member arrives"),
    )
    parts = _by_purpose(items)
    named = ", ".join(f"{purpose.value} {format_duration_ns(ns / count[rank])}" for purpose, ns in parts)
    ids = list(dict.fromkeys(name for purpose, _ in parts for name in _TOGGLES.get(purpose, ())))
    return [
        loss(
            examination,
            "communication.exposed_transfer",
            Category.COMMUNICATION,
            f"Rank {rank} transfers {format_duration_ns(exposed_ns)} per step with nothing to compute beside it",
            f"collectives are entered only after the computing that could cover them: {named}",
            exposed_ns,
            evidence,
            [Toggle(name) for name in ids],
        )
    ]


def _by_purpose(items: Sequence[Collective]) -> list[tuple[Purpose, int]]:
    totals: dict[Purpose, int] = defaultdict(int)
    for item in items:
        totals[purpose_of(item)] += _exposed_transfer_ns(item)
    return sorted(((purpose, ns) for purpose, ns in totals.items() if ns > 0), key=lambda part: -part[1])


def waiting(examination: Examination) -> Sequence[Finding]:
    """Returns every rank others wait a hundredth of the step for, without those a pipeline's stages explain."""
    if not any(_split(examination, rank) for rank in examination.windows):
        _complain(examination)
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
    evidence = [
        _number(f"waiting for rank {late.rank}", cost_ns, worst, items[:_LISTED_EVENTS], "union over all waiting ranks")
    ]
    blamed = followed(examination, late.rank)
    evidence += [
        _number(f"rank {late.rank} itself waited then for rank {rank}", ns, late.rank, (), "the next link of the chain")
        for rank, ns in blamed
    ]
    computing = _computing_comparison(examination, late.rank)
    if computing is not None:
        evidence.append(computing)
    chain = "".join(f"; it waited itself for rank {rank}" for rank, _ in blamed)
    return loss(
        examination,
        "communication.waiting",
        Category.COMMUNICATION,
        f"Other ranks wait {format_duration_ns(cost_ns)} per step for rank {late.rank}",
        f"rank {late.rank} arrives late, meanwhile {late.cause}{chain}",
        cost_ns,
        evidence,
        (_even_out(late, cost_ns, computing),),
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
        overlap_ns = max(
            (min(end, start_ns + item.wait_ns) - max(begin, start_ns) for begin, end in blocked), default=0
        )
        totals[item.late_rank] += max(overlap_ns, 0)
    count = examination.windows[late].step_count if late in examination.windows else 1
    links = [(rank, ns / count) for rank, ns in totals.items() if examination.share(ns / count) >= WORTH_RATIO]
    return sorted(links, key=lambda link: -link[1])


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


def _even_out(late: SlowRank, cost_ns: float, computing: Evidence | None) -> Action:
    longer_ns = 0.0 if computing is None else max(computing.value, 0.0)
    works = longer_ns > cost_ns / 2
    what = "Give rank {} as much work as its peers" if works else "Find what keeps rank {} from its collectives"
    advice = (
        "balance the input: bucket sequences by length, spread tables and experts evenly"
        if works
        else "bind its process to the CPUs of its device's NUMA node: CPU_AFFINITY_CONF=2, and look at its data loading"
    )
    expected_ns = min(longer_ns, cost_ns) if works else 0.0
    return Action(
        id=f"even_out.rank_{late.rank}",
        title=what.format(late.rank),
        how_to_apply=(
            Switch(
                "any" if works else "torch_npu",
                "",
                advice,
                "" if works else "Ascend/pytorch docs/zh/api/environment_variable/performance_tuning",
                "binding is skipped with a warning if the process has a CPU affinity already",
            ),
        ),
        estimate=Estimate(
            Range3(0.0, expected_ns, cost_ns),
            None,
            ("at best nobody waits for it any more; another rank may then be the late one",),
        )
        if works
        else None,
        risk="none to results",
        undo="restore the former distribution" if works else "unset CPU_AFFINITY_CONF",
        verify=f"waiting for rank {late.rank} in the communication table, over 5 warm steps",
    )


def unsplit(examination: Examination) -> Sequence[Finding]:
    """Returns exposed communication whose waiting and transfer cannot be told apart, and which captures would do it."""
    worst, worst_ns, missing = None, 0.0, set[int]()
    for rank, window in examination.windows.items():
        items = [item for item in examination.collectives(rank) if item.wait_ns is None]
        missing |= {other for item in items for other in item.missing_ranks}
        exposed_ns = sum(item.exposed_ns for item in items) / window.step_count
        if exposed_ns > worst_ns:
            worst, worst_ns = rank, exposed_ns
    if worst is None or examination.share(worst_ns) < WORTH_RATIO:
        return ()
    whom = (
        f"rank{'s' if len(missing) > 1 else ''} {_listed(sorted(missing))}" if missing else "the other ranks of the job"
    )
    items = sorted(
        (item for item in examination.collectives(worst) if item.wait_ns is None), key=lambda i: -i.exposed_ns
    )
    action = Action(
        id=OPEN_PEERS,
        title=f"Open the captures of {whom} together with these",
        how_to_apply=(Switch("cannscope", "", "cannscope advise DIRECTORY_OF_ALL_RANKS", "docs/advice.md"),),
        estimate=None,
        risk="none",
        undo="nothing to undo",
        verify="waiting and transfer are shown apart",
    )
    return [
        loss(
            examination,
            "communication.unsplit",
            Category.COMMUNICATION,
            f"Rank {worst} spends {format_duration_ns(worst_ns)} of the step "
            f"({format_ratio(examination.share(worst_ns))}) in communication that may be waiting or transfer",
            f"what {whom} did is not open, so nobody knows when the last member arrived",
            worst_ns,
            (
                _number(
                    "exposed communication, unsplit", worst_ns, worst, items[:_LISTED_EVENTS], "elapsed − computing"
                ),
            ),
            (action,),
        )
    ]


def _listed(ranks: Sequence[int]) -> str:
    text = ", ".join(map(str, ranks[:8]))
    return f"{text} …" if len(ranks) > 8 else text


def _split(examination: Examination, rank: int) -> list[Collective]:
    return [item for item in examination.collectives(rank) if item.wait_ns is not None]


def _exposed_transfer_ns(item: Collective) -> int:
    return item.exposed_ns - (item.exposed_wait_ns or 0)


def _complain(examination: Examination) -> None:
    """Raises MissingDataError where there are collectives but none is split; a job without any has no such problem."""
    if any(examination.collectives(rank) for rank in examination.windows):
        raise MissingDataError("collectives with all their members", "open the captures of all ranks together")


def _number(what: str, ns: float, rank: int, items: Sequence[Collective], how: str) -> Evidence:
    where = TimeRange(items[0].start_ns, items[0].start_ns + items[0].elapsed_ns) if items else None
    return Evidence(what, ns, Unit.NS, rank=rank, range=where, events=_events(items), how=how)


def _events(items: Sequence[Collective]) -> tuple[int, ...]:
    return tuple(item.event for item in items if item.event >= 0)


RULES = (
    Rule("communication.exposed_transfer", "Transfer that no computing covers", exposed_transfer),
    Rule("communication.waiting", "Ranks the others wait for", waiting),
    Rule("communication.unsplit", "Communication whose waiting cannot be told from its transfer", unsplit),
)
