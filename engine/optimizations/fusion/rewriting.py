"""Replaces groups of tasks of a graph by one task each: what every fusion does to a recorded job.

Of a group one task stays, as the fused kernel; the others vanish with the host time that launched them and the gaps in
front of them. What waited for a member waits for the fused kernel, and it waits for everything a member waited for. A
group that something outside has to run between (a transfer of its first kernel's result that its last one needs)
cannot become one kernel and is left as it is.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from engine.graph.builder import predecessor_rows
from engine.graph.task_graph import Stream, TaskGraph, task_columns
from engine.optimizations.fusion.fused_buffers import fused_buffers
from engine.optimizations.fusion.joined_tasks import GraphView, JoinedTasks
from engine.optimizations.fusion.task_groups import TaskGroups
from engine.optimizations.graph_edits import with_names
from engine.trace.strings import ABSENT


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
        launch_limit_ns: int64, shape (largest rank + 1,): what a launch takes at most. Of a longer host task or gap in
            front of a vanishing kernel the rest stays: it is data loading, a compilation or something else.
    """
    joined, done = _joinable(graph, groups)
    return Rewritten(graph, done, 0) if joined is None else _rewritten(joined, done, launch_limit_ns)


def fusable(graph: TaskGraph, groups: TaskGroups) -> BoolArray:
    """Returns which groups can become one task, bool, shape (groups,)."""
    return _joinable(graph, groups)[1]


def _joinable(graph: TaskGraph, groups: TaskGroups) -> tuple[JoinedTasks | None, BoolArray]:
    """Returns the graph with all groups joined that can be (None where none can), and which those are."""
    view = GraphView.of(graph)
    done = np.ones(len(groups), dtype=np.bool_)
    while np.any(done):
        joined = JoinedTasks.of(view, groups.select(done))
        broken = joined.groups_on_circles()
        if not np.any(broken):
            return joined, done
        done[np.flatnonzero(done)[broken]] = False
    return None, done


def _rewritten(joined: JoinedTasks, done: BoolArray, launch_limit_ns: Int64Array) -> Rewritten:
    view, graph = joined.view, joined.view.graph
    hosts = joined.spare_hosts()
    shortened = np.concatenate((hosts, joined.gaps))
    removed_ns = np.minimum(graph.duration_ns[shortened], launch_limit_ns[graph.rank[shortened]])
    duration_ns = graph.duration_ns.copy()
    duration_ns[shortened] -= removed_ns
    waits = np.zeros(len(graph), dtype=np.bool_)
    waits[view.after] = True
    stays = joined.stays
    stays[joined.gaps[duration_ns[joined.gaps] == 0]] = False
    stays[hosts[(duration_ns[hosts] == 0) & ~waits[hosts]]] = False
    node = np.where(stays | (graph.stream != Stream.HOST), joined.node, view.neighbour(stays, -1))
    named, kernels = with_names(graph, joined.groups.kernel)
    result = _compacted(joined, _columns(joined, duration_ns, kernels), stays, node)
    result = replace(result, strings=named.strings, buffers=fused_buffers(joined, stays))
    return Rewritten(result, done, int(removed_ns[: len(hosts)].sum()))


def _columns(joined: JoinedTasks, duration_ns: Int64Array, names: Int32Array) -> dict[str, AnyArray]:
    """Returns the task columns with the kept tasks turned into fused kernels of these names."""
    graph, groups, kept = joined.view.graph, joined.groups, joined.kept
    columns: dict[str, Any] = {name: column.copy() for name, column in task_columns(graph).items()}
    starts = groups.offsets[:-1]
    columns["duration_ns"] = duration_ns
    columns["duration_ns"][kept] = groups.duration_ns
    columns["kind"][kept] = groups.kind
    columns["bytes"][kept] = groups.bytes
    columns["flops"][kept] = np.add.reduceat(graph.flops[groups.tasks], starts)
    columns["inferred"][kept] = np.maximum.reduceat(graph.inferred[groups.tasks], starts)
    columns["name"][kept] = names
    return columns


def _compacted(joined: JoinedTasks, columns: dict[str, Any], stays: BoolArray, node: Int32Array) -> TaskGraph:
    """Returns the tasks that stay, with the dependencies of those that do not joined to what stands for them."""
    view, graph = joined.view, joined.view.graph
    tasks = np.flatnonzero(stays)
    position = np.full(len(graph) + 1, ABSENT, dtype=np.int32)  # the last entry answers for −1
    position[tasks] = np.arange(len(tasks), dtype=np.int32)
    waits, waiting = node[view.before], node[view.after]
    listed = ~joined.vanishing & (waits >= 0) & (waits != waiting)
    # A fused kernel's own launch stays its first dependency: rows keep the order they are given in.
    own = np.flatnonzero(listed & (waiting == view.after) & stays[view.after])
    joining = np.flatnonzero(listed & (waiting != view.after))
    # The gap before a fused kernel waits for the same tasks as the kernel.
    gap = view.gap_of[waiting[joining]]
    before = np.concatenate((waits[own], waits[joining], waits[joining][gap >= 0]))
    after = np.concatenate((waiting[own], waiting[joining], gap[gap >= 0]))
    offsets, predecessors = predecessor_rows(position[before], position[after], len(tasks))
    return replace(
        graph,
        **{name: column[tasks] for name, column in columns.items()},
        predecessor_offsets=offsets,
        predecessors=predecessors,
    )
