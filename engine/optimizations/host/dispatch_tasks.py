"""The host of recorded ranks: which of its tasks dispatch operators, and what each of them usually takes."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.graph_edits import launches_of
from engine.optimizations.interface import CapturePlan

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


def environment(plan: CapturePlan, name: str) -> str:
    """Returns an environment variable of the recorded job, "" where it is not set or not recorded."""
    values = (entry.trace.metadata.environment.get(name, "") for entry in plan.capture.job.ranks)
    return next((value for value in values if value), "")


def is_gpu(plan: CapturePlan) -> bool:
    """Returns whether the job ran on CUDA or ROCm devices."""
    if plan.device is not None:
        return plan.device.vendor != "Huawei"
    words = " ".join(entry.trace.metadata.device or "" for entry in plan.capture.job.ranks).casefold()
    return any(word in words for word in ("nvidia", "tesla", "geforce", "amd", "instinct", "mi2", "mi3"))
