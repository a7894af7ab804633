"""What to say of communication that no overlap wins: waiting for a late rank, and collectives that are not split."""

import numpy as np

from engine.core.arrays import BoolArray
from engine.core.number_format import format_count, format_duration_ns
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Calls
from engine.optimizations.communication.exposure import Exposure

_WORTH_SAYING = 0.1
"""Less waiting than this share of a rank's exposed communication decides nothing."""


def unsplit_reason(graph: TaskGraph, seen: Exposure, chosen: BoolArray) -> str:
    """Returns why nothing can be said of collectives whose members are not all open.

    Args:
        graph: The tasks.
        seen: When they run.
        chosen: bool, shape (calls,): the collectives in question.
    """
    calls = seen.calls.select(chosen)
    elapsed_ns = int(graph.duration_ns[calls.task].sum())
    exposed_ns = int(seen.exposed_transfer_ns[chosen].sum())
    return (
        f"{format_count(len(calls))} collectives take {format_duration_ns(elapsed_ns)} over all ranks and steps "
        f"({format_duration_ns(exposed_ns)} exposed), waiting and transfer unsplit: {_missing(graph, calls)}; open the "
        "peers' captures with this one"
    )


def _missing(graph: TaskGraph, calls: Calls) -> str:
    members = int(calls.members.max(initial=0))
    recorded = len(np.unique(graph.rank))
    return f"{recorded} of {members} members are open" if members > recorded else "not all members are open"


def waiting_reason(graph: TaskGraph, seen: Exposure) -> str:
    """Returns how much of a rank's exposed communication waits for whom, as a clause; "" where little does."""
    rank = graph.rank[seen.calls.task]
    waits, transfers = seen.exposed_wait_ns, seen.exposed_transfer_ns
    if len(rank) == 0:
        return ""
    by_rank = np.bincount(rank, weights=waits)
    worst = int(np.argmax(by_rank))
    whole_ns = float(by_rank[worst] + transfers[rank == worst].sum())
    if by_rank[worst] <= _WORTH_SAYING * max(whole_ns, 1.0):
        return ""
    late = _late_rank(graph, seen, worst)
    return (
        f"; on rank {worst} {format_duration_ns(by_rank[worst])} of {format_duration_ns(whole_ns)} of exposed "
        f"communication is waiting for rank {late}, which overlap does not win"
    )


def _late_rank(graph: TaskGraph, seen: Exposure, rank: int) -> int:
    """Returns the rank that arrives last where ``rank`` waits longest in all."""
    calls, times = seen.calls, seen.schedule
    rows = np.flatnonzero((graph.rank[calls.task] == rank) & calls.split)
    members = np.flatnonzero(graph.rendezvous >= 0)
    members = members[np.lexsort((times.start_ns[members], graph.rendezvous[members]))]
    meeting = graph.rendezvous[members]
    last = members[np.searchsorted(meeting, graph.rendezvous[calls.task[rows]], side="right") - 1]
    waited = np.bincount(graph.rank[last], weights=seen.exposed_wait_ns[rows])
    return int(np.argmax(waited))
