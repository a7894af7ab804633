"""What comes after a collective when a graph runs as it is."""

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.graph.task_graph import Stream, TaskGraph
from engine.optimizations.communication.exposure import Exposure
from engine.optimizations.communication.progress import rank_computing


def stream_followers(graph: TaskGraph, task: Int32Array, moved: BoolArray) -> Int32Array:
    """Returns the next task that stays on the stream of each call, int32, −1 where none does.

    Args:
        graph: The tasks.
        task: The calls.
        moved: bool, shape (tasks,): which leave their stream.
    """
    keys = graph.rank.astype(np.int64) * (int(graph.stream.max()) + 1) + graph.stream
    stays = np.flatnonzero(~moved & np.isin(keys, keys[task]))
    if len(stays) == 0:
        return np.full(len(task), -1, dtype=np.int32)
    stays = stays[np.argsort(keys[stays], kind="stable")]
    place = np.searchsorted(keys[stays] * len(graph) + stays, keys[task] * len(graph) + task)
    found = stays[np.minimum(place, len(stays) - 1)]
    fits = (place < len(stays)) & (keys[found] == keys[task])
    return np.where(fits, found, -1).astype(np.int32)


def next_computing(seen: Exposure, graph: TaskGraph, task: Int32Array, moment_ns: Int64Array) -> Int32Array:
    """Returns the first computing task of the same rank that starts at a moment or after it, int32, −1 for none.

    Args:
        seen: When everything runs.
        graph: The tasks.
        task: Whose ranks are meant.
        moment_ns: int64, the moment for each of them.
    """
    found = np.full(len(task), -1, dtype=np.int32)
    # A loop over ranks.
    for rank, own in rank_computing(graph, seen.schedule).items():
        rows = np.flatnonzero(graph.rank[task] == rank)
        place = np.searchsorted(own.start_ns, moment_ns[rows])
        inside = place < len(own.task)
        found[rows[inside]] = own.task[place[inside]]
    return found


def last_on_computing_stream(seen: Exposure, graph: TaskGraph, task: Int32Array, moment_ns: Int64Array) -> Int32Array:
    """Returns the last kernel on COMPUTE of the same rank that starts before a moment, int32, −1 for none.

    Args:
        seen: When everything runs.
        graph: The tasks.
        task: Whose ranks are meant.
        moment_ns: int64, the moment for each of them.
    """
    found = np.full(len(task), -1, dtype=np.int32)
    # A loop over ranks.
    for rank, own in rank_computing(graph, seen.schedule).items():
        rows = np.flatnonzero(graph.rank[task] == rank)
        chosen = graph.stream[own.task] == Stream.COMPUTE
        place = np.searchsorted(own.start_ns[chosen], moment_ns[rows]) - 1
        known = place >= 0
        found[rows[known]] = own.task[chosen][place[known]]
    return found
