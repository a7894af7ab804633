"""Collectives cut into parts on a stream of their own: what every overlap of transfers with computing is made of."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Float64Array, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.graph_edits import new_rendezvous


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Calls in parts. A call itself becomes its last part; the others are new tasks numbered after those of the graph.

    Attributes:
        graph: The graph with the last parts in place of the calls; the new tasks are not in it yet.
        columns: Of the new tasks, for ``graph_edits.with_tasks``.
        place: int32, shape (new,): the call each new task stands before.
        number: int32, shape (parts,): task number of every part, call by call, first part first.
        offsets: int64, shape (calls + 1,): where the parts of each call start in ``number``.
        share: float64, shape (parts,): of the call's bytes each part carries.
    """

    graph: TaskGraph
    columns: dict[str, AnyArray]
    place: Int32Array
    number: Int32Array
    offsets: Int64Array
    share: Float64Array

    def call_of(self) -> Int64Array:
        """Returns the row of the call each part belongs to, int64, shape (parts,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def ratio(self, *, end: bool) -> tuple[Int64Array, Float64Array]:
        """Returns the call of each part, and the share of the call that is through with it (or before it)."""
        call = self.call_of()
        through = np.cumsum(self.share)
        through -= (through - self.share)[self.offsets[:-1]][call]
        return call, through if end else through - self.share


def in_parts(
    graph: TaskGraph, task: Int32Array, full_ratio: Float64Array, fixed_ns: Int64Array, stream: Int32Array
) -> Parts:
    """Returns collectives cut into parts, each of which pays the fixed cost again.

    Args:
        graph: The tasks.
        task: The calls, ascending; members of one rendezvous must have equal ratios.
        full_ratio: float64, share of each call that a full part carries; the last part carries what is left.
        fixed_ns: Part of each call's duration that does not depend on its size.
        stream: Where the parts run.
    """
    duration_ns = graph.duration_ns[task]
    fixed = np.minimum(fixed_ns, duration_ns)
    full = np.minimum(full_ratio, 1.0)
    count = np.maximum(np.ceil(1.0 / full - 1e-9), 1).astype(np.int64)
    last = 1.0 - (count - 1) * full
    part_ns = np.rint(fixed + (duration_ns - fixed) * full).astype(np.int64)
    last_ns = np.rint(fixed + (duration_ns - fixed) * last).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(count))).astype(np.int64)
    added = np.repeat(np.arange(len(task)), count - 1)
    within = np.arange(len(added)) - np.repeat(np.cumsum(count - 1) - (count - 1), count - 1)
    columns: dict[str, AnyArray] = {
        name: getattr(graph, name)[task][added]
        for name in ("name", "kind", "rank", "step", "micro_batch", "layer", "phase", "group", "inferred")
    }
    columns["stream"] = stream[added]
    columns["duration_ns"] = part_ns[added]
    columns["bytes"] = (graph.bytes[task] * full)[added]
    columns["rendezvous"] = _meetings(graph, task, count)[added] + within
    number = np.empty(int(offsets[-1]), dtype=np.int32)
    number[offsets[1:] - 1] = task
    inner = np.ones(len(number), dtype=np.bool_)
    inner[offsets[1:] - 1] = False
    number[inner] = len(graph) + np.arange(len(added), dtype=np.int32)
    changed: dict[str, Any] = {name: getattr(graph, name).copy() for name in ("stream", "duration_ns", "bytes")}
    changed["stream"][task] = stream
    changed["duration_ns"][task] = last_ns
    changed["bytes"][task] = graph.bytes[task] * last
    share = np.repeat(full, count)
    share[offsets[1:] - 1] = last
    return Parts(replace(graph, **changed), columns, task[added], number, offsets, share)


def _meetings(graph: TaskGraph, task: Int32Array, count: Int64Array) -> Int64Array:
    """Returns the id of each call's first new meeting: members of one rendezvous share theirs."""
    _, row, inverse = np.unique(graph.rendezvous[task], return_index=True, return_inverse=True)
    base = new_rendezvous(graph) + np.concatenate(([0], np.cumsum((count - 1)[row])[:-1])).astype(np.int64)
    result: Int64Array = base[inverse]
    return result


def whole_meetings(graph: TaskGraph, task: Int32Array) -> BoolArray:
    """Returns which calls have every member of their rendezvous among ``task``, bool, shape (calls,)."""
    size = np.bincount(graph.rendezvous[graph.rendezvous >= 0], minlength=1)
    chosen = np.bincount(graph.rendezvous[task], minlength=len(size))
    answer: BoolArray = chosen[graph.rendezvous[task]] == size[graph.rendezvous[task]]
    return answer
