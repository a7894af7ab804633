"""Replaces groups of tasks of a graph by one task each: what every fusion does to a recorded job.

Of a group one task stays, as the fused kernel; the others vanish with the host time that launched them. What waited
for a member waits for the fused kernel, and it waits for everything a member waited for. A group that something outside
has to run between (a transfer of its first kernel's result that its last one needs) cannot become one kernel and is
left as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array
from engine.graph.builder import predecessor_rows
from engine.graph.streams import stream_chains
from engine.graph.task_graph import BufferTable, Stream, TaskGraph, TaskKind, task_columns
from engine.optimizations.fusion.circles import on_circles
from engine.trace.strings import ABSENT, StringTable

_NEVER_FREED = np.int32(ABSENT)


@dataclass(frozen=True, slots=True, eq=False)
class TaskGroups:
    """Groups of device tasks that become one task each; columns of shape (groups,) unless said otherwise.

    Attributes:
        offsets: int64, shape (groups + 1,): where each group's tasks start in ``tasks``.
        tasks: int32, shape (tasks in groups,): device tasks in program order; a task is in one group at most.
        kernel: Name of each fused kernel.
        kind: uint8 TaskKind.
        duration_ns: int64, of the fused kernel.
        bytes: float64 that it moves.
        keeps_results: bool: whether what the members allocate stays (a batched call works in place).
    """

    offsets: Int64Array
    tasks: Int32Array
    kernel: tuple[str, ...]
    kind: UInt8Array
    duration_ns: Int64Array
    bytes: Float64Array
    keeps_results: BoolArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def group_of_task(self) -> Int64Array:
        """int64, shape (tasks in groups,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    def select(self, chosen: BoolArray) -> "TaskGroups":
        """Returns the chosen groups; ``chosen`` is bool, shape (groups,)."""
        lengths = np.diff(self.offsets)[chosen]
        return replace(
            self,
            offsets=np.concatenate(([0], np.cumsum(lengths))),
            tasks=self.tasks[chosen[self.group_of_task]],
            kernel=tuple(name for name, kept in zip(self.kernel, chosen.tolist(), strict=True) if kept),
            kind=self.kind[chosen],
            duration_ns=self.duration_ns[chosen],
            bytes=self.bytes[chosen],
            keeps_results=self.keeps_results[chosen],
        )


def joined_groups(parts: Sequence[TaskGroups]) -> TaskGroups:
    """Returns the groups of all parts, in order; at least one part is needed."""
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return TaskGroups(
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        tasks=np.concatenate([part.tasks for part in parts]),
        kernel=tuple(name for part in parts for name in part.kernel),
        kind=np.concatenate([part.kind for part in parts]),
        duration_ns=np.concatenate([part.duration_ns for part in parts]),
        bytes=np.concatenate([part.bytes for part in parts]),
        keeps_results=np.concatenate([part.keeps_results for part in parts]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """What a rewriting gave.

    Attributes:
        graph: The new graph.
        done: bool, shape (groups,): which groups became one task.
        removed_host_ns: Host time that vanished, of all ranks together.
    """

    graph: TaskGraph
    done: BoolArray
    removed_host_ns: int


def fuse_tasks(graph: TaskGraph, groups: TaskGroups, launch_limit_ns: Int64Array) -> Rewritten:
    """Returns the graph with every group that can be one task fused.

    Args:
        graph: The tasks.
        groups: What becomes one task.
        launch_limit_ns: int64, shape (largest rank + 1,): what a launch takes at most. Of a longer host task in front
            of a vanishing kernel the rest stays: it is data loading, a compilation or something else.
    """
    edges = _edges(graph)
    kept = _kept_tasks(graph, groups)
    done = np.ones(len(groups), dtype=np.bool_)
    while np.any(done):
        chosen = groups.select(done)
        node = _nodes(graph, chosen, kept[done])
        broken = _groups_on_circles(graph, edges, chosen, node)
        if not np.any(broken):
            break
        done[np.flatnonzero(done)[broken]] = False
    if not np.any(done):
        return Rewritten(graph, done, 0)
    return _rewritten(graph, edges, groups.select(done), kept[done], done, launch_limit_ns)


def _edges(graph: TaskGraph) -> tuple[Int32Array, Int32Array]:
    """Returns (before, after) of every listed dependency, int32."""
    after = np.repeat(np.arange(len(graph), dtype=np.int32), np.diff(graph.predecessor_offsets))
    return graph.predecessors, after


def _kept_tasks(graph: TaskGraph, groups: TaskGroups) -> Int32Array:
    """Returns the task of each group that stays, int32: the first, or the last where others of its stream run between.

    What runs between may make what the last member reads (the second projection of a SwiGLU).
    """
    first, last = groups.tasks[groups.offsets[:-1]], groups.tasks[groups.offsets[1:] - 1]
    chains = stream_chains(graph)
    order = np.argsort(chains.queue, kind="stable")
    place = np.empty(len(graph), dtype=np.int64)
    place[order] = np.arange(len(graph))
    alone = place[last] - place[first] == np.diff(groups.offsets) - 1
    return np.where(alone | (chains.queue[first] != chains.queue[last]), first, last).astype(np.int32)


def _nodes(graph: TaskGraph, groups: TaskGroups, kept: Int32Array) -> Int32Array:
    """Returns the task that stands for each task after fusing, int32: the kept one of its group, else itself."""
    node = np.arange(len(graph), dtype=np.int32)
    node[groups.tasks] = kept[groups.group_of_task]
    return node


def _groups_on_circles(
    graph: TaskGraph, edges: tuple[Int32Array, Int32Array], groups: TaskGroups, node: Int32Array
) -> BoolArray:
    """Returns which groups would wait for themselves, bool, shape (groups,); members of a meeting count as one."""
    place = node.copy()
    meeting = np.flatnonzero(graph.rendezvous >= 0)
    if len(meeting):
        _, first, inverse = np.unique(graph.rendezvous[meeting], return_index=True, return_inverse=True)
        place[meeting] = meeting[first][inverse]
    launches = _vanishing_launches(graph, edges, groups, node)
    before, after = edges
    listed = np.flatnonzero(~launches)
    chain_before, chain_after = _chain_edges(graph, node == np.arange(len(graph)))
    waits = place[np.concatenate((before[listed], chain_before))]
    waiting = place[np.concatenate((after[listed], chain_after))]
    outside = waits != waiting
    circle = on_circles(waits[outside], waiting[outside], len(graph))
    return circle[node[groups.tasks[groups.offsets[:-1]]]]


def _vanishing_launches(
    graph: TaskGraph, edges: tuple[Int32Array, Int32Array], groups: TaskGroups, node: Int32Array
) -> BoolArray:
    """Returns which dependencies are launches of members that vanish, bool, shape (edges,)."""
    before, after = edges
    vanishing = np.zeros(len(graph), dtype=np.bool_)
    vanishing[groups.tasks] = node[groups.tasks] != groups.tasks
    host = (graph.stream[before] == Stream.HOST) & (graph.rank[before] == graph.rank[after])
    result: BoolArray = vanishing[after] & host
    return result


def _chain_edges(graph: TaskGraph, stays: BoolArray) -> tuple[Int32Array, Int32Array]:
    """Returns (before, after) of neighbours in the streams when only the tasks that stay are left, int32."""
    tasks = np.flatnonzero(stays).astype(np.int32)
    queue = stream_chains(graph).queue[tasks]
    order = tasks[np.argsort(queue, kind="stable")]
    same = np.diff(np.sort(queue)) == 0
    return order[:-1][same], order[1:][same]


def _rewritten(
    graph: TaskGraph,
    edges: tuple[Int32Array, Int32Array],
    groups: TaskGroups,
    kept: Int32Array,
    done: BoolArray,
    launch_limit_ns: Int64Array,
) -> Rewritten:
    node = _nodes(graph, groups, kept)
    before, after = edges
    launching = _vanishing_launches(graph, edges, groups, node)
    duration_ns = graph.duration_ns.copy()
    hosts = _spare_hosts(graph, before, after, launching)
    removed_ns = np.minimum(duration_ns[hosts], launch_limit_ns[graph.rank[hosts]])
    duration_ns[hosts] -= removed_ns
    waits = np.zeros(len(graph), dtype=np.bool_)
    waits[after] = True
    stays = node == np.arange(len(graph))
    stays[hosts[(duration_ns[hosts] == 0) & ~waits[hosts]]] = False
    node = np.where(stays | (graph.stream != Stream.HOST), node, _neighbour(graph, stays, -1))
    columns = _columns(graph, groups, kept, duration_ns)
    result = _compacted(graph, columns, stays, node, (before, after, launching), _strings_with(graph, groups.kernel))
    buffers = _buffers(graph, groups, kept, edges, stays)
    return Rewritten(replace(result, buffers=buffers), done, int(removed_ns.sum()))


def _spare_hosts(graph: TaskGraph, before: Int32Array, after: Int32Array, launching: BoolArray) -> Int32Array:
    """Returns the host tasks, int32, that launched nothing but vanishing kernels."""
    spare = np.zeros(len(graph), dtype=np.bool_)
    spare[before[launching]] = True
    spare[before[~launching & (graph.stream[after] != Stream.HOST)]] = False
    return np.flatnonzero(spare & (graph.kind == TaskKind.HOST)).astype(np.int32)


def _neighbour(graph: TaskGraph, stays: BoolArray, direction: int) -> Int32Array:
    """Returns for every task the nearest task of its stream that stays, itself included, int32; −1 where none is.

    Args:
        graph: The tasks.
        stays: bool, shape (tasks,).
        direction: −1 for the nearest before, 1 for the nearest after.
    """
    queue = stream_chains(graph).queue
    order = np.argsort(queue, kind="stable")[::-direction]
    place = np.where(stays[order], np.arange(len(order)), -1)
    place = np.maximum.accumulate(place)
    found = order[np.maximum(place, 0)]
    known = (place >= 0) & (queue[found] == queue[order])
    result = np.empty(len(graph), dtype=np.int32)
    result[order] = np.where(known, found, ABSENT)
    return result


def _columns(graph: TaskGraph, groups: TaskGroups, kept: Int32Array, duration_ns: Int64Array) -> dict[str, AnyArray]:
    """Returns the task columns with the kept tasks turned into fused kernels."""
    columns: dict[str, Any] = {name: column.copy() for name, column in task_columns(graph).items()}
    starts = groups.offsets[:-1]
    columns["duration_ns"] = duration_ns
    columns["duration_ns"][kept] = groups.duration_ns
    columns["kind"][kept] = groups.kind
    columns["bytes"][kept] = groups.bytes
    columns["flops"][kept] = np.add.reduceat(graph.flops[groups.tasks], starts)
    columns["inferred"][kept] = np.maximum.reduceat(graph.inferred[groups.tasks], starts)
    names = dict.fromkeys(groups.kernel)
    added = {name: graph.strings.id_of(name) for name in names}
    new = [name for name in names if added[name] < 0]
    added.update({name: len(graph.strings) + index for index, name in enumerate(new)})
    columns["name"][kept] = [added[name] for name in groups.kernel]
    return columns


def _strings_with(graph: TaskGraph, kernels: tuple[str, ...]) -> StringTable:
    new = [name for name in dict.fromkeys(kernels) if graph.strings.id_of(name) < 0]
    return StringTable.from_strings([*graph.strings, *new]) if new else graph.strings


def _compacted(
    graph: TaskGraph,
    columns: dict[str, Any],
    stays: BoolArray,
    node: Int32Array,
    edges: tuple[Int32Array, Int32Array, BoolArray],
    strings: StringTable,
) -> TaskGraph:
    """Returns the tasks that stay, with the dependencies of those that do not joined to what stands for them."""
    before, after, launching = edges
    tasks = np.flatnonzero(stays)
    position = np.full(len(graph) + 1, ABSENT, dtype=np.int32)  # the last entry answers for −1
    position[tasks] = np.arange(len(tasks), dtype=np.int32)
    waits, waiting = node[before], node[after]
    listed = ~launching & (waits >= 0) & (waits != waiting)
    # A fused kernel's own launch stays its first dependency: rows keep the order they are given in.
    own = np.flatnonzero(listed & (waiting == after))
    joined = np.flatnonzero(listed & (waiting != after))
    chosen = np.concatenate((own, joined))
    offsets, predecessors = predecessor_rows(position[waits[chosen]], position[waiting[chosen]], len(tasks))
    return replace(
        graph,
        **{name: column[tasks] for name, column in columns.items()},
        predecessor_offsets=offsets,
        predecessors=predecessors,
        strings=strings,
        buffers=_no_buffers(graph.buffers),
    )


def _no_buffers(buffers: BufferTable) -> BufferTable:
    return _buffer_rows(buffers, np.empty(0, dtype=np.int64))


def _buffer_rows(buffers: BufferTable, rows: Int64Array) -> BufferTable:
    return BufferTable(
        size_bytes=buffers.size_bytes[rows],
        allocated_by=buffers.allocated_by[rows],
        freed_by=buffers.freed_by[rows],
        stream=buffers.stream[rows],
        name=buffers.name[rows],
        operator=buffers.operator[rows],
        tag=buffers.tag[rows],
    )


def intermediate_members(groups: TaskGroups) -> Int32Array:
    """Returns the members, int32, whose results nobody needs once they are fused: all but the last of each group."""
    inner = ~groups.keeps_results[groups.group_of_task]
    inner[groups.offsets[1:] - 1] = False
    return groups.tasks[inner]


def _buffers(
    graph: TaskGraph,
    groups: TaskGroups,
    kept: Int32Array,
    edges: tuple[Int32Array, Int32Array],
    stays: BoolArray,
) -> BufferTable:
    """Returns the buffers without those of intermediates; others move to the nearest host task that stays."""
    if len(graph.buffers) == 0:
        return graph.buffers
    before, after = edges
    inner = np.zeros(len(graph), dtype=np.bool_)
    inner[intermediate_members(groups)] = True
    host = graph.stream[before] == Stream.HOST
    launcher = np.zeros(len(graph), dtype=np.bool_)
    launcher[before[host & inner[after]]] = True
    launcher[before[host & ~inner[after] & (graph.stream[after] != Stream.HOST)]] = False
    rows = np.flatnonzero(~launcher[graph.buffers.allocated_by])
    table = _buffer_rows(graph.buffers, rows)
    earlier, later = _neighbour(graph, stays, -1), _neighbour(graph, stays, 1)
    # The launch of a group that keeps its first kernel stands before the launch of the last one, which made the result.
    birth = earlier[table.allocated_by]
    birth = np.where(birth >= 0, birth, later[table.allocated_by])
    death = np.where(table.freed_by >= 0, later[table.freed_by], _NEVER_FREED)
    position = np.full(len(graph) + 1, ABSENT, dtype=np.int32)
    position[np.flatnonzero(stays)] = np.arange(int(stays.sum()), dtype=np.int32)
    order = np.argsort(position[birth], kind="stable")
    moved = replace(table, allocated_by=position[birth], freed_by=position[death])
    return _buffer_rows(moved, order)
