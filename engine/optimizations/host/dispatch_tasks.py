"""The host of recorded ranks: which of its tasks dispatch operators, and what each of them usually takes."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.graph_edits import launches_of

LONG_RATIO = 10
"""Dispatches of one framework are alike; what takes ten times the usual one does other work beside (loading of data,
garbage collection, Python between parts of a step)."""
COMPUTES = (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX, TaskKind.AI_CPU, TaskKind.COPY)


@dataclass(frozen=True, slots=True, eq=False)
class DispatchTasks:
    """Host tasks that dispatch computing.

    Attributes:
        dispatches: bool, shape (tasks,): launches a kernel or copy.
        usual_ns: By rank, the median of them.
        long: bool, shape (tasks,): takes so much longer than usual that other work stands in it.
        launched: int64, shape (tasks,): device tasks each launches.
    """

    dispatches: BoolArray
    usual_ns: dict[int, int]
    long: BoolArray
    launched: Int64Array


def dispatch_tasks(graph: TaskGraph) -> DispatchTasks:
    """Returns what dispatches computing on the hosts of a graph."""
    launch = launches_of(graph)
    known = launch >= 0
    launched = np.bincount(launch[known & (graph.kind != TaskKind.GAP)], minlength=len(graph)).astype(np.int64)
    dispatches = np.zeros(len(graph), dtype=np.bool_)
    dispatches[launch[known & np.isin(graph.kind, COMPUTES)]] = True
    dispatches &= (graph.kind == TaskKind.HOST) & (graph.stream == Stream.HOST)
    usual_ns, long = {}, np.zeros(len(graph), dtype=np.bool_)
    # A loop over ranks.
    for rank in np.unique(graph.rank[dispatches]).tolist():
        own = np.flatnonzero(dispatches & (graph.rank == rank))
        usual_ns[rank] = int(np.median(graph.duration_ns[own]))
        long[own] = graph.duration_ns[own] > LONG_RATIO * max(usual_ns[rank], 1)
    return DispatchTasks(dispatches, usual_ns, long, launched)
