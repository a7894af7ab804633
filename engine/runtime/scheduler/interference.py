"""How much slower a task runs while its rank communicates: 0.25 means a quarter longer for the time both last."""

import numpy as np

from engine.core.arrays import Float64Array
from engine.core.units import NS_PER_S
from engine.graph.task_graph import TaskGraph, TaskKind

COMPUTING = (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX)


def uniform_slowdown(graph: TaskGraph, ratio: float) -> Float64Array:
    """Returns the same slowdown for every task on the AI cores, 0 for all others; float64, shape (tasks,)."""
    return np.where(np.isin(graph.kind, COMPUTING), ratio, 0.0)


def memory_contention(graph: TaskGraph, memory_bytes_per_s: float, taken_ratio: float) -> Float64Array:
    """Returns the slowdown of tasks that miss the memory bandwidth a transfer takes; float64, shape (tasks,).

    A task that needs the share u of the bandwidth and finds 1 − c of it free takes u ÷ (1 − c) of its time where that
    is more than 1; one that is bound by its cube does not notice. SDMA and RDMA take bandwidth only, no cores.

    Args:
        graph: ``bytes`` of each task are what it moves to and from device memory.
        memory_bytes_per_s: What the memory gives at best.
        taken_ratio: c, the share a transfer takes, 0 ≤ c < 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = graph.bytes * NS_PER_S / (graph.duration_ns * memory_bytes_per_s)
    needed = np.where(graph.duration_ns > 0, np.minimum(needed, 1.0), 0.0)
    stretched = np.maximum(needed / (1.0 - taken_ratio) - 1.0, 0.0)
    return np.where(np.isin(graph.kind, COMPUTING), stretched, 0.0)
