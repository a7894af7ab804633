"""The traces of one or many ranks on one clock."""

from dataclasses import dataclass
from enum import StrEnum

from engine.trace.diagnostics import Diagnostic
from engine.trace.trace import Trace


class Alignment(StrEnum):
    """How a rank's clock was put on the job's clock."""

    REFERENCE = "reference"
    """Its own clock is the job's clock."""
    SAME_CLOCK = "same_clock"
    """Same host and epoch: shifted by the difference of the epochs."""
    UNALIGNED = "unaligned"
    """Unknown relation: starts at the job's start; times across ranks must not be compared."""


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One rank inside a job.

    Attributes:
        rank: Global rank; unique in the job (made up in file order where captures do not say).
        trace: Its run.
        offset_ns: Job time of the trace's ns 0.
        alignment: How the offset was found.
    """

    rank: int
    trace: Trace
    offset_ns: int
    alignment: Alignment


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Ranks in ascending order, and what was wrong with the set of them."""

    path: str
    ranks: tuple[RankTrace, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    def rank_trace(self, rank: int) -> RankTrace:
        """Returns the entry of a global rank; KeyError if the job has none."""
        for entry in self.ranks:
            if entry.rank == rank:
                return entry
        raise KeyError(rank)


def align(path: str, traces: list[Trace], diagnostics: tuple[Diagnostic, ...] = ()) -> Job:
    """Returns the job of ``traces`` with ranks numbered and clocks related.

    Traces with an epoch and the same host (or no host named at all) share a clock. Ranks that are missing or taken
    twice are numbered after the highest known one, in the order given.
    """
    ranks = _distinct_ranks(traces)
    order = sorted(range(len(traces)), key=lambda index: ranks[index])
    epochs = [trace.metadata.epoch_ns for trace in traces]
    hosts = {trace.metadata.host for trace in traces if trace.metadata.host is not None}
    known = [epoch for epoch in epochs if epoch is not None]
    start_ns = min(known, default=0)
    entries = []
    for position, index in enumerate(order):
        epoch_ns = epochs[index]
        if epoch_ns is not None and (len(known) == 1 or len(hosts) <= 1):
            alignment = Alignment.REFERENCE if position == 0 else Alignment.SAME_CLOCK
            entries.append(RankTrace(ranks[index], traces[index], epoch_ns - start_ns, alignment))
        else:
            alignment = Alignment.REFERENCE if len(traces) == 1 else Alignment.UNALIGNED
            entries.append(RankTrace(ranks[index], traces[index], 0, alignment))
    return Job(path, tuple(entries), diagnostics)


def _distinct_ranks(traces: list[Trace]) -> list[int]:
    taken: set[int] = set()
    ranks: list[int | None] = []
    for trace in traces:
        rank = trace.metadata.rank
        if rank is None or rank in taken:
            ranks.append(None)
        else:
            taken.add(rank)
            ranks.append(rank)
    spare = max(taken, default=-1) + 1
    numbered = []
    for rank in ranks:
        if rank is None:
            rank, spare = spare, spare + 1
        numbered.append(rank)
    return numbered
