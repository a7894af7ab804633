"""The tasks of one rank that a recording shows, sorted by what the profiler makes of them."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.runtime.scheduler.schedule import Schedule
from engine.trace.strings import ABSENT

RUNTIME_PREFIX = "aclrt"
"""Host tasks of this name are calls of the runtime itself; all others are operators of the framework."""

_HOST = (TaskKind.HOST, TaskKind.SYNCHRONIZE)


@dataclass(frozen=True, slots=True, eq=False)
class RankTasks:
    """Task indices of one rank, each in program order. int32 arrays.

    Attributes:
        rank: Global rank.
        operators: Host tasks that are framework operators.
        runtime_calls: Host tasks that are calls of the runtime.
        device: Tasks on device streams: kernels and copies.
        collectives: Members of collectives.
        launcher: int32, shape (tasks of the graph,): the host task that launched each device task and collective:
            the last of its predecessors on the rank's host; −1 for others.
    """

    rank: int
    operators: Int32Array
    runtime_calls: Int32Array
    device: Int32Array
    collectives: Int32Array
    launcher: Int32Array

    @property
    def host(self) -> Int32Array:
        """All host tasks, in program order."""
        return np.sort(np.concatenate((self.operators, self.runtime_calls)))

    @property
    def launched(self) -> Int32Array:
        """Device tasks and collectives that have a launcher, in program order."""
        tasks = np.sort(np.concatenate((self.device, self.collectives)))
        return tasks[self.launcher[tasks] >= 0]


def tasks_of_rank(graph: TaskGraph, schedule: Schedule, rank: int, steps: tuple[int, ...] | None) -> RankTasks:
    """Returns the tasks of ``rank`` that ended, of the given steps (all where None)."""
    chosen: BoolArray = (graph.rank == rank) & schedule.ended
    if steps is not None:
        chosen &= np.isin(graph.step, steps)
    host = chosen & np.isin(graph.kind, _HOST)
    collective = chosen & (graph.kind == TaskKind.COLLECTIVE)
    rows = np.flatnonzero(host)
    names, inverse = np.unique(graph.name[rows], return_inverse=True)
    is_runtime = np.array([text.startswith(RUNTIME_PREFIX) for text in graph.strings.texts(names)], dtype=np.bool_)
    runtime = is_runtime[inverse] if len(rows) else np.empty(0, dtype=np.bool_)
    return RankTasks(
        rank=rank,
        operators=rows[~runtime].astype(np.int32),
        runtime_calls=rows[runtime].astype(np.int32),
        device=np.flatnonzero(chosen & ~host & ~collective).astype(np.int32),
        collectives=np.flatnonzero(collective).astype(np.int32),
        launcher=_launchers(graph, host, chosen & ~host),
    )


def _launchers(graph: TaskGraph, host: BoolArray, launched: BoolArray) -> Int32Array:
    """Returns the last host predecessor of each launched task, int32, −1 for none."""
    after = np.repeat(np.arange(len(graph)), np.diff(graph.predecessor_offsets))
    edges = np.flatnonzero(launched[after] & host[graph.predecessors])
    launcher = np.full(len(graph), ABSENT, dtype=np.int32)
    np.maximum.at(launcher, after[edges], graph.predecessors[edges])
    return launcher


def collective_numbers(graph: TaskGraph, tasks: Int32Array) -> Int64Array:
    """Returns which call of its group each collective is on this rank, 0-based, int64: equal on all members."""
    order = np.argsort(graph.group[tasks], kind="stable")
    sorted_groups = graph.group[tasks][order]
    first = np.flatnonzero(np.concatenate(([True], sorted_groups[1:] != sorted_groups[:-1])))
    counts = np.diff(np.append(first, len(tasks))) if len(tasks) else np.empty(0, dtype=np.int64)
    number = np.empty(len(tasks), dtype=np.int64)
    number[order] = np.arange(len(tasks)) - np.repeat(first[: len(counts)], counts) if len(tasks) else 0
    return number
