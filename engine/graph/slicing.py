"""Parts of a graph: the tasks of one rank."""

from dataclasses import replace
from typing import Any

import numpy as np

from engine.core.arrays import BoolArray, Int32Array
from engine.graph.builder import predecessor_rows
from engine.graph.task_graph import BufferTable, TaskGraph, task_columns


def rank_slice(graph: TaskGraph, rank: int) -> tuple[TaskGraph, Int32Array]:
    """Returns the tasks of one rank with the buffers they allocate, and their indices in ``graph``, int32.

    Waits for tasks of other ranks are left out: a part does not know them. Collectives keep their rendezvous ids.
    """
    return take_tasks(graph, graph.rank == rank)


def take_tasks(graph: TaskGraph, chosen: BoolArray) -> tuple[TaskGraph, Int32Array]:
    """Returns the chosen tasks, in their order, and their indices in ``graph``; waits for others are left out.

    Args:
        graph: The whole.
        chosen: bool, shape (tasks,).
    """
    tasks = np.flatnonzero(chosen).astype(np.int32)
    position = np.full(len(graph) + 1, -1, dtype=np.int32)  # the last entry answers for −1
    position[tasks] = np.arange(len(tasks), dtype=np.int32)
    after = np.repeat(np.arange(len(graph), dtype=np.int32), np.diff(graph.predecessor_offsets))
    kept = np.flatnonzero((position[after] >= 0) & (position[graph.predecessors] >= 0))
    offsets, predecessors = predecessor_rows(position[graph.predecessors[kept]], position[after[kept]], len(tasks))
    columns: dict[str, Any] = {name: column[tasks] for name, column in task_columns(graph).items()}
    part = replace(
        graph,
        **columns,
        predecessor_offsets=offsets,
        predecessors=predecessors,
        buffers=_buffers_of(graph.buffers, position),
    )
    return part, tasks


def _buffers_of(buffers: BufferTable, position: Int32Array) -> BufferTable:
    rows = np.flatnonzero(position[buffers.allocated_by] >= 0)
    return BufferTable(
        size_bytes=buffers.size_bytes[rows],
        allocated_by=position[buffers.allocated_by[rows]],
        freed_by=position[buffers.freed_by[rows]],
        stream=buffers.stream[rows],
        name=buffers.name[rows],
        operator=buffers.operator[rows],
        tag=buffers.tag[rows],
    )
