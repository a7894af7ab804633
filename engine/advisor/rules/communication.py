"""Exposed communication: transfer that could be hidden, waiting and who causes it, and what cannot be told apart."""

from collections import defaultdict
from collections.abc import Sequence

from engine.advisor.collective_purpose import Purpose, purpose_of
from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Evidence, Finding, Toggle, Unit
from engine.advisor.rules.rule import Rule, loss
from engine.analyses.communication import Collective
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
    split = {rank: split_collectives(examination, rank) for rank in examination.windows}
    totals = {rank: sum(_exposed_transfer_ns(item) for item in items) for rank, items in split.items() if items}
    if not totals:
        complain_if_unsplit(examination)
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
        duration("exposed transfer", exposed_ns, rank, largest, "elapsed − waiting − computing beside it, per step"),
        duration(
            "of it at most hideable behind computing", hideable_ns, rank, (), "computing of the same step not taken"
        ),
        duration(
            "waiting for late ranks, which no overlap wins", waiting_ns, rank, (), "until the last member arrives"
        ),
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
                duration(
                    "exposed communication, unsplit", worst_ns, worst, items[:_LISTED_EVENTS], "elapsed − computing"
                ),
            ),
            (action,),
        )
    ]


def _listed(ranks: Sequence[int]) -> str:
    text = ", ".join(map(str, ranks[:8]))
    return f"{text} …" if len(ranks) > 8 else text


def split_collectives(examination: Examination, rank: int) -> list[Collective]:
    """Returns the collectives of a rank whose waiting and transfer are told apart."""
    return [item for item in examination.collectives(rank) if item.wait_ns is not None]


def _exposed_transfer_ns(item: Collective) -> int:
    return item.exposed_ns - (item.exposed_wait_ns or 0)


def complain_if_unsplit(examination: Examination) -> None:
    """Raises MissingDataError where there are collectives but none is split; a job without any has no such problem."""
    if any(examination.collectives(rank) for rank in examination.windows):
        raise MissingDataError("collectives with all their members", "open the captures of all ranks together")


def duration(what: str, ns: float, rank: int, items: Sequence[Collective], how: str) -> Evidence:
    """Returns a duration as evidence; its place is that of the first collective."""
    where = TimeRange(items[0].start_ns, items[0].start_ns + items[0].elapsed_ns) if items else None
    return Evidence(what, ns, Unit.NS, rank=rank, range=where, events=_events(items), how=how)


def _events(items: Sequence[Collective]) -> tuple[int, ...]:
    return tuple(item.event for item in items if item.event >= 0)


RULES = (
    Rule("communication.exposed_transfer", "Transfer that no computing covers", exposed_transfer),
    Rule("communication.unsplit", "Communication whose waiting cannot be told from its transfer", unsplit),
)
