"""Streams as chains: which queue each task is in and who comes next in it."""

from dataclasses import dataclass

import numba
import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph


@dataclass(frozen=True, slots=True, eq=False)
class StreamChains:
    """The queues of all ranks, numbered by rank, then stream.

    Attributes:
        queue: int32, shape (tasks,): the queue of each task.
        next_task: int32, shape (tasks,): the task after each one in its queue, −1 for the last.
        first_task: int32, shape (queues,).
        rank: int32, shape (queues,).
        stream: int32, shape (queues,).
    """

    queue: Int32Array
    next_task: Int32Array
    first_task: Int32Array
    rank: Int32Array
    stream: Int32Array

    def __len__(self) -> int:
        return len(self.first_task)


def stream_chains(graph: TaskGraph) -> StreamChains:
    """Returns the queues of ``graph``; each holds its tasks in program order, which is index order."""
    if len(graph) == 0:
        nothing = np.empty(0, dtype=np.int32)
        return StreamChains(nothing, nothing, nothing, nothing, nothing)
    stream_count = int(graph.stream.max()) + 1
    keys = graph.rank.astype(np.int64) * stream_count + graph.stream
    queue, known = _numbered(keys, int(graph.rank.max() + 1) * stream_count)
    next_task, first_task = _chained(queue, len(known))
    return StreamChains(
        queue=queue,
        next_task=next_task,
        first_task=first_task,
        rank=(known // stream_count).astype(np.int32),
        stream=(known % stream_count).astype(np.int32),
    )


def _numbered(keys: Int64Array, key_count: int) -> tuple[Int32Array, Int64Array]:
    """Returns the keys as dense numbers, ascending, and the key of each number."""
    used = np.zeros(key_count, dtype=np.bool_)
    used[keys] = True
    known = np.flatnonzero(used)
    number = np.zeros(key_count, dtype=np.int32)
    number[known] = np.arange(len(known), dtype=np.int32)
    return number[keys], known


@numba.njit(cache=True)
def _chained(queue: Int32Array, queue_count: int) -> tuple[Int32Array, Int32Array]:
    """Returns the successor of each task in its queue and the first task of each queue, −1 for none."""
    next_task = np.full(len(queue), -1, np.int32)
    first_task = np.full(queue_count, -1, np.int32)
    last_task = np.full(queue_count, -1, np.int32)
    for task in range(len(queue)):
        number = queue[task]
        if last_task[number] < 0:
            first_task[number] = task
        else:
            next_task[last_task[number]] = task
        last_task[number] = task
    return next_task, first_task
