"""How much slower a task runs while its rank communicates: 0.25 means a quarter longer for the time both last."""

import numpy as np

from engine.core.arrays import AnyArray, Float64Array
from engine.core.units import NS_PER_S
from engine.graph.task_graph import TaskGraph, TaskKind

COMPUTING = (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX)
_POWER = 4
"""Of the soft maximum by which operators are priced (``engine.runtime.cost.rates.combined_ns``)."""


def uniform_slowdown(graph: TaskGraph, ratio: float) -> Float64Array:
    """Returns the same slowdown for every task on the AI cores, 0 for all others; float64, shape (tasks,)."""
    return np.where(np.isin(graph.kind, COMPUTING), ratio, 0.0)


def memory_contention(graph: TaskGraph, memory_bytes_per_s: float, contention_ratio: float) -> Float64Array:
    """Returns the slowdown of tasks whose memory a transfer of their rank uses too; float64, shape (tasks,).

    Args:
        graph: ``bytes`` of each task are what it moves to and from device memory.
        memory_bytes_per_s: What the memory gives at best.
        contention_ratio: How much longer a task takes that is bound by memory alone.
    """
    slowed = contention(graph.duration_ns, graph.bytes, memory_bytes_per_s, contention_ratio)
    return np.where(np.isin(graph.kind, COMPUTING), slowed, 0.0)


def contention(
    duration_ns: AnyArray, moved_bytes: AnyArray, memory_bytes_per_s: float, contention_ratio: float
) -> Float64Array:
    """Returns the slowdown of computing that moves so many bytes in its time; float64, the shape of the arguments.

    A task that needs the share u of the bandwidth is slowed as the price of an operator is: time is a soft maximum of
    cores and memory, so memory that takes 1 + c times as long makes it (1 + u⁴·((1 + c)⁴ − 1))^¼. A product bound by
    the cube hardly notices; SDMA and RDMA take bandwidth only, no cores. Data in the cache counts as data in memory,
    since transfers pass through the cache too.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.asarray(moved_bytes, np.float64) * NS_PER_S / (np.asarray(duration_ns) * memory_bytes_per_s)
    needed = np.where(np.asarray(duration_ns) > 0, np.minimum(needed, 1.0), 0.0)
    slowed: Float64Array = (1.0 + needed**_POWER * ((1.0 + contention_ratio) ** _POWER - 1.0)) ** (1 / _POWER) - 1.0
    return slowed
