"""Whether the tasks of a graph can be put in an order at all."""

import numba
import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.core.errors import CyclicTaskGraphError
from engine.graph.streams import stream_chains
from engine.graph.task_graph import TaskGraph

MAX_NAMED = 12
"""So many tasks of a cycle are named; longer ones are cut in the middle."""


def topological_order(graph: TaskGraph) -> Int32Array:
    """Returns the tasks in an order that keeps predecessors and streams, int32; meetings of ranks are not looked at.

    Raises:
        CyclicTaskGraphError: Tasks wait for each other; it names them.
    """
    chains = stream_chains(graph)
    order = _ordered(graph.predecessor_offsets, graph.predecessors, chains.next_task)
    if len(order) < len(graph):
        raise CyclicTaskGraphError(_named_cycle(graph, chains.next_task, order))
    return order


def _named_cycle(graph: TaskGraph, next_task: Int32Array, order: Int32Array) -> tuple[str, ...]:
    """Returns the names along one cycle among the tasks that could not be ordered."""
    left = np.ones(len(graph), dtype=np.bool_)
    left[order] = False
    before = np.full(len(graph), -1, dtype=np.int64)
    followed = np.flatnonzero(next_task >= 0)
    before[next_task[followed]] = followed
    task = int(np.flatnonzero(left)[0])
    path: dict[int, int] = {}
    # A walk against the arrows: every task that is left waits for another one that is left, so it must close.
    while task not in path:
        path[task] = len(path)
        candidates = [*graph.predecessors_of(task).tolist(), int(before[task])]
        task = next(candidate for candidate in candidates if candidate >= 0 and left[candidate])
    cycle = [*path][path[task] :][::-1]
    names = [f"{graph.operator(member)} (rank {int(graph.rank[member])})" for member in cycle]
    if len(names) > MAX_NAMED:
        half = MAX_NAMED // 2
        names = [*names[:half], f"… {len(names) - 2 * half} more …", *names[-half:]]
    return tuple(names)


@numba.njit(cache=True)
def _ordered(offsets: Int64Array, predecessors: Int32Array, next_task: Int32Array) -> Int32Array:
    """Returns every task that can be reached, each after all it waits for (Kahn's algorithm)."""
    count = len(next_task)
    missing = np.zeros(count, np.int32)
    first_follower = np.zeros(count + 1, np.int64)
    for task in range(count):
        missing[task] += np.int32(offsets[task + 1] - offsets[task])
        if next_task[task] >= 0:
            missing[next_task[task]] += 1
        for index in range(offsets[task], offsets[task + 1]):
            first_follower[predecessors[index] + 1] += 1
    first_follower = np.cumsum(first_follower)
    place = first_follower[:-1].copy()
    followers = np.empty(len(predecessors), np.int32)
    for task in range(count):
        for index in range(offsets[task], offsets[task + 1]):
            followers[place[predecessors[index]]] = task
            place[predecessors[index]] += 1
    order = np.empty(count, np.int32)
    known = 0
    for task in range(count):
        if missing[task] == 0:
            order[known] = task
            known += 1
    done = 0
    while done < known:
        task = order[done]
        done += 1
        stop = first_follower[task + 1]
        for index in range(first_follower[task], stop + 1):
            follower = followers[index] if index < stop else next_task[task]
            if follower >= 0:
                missing[follower] -= 1
                if missing[follower] == 0:
                    order[known] = follower
                    known += 1
    return order[:known]
