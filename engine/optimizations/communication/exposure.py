"""When the tasks of a graph run as they are, and which part of each collective nothing is computed beside."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Calls
from engine.runtime.scheduler import Schedule, schedule
from engine.runtime.scheduler.interference import COMPUTING
from engine.trace.intervals import EMPTY, Intervals, covered_ns, union


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """Times of the collectives of a graph. int64 columns by row of ``calls``.

    Attributes:
        schedule: Of the whole graph.
        calls: The collectives.
        exposed_wait_ns: From a member's arrival to the last one's, without what the rank computes meanwhile; 0 where
            unsplit.
        exposed_transfer_ns: Likewise of what follows; of an unsplit collective of all of its elapsed time.
        computing: By rank, when it computes.
    """

    schedule: Schedule
    calls: Calls
    exposed_wait_ns: Int64Array
    exposed_transfer_ns: Int64Array
    computing: dict[int, Intervals]


def exposure(graph: TaskGraph, calls: Calls) -> Exposure:
    """Returns what of the calls is exposed when the graph runs as it is."""
    times = schedule(graph)
    task = calls.task
    computing = computing_intervals(graph, times)
    exposed_wait_ns, exposed_ns = (np.zeros(len(task), dtype=np.int64) for _ in range(2))
    for rank in np.unique(graph.rank[task]).tolist():
        rows = np.flatnonzero((graph.rank[task] == rank) & (times.end_ns[task] >= 0))
        start, begin, end = (column[task[rows]] for column in (times.start_ns, times.transfer_ns, times.end_ns))
        own = computing.get(rank, EMPTY)
        exposed_wait_ns[rows] = begin - start - covered_ns(own, start, begin)
        exposed_ns[rows] = end - begin - covered_ns(own, begin, end)
    return Exposure(times, calls, exposed_wait_ns, exposed_ns, computing)


def computing_intervals(graph: TaskGraph, times: Schedule) -> dict[int, Intervals]:
    """Returns when each rank computes, by rank."""
    rows = np.flatnonzero(np.isin(graph.kind, COMPUTING) & (times.end_ns > times.start_ns))
    ranks = graph.rank[rows]
    return {
        rank: union(times.start_ns[rows[ranks == rank]], times.end_ns[rows[ranks == rank]])
        for rank in np.unique(ranks).tolist()
    }


def exposed_and_whole_ns(graph: TaskGraph, seen: Exposure, chosen: BoolArray) -> tuple[float, float]:
    """Returns how much of the transfer of some calls is exposed and how long all of it is, mean per rank and step.

    Args:
        graph: The tasks.
        seen: When they run.
        chosen: bool, shape (calls,).
    """
    exposed_ns = float(seen.exposed_transfer_ns[chosen].sum())
    return per_step(graph, exposed_ns), per_step(graph, float(graph.duration_ns[seen.calls.task[chosen]].sum()))


def per_step(graph: TaskGraph, total_ns: float) -> float:
    """Returns a sum over all ranks and steps as a mean per rank and step."""
    ranks = len(np.unique(graph.rank)) or 1
    steps = len(np.unique(graph.step[graph.step >= 0])) or 1
    return total_ns / (ranks * steps)
