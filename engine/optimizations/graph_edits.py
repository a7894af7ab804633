"""What optimizations do to a task graph: new waits, new tasks in the middle of a stream. Arguments stay as they are."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from engine.core.arrays import AnyArray, Int32Array
from engine.graph.builder import predecessor_rows
from engine.graph.task_graph import BufferTable, TaskGraph, task_columns
from engine.trace.strings import ABSENT, StringTable

_ABSENT_COLUMNS = (
    "rendezvous", "step", "micro_batch", "layer", "phase", "shape", "types", "group", "origin_event",
)  # fmt: skip


def edges_of(graph: TaskGraph) -> tuple[Int32Array, Int32Array]:
    """Returns what waits for what: tasks that must have ended, and the tasks that wait; int32, shape (edges,) each.

    The edges of a task keep their order, so the first one of a device task is its launch (see ``CaptureGraph``).
    """
    waiting = np.repeat(np.arange(len(graph), dtype=np.int32), np.diff(graph.predecessor_offsets))
    return graph.predecessors.copy(), waiting


def with_edges(graph: TaskGraph, before: AnyArray, after: AnyArray) -> TaskGraph:
    """Returns the graph with these waits in place of its own.

    Args:
        graph: The tasks.
        before: Tasks that must have ended, shape (edges,).
        after: Tasks that wait for them, shape (edges,).
    """
    offsets, predecessors = predecessor_rows(
        np.asarray(before, dtype=np.int32), np.asarray(after, dtype=np.int32), len(graph)
    )
    return replace(graph, predecessor_offsets=offsets, predecessors=predecessors)


def with_column(graph: TaskGraph, name: str, tasks: AnyArray, values: AnyArray | float) -> TaskGraph:
    """Returns the graph with one column changed for some tasks.

    Args:
        graph: The tasks.
        name: Of the column.
        tasks: Indices, shape (n,), or a mask, bool, shape (tasks,).
        values: Their new values, shape (n,) or one for all.
    """
    column = getattr(graph, name).copy()
    column[tasks] = np.rint(values) if np.issubdtype(column.dtype, np.integer) else values
    changes: dict[str, Any] = {name: column}
    return replace(graph, **changes)


def with_names(graph: TaskGraph, names: Iterable[str]) -> tuple[TaskGraph, Int32Array]:
    """Returns the graph with further strings (itself where it has them all), and the ids of ``names``, int32."""
    wanted, strings = tuple(names), graph.strings
    new = [name for name in dict.fromkeys(wanted) if strings.id_of(name) < 0]
    if new:
        graph = replace(graph, strings=StringTable.from_strings([*strings, *new]))
    return graph, np.array([graph.strings.id_of(name) for name in wanted], dtype=np.int32)


def new_rendezvous(graph: TaskGraph) -> int:
    """Returns the first id no collective of the graph uses."""
    return int(graph.rendezvous.max(initial=ABSENT)) + 1


def launches_of(graph: TaskGraph) -> Int32Array:
    """Returns the host task that launched each device task, int32, shape (tasks,); −1 for host tasks and unknown ones.

    It is the first predecessor of a device task, where that is a task of the rank's dispatch.
    """
    launch = np.full(len(graph), ABSENT, dtype=np.int32)
    waits = np.flatnonzero((np.diff(graph.predecessor_offsets) > 0) & (graph.stream != 0))
    first = graph.predecessors[graph.predecessor_offsets[waits]]
    on_host = (graph.stream[first] == 0) & (graph.rank[first] == graph.rank[waits])
    launch[waits[on_host]] = first[on_host]
    return launch


def with_tasks(
    graph: TaskGraph,
    columns: Mapping[str, AnyArray | int | float],
    place: AnyArray,
    before: AnyArray,
    after: AnyArray,
) -> tuple[TaskGraph, Int32Array]:
    """Returns the graph with new tasks between its own, and where every task went.

    Args:
        graph: The tasks, n of them.
        columns: Columns of the new tasks, arrays of shape (new,) or one value for all; ``name``, ``kind``, ``rank``,
            ``stream`` and ``duration_ns`` are needed, what is left out is absent or 0.
        place: int, shape (new,): the task each new one stands before in program order, n for the end. Several at one
            place keep their order.
        before: All waits of the result, in numbers in which the new tasks come after the old ones (n, n + 1 …).
        after: See ``before``.

    Returns:
        The graph, and int32, shape (n + new,): the index of each old, then each new task in it.
    """
    count, added = len(graph), len(np.asarray(place))
    key = np.concatenate((np.arange(count, dtype=np.int64), np.asarray(place, dtype=np.int64)))
    order = np.lexsort((np.concatenate((np.ones(count), np.zeros(added))), key)).astype(np.int32)
    position = np.empty(count + added, dtype=np.int32)
    position[order] = np.arange(count + added, dtype=np.int32)
    widened: dict[str, Any] = {}
    for name, column in task_columns(graph).items():
        default = ABSENT if name in _ABSENT_COLUMNS else 0
        new = np.broadcast_to(np.asarray(columns.get(name, default)), (added,)).astype(column.dtype)
        widened[name] = np.concatenate((column, new))[order]
    offsets, predecessors = predecessor_rows(
        position[np.asarray(before, dtype=np.int64)], position[np.asarray(after, dtype=np.int64)], count + added
    )
    result = replace(
        graph,
        **widened,
        predecessor_offsets=offsets,
        predecessors=predecessors,
        buffers=_moved(graph.buffers, position),
    )
    return result, position


def _moved(buffers: BufferTable, position: Int32Array) -> BufferTable:
    """Returns the buffers with the tasks that allocate and free them renumbered."""
    freed = np.where(buffers.freed_by >= 0, position[np.maximum(buffers.freed_by, 0)], ABSENT).astype(np.int32)
    if len(position) == 0:
        return buffers
    return replace(buffers, allocated_by=position[buffers.allocated_by], freed_by=freed)
