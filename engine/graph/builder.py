"""Collects tasks in batches and turns them into a TaskGraph."""

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.graph.task_graph import BufferTable, Stream, TaskGraph, TaskKind
from engine.trace.strings import ABSENT, StringInterner
from engine.trace.trace import ParallelGroup

_TASK_DEFAULTS: dict[str, tuple[type, Any]] = {
    "name": (np.int32, None),
    "kind": (np.uint8, TaskKind.HOST),
    "rank": (np.int32, 0),
    "stream": (np.int32, Stream.HOST),
    "duration_ns": (np.int64, 0),
    "rendezvous": (np.int32, ABSENT),
    "flops": (np.float64, 0.0),
    "bytes": (np.float64, 0.0),
    "step": (np.int32, ABSENT),
    "micro_batch": (np.int32, ABSENT),
    "layer": (np.int32, ABSENT),
    "phase": (np.int32, ABSENT),
    "shape": (np.int32, ABSENT),
    "types": (np.int32, ABSENT),
    "group": (np.int32, ABSENT),
    "origin_event": (np.int32, ABSENT),
    "inferred": (np.uint8, 0),
}
_BUFFER_DTYPES: dict[str, type] = {
    "size_bytes": np.int64,
    "allocated_by": np.int32,
    "freed_by": np.int32,
    "stream": np.int32,
    "name": np.int32,
    "operator": np.int32,
    "tag": np.uint8,
}


@dataclass(eq=False)
class GraphBuilder:
    """Tasks of one (rank, stream) run in the order they are added.

    Attributes:
        strings: Shared by all columns.
        groups: Communication groups the tasks name.
    """

    strings: StringInterner = field(default_factory=StringInterner)
    groups: list[ParallelGroup] = field(default_factory=list)
    _tasks: list[dict[str, AnyArray]] = field(default_factory=list)
    _task_count: int = 0
    _edges: list[tuple[Int32Array, Int32Array]] = field(default_factory=list)
    _buffers: list[dict[str, AnyArray]] = field(default_factory=list)
    _buffer_count: int = 0
    _rendezvous_count: int = 0

    @property
    def task_count(self) -> int:
        """How many tasks were added; also the next task's index."""
        return self._task_count

    def add_tasks(self, count: int, predecessors: AnyArray | None = None, **columns: Any) -> int:
        """Adds ``count`` tasks and returns the index of the first.

        Args:
            count: How many.
            predecessors: Task indices, shape (count,) or (count, k), −1 for none.
            **columns: Columns of TaskGraph by name, arrays of shape (count,) or scalars; ``name`` is needed.
        """
        unknown = columns.keys() - _TASK_DEFAULTS.keys()
        if unknown or "name" not in columns:
            message = f"unknown columns {sorted(unknown)}" if unknown else "tasks have no name"
            raise TypeError(message)
        self._tasks.append(
            {
                key: np.broadcast_to(np.asarray(columns.get(key, default), dtype=dtype), (count,))
                for key, (dtype, default) in _TASK_DEFAULTS.items()
            }
        )
        first = self._task_count
        self._task_count += count
        if predecessors is not None:
            before = np.asarray(predecessors, dtype=np.int32).reshape(count, -1)
            after = np.broadcast_to(np.arange(first, first + count, dtype=np.int32)[:, None], before.shape)
            self.add_edges(before.ravel(), after.ravel())
        return first

    def add_task(self, name: str, kind: TaskKind, *predecessors: int, **columns: Any) -> int:
        """Adds one task and returns its index; the convenience of tests and of what happens once per step."""
        given = np.array([predecessors], dtype=np.int32) if predecessors else None
        return self.add_tasks(1, given, name=self.strings.intern(name), kind=kind, **columns)

    def add_edges(self, before: AnyArray, after: AnyArray) -> None:
        """Makes tasks ``after`` wait for tasks ``before``, shape (n,) each; a −1 in ``before`` says nothing."""
        before, after = np.asarray(before, dtype=np.int32), np.asarray(after, dtype=np.int32)
        known = before >= 0
        self._edges.append((before[known], after[known]))

    def new_rendezvous(self, count: int = 1) -> int:
        """Reserves ids for ``count`` collective instances and returns the first."""
        first = self._rendezvous_count
        self._rendezvous_count += count
        return first

    def add_buffers(self, count: int, **columns: Any) -> int:
        """Adds ``count`` buffers in host program order of their allocation and returns the index of the first.

        Args:
            count: How many.
            **columns: Every column of BufferTable, arrays of shape (count,) or scalars.
        """
        batch: dict[str, AnyArray] = {
            key: np.broadcast_to(np.asarray(columns[key], dtype=dtype), (count,))
            for key, dtype in _BUFFER_DTYPES.items()
        }
        self._buffers.append(batch)
        self._buffer_count += count
        return self._buffer_count - count

    def build(self) -> TaskGraph:
        """Returns the graph.

        Raises:
            ValueError: An edge names a task that was never added.
        """
        tasks = {
            key: np.concatenate([batch[key] for batch in self._tasks] or [np.empty(0, dtype=dtype)])
            for key, (dtype, _) in _TASK_DEFAULTS.items()
        }
        buffers = {
            key: np.concatenate([batch[key] for batch in self._buffers] or [np.empty(0, dtype=dtype)])
            for key, dtype in _BUFFER_DTYPES.items()
        }
        nothing = np.empty(0, dtype=np.int32)
        before = np.concatenate([edge[0] for edge in self._edges] or [nothing])
        after = np.concatenate([edge[1] for edge in self._edges] or [nothing])
        if len(before) and max(int(before.max()), int(after.max())) >= self._task_count:
            message = f"an edge names a task beyond the {self._task_count} that were added"
            raise ValueError(message)
        offsets, predecessors = predecessor_rows(before, after, self._task_count)
        return TaskGraph(
            **tasks,
            predecessor_offsets=offsets,
            predecessors=predecessors,
            buffers=BufferTable(**buffers),
            strings=self.strings.table(),
            groups=tuple(self.groups),
        )


@numba.njit(cache=True)
def predecessor_rows(before: Int32Array, after: Int32Array, task_count: int) -> tuple[Int64Array, Int32Array]:
    """Returns pairs (``before`` must have ended, ``after`` waits) as CSR rows of the waiting tasks.

    A counting sort: pairs of one task keep the order they were given in.

    Args:
        before: int32, shape (pairs,).
        after: int32, shape (pairs,).
        task_count: Number of rows.

    Returns:
        Offsets, int64, shape (task_count + 1,); predecessors, int32, shape (pairs,).
    """
    offsets = np.zeros(task_count + 1, np.int64)
    for pair in range(len(after)):
        offsets[after[pair] + 1] += 1
    for task in range(task_count):
        offsets[task + 1] += offsets[task]
    place = offsets[:-1].copy()
    predecessors = np.empty(len(before), np.int32)
    for pair in range(len(after)):
        predecessors[place[after[pair]]] = before[pair]
        place[after[pair]] += 1
    return offsets, predecessors
