"""Tasks of a graph seen with groups of them joined: who stands for whom, what vanishes with them, what would circle."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array
from engine.graph.streams import stream_chains
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.fusion.circles import on_circles
from engine.optimizations.fusion.task_groups import TaskGroups
from engine.optimizations.graph_edits import edges_of
from engine.trace.strings import ABSENT


@dataclass(frozen=True, slots=True, eq=False)
class GraphView:
    """What joining needs to know of a graph, whatever is joined.

    Attributes:
        graph: The tasks.
        before: int32, shape (dependencies,): what must have ended.
        after: int32, shape (dependencies,): what waits for it.
        queue: int32, shape (tasks,): the queue of each task.
        by_queue: int64, shape (tasks,): the tasks queue by queue, in program order.
        gap_of: int32, shape (tasks,): the GAP task right before each task of its queue, −1 for none.
    """

    graph: TaskGraph
    before: Int32Array
    after: Int32Array
    queue: Int32Array
    by_queue: Int32Array
    gap_of: Int32Array

    @classmethod
    def of(cls, graph: TaskGraph) -> "GraphView":
        """Returns the view of a graph."""
        queue = stream_chains(graph).queue
        by_queue = np.argsort(queue, kind="stable").astype(np.int32)
        gap_of = np.full(len(graph), ABSENT, dtype=np.int32)
        follows = queue[by_queue[1:]] == queue[by_queue[:-1]]
        follows &= graph.kind[by_queue[:-1]] == TaskKind.GAP
        gap_of[by_queue[1:][follows]] = by_queue[:-1][follows]
        return cls(graph, *edges_of(graph), queue, by_queue, gap_of)

    def neighbour(self, stays: BoolArray, direction: int) -> Int32Array:
        """Returns for every task the nearest task of its queue that stays, itself included, int32; −1 where none is.

        Args:
            stays: bool, shape (tasks,).
            direction: −1 for the nearest before, 1 for the nearest after.
        """
        order = self.by_queue[::-direction]
        place = np.maximum.accumulate(np.where(stays[order], np.arange(len(order)), -1))
        found = order[np.maximum(place, 0)]
        known = (place >= 0) & (self.queue[found] == self.queue[order])
        result = np.empty(len(self.graph), dtype=np.int32)
        result[order] = np.where(known, found, ABSENT)
        return result


@dataclass(frozen=True, slots=True, eq=False)
class JoinedTasks:
    """A graph with groups of its tasks joined.

    Attributes:
        view: The graph.
        groups: What is joined.
        kept: int32, shape (groups,): the member of each group that stays, as the fused kernel.
        node: int32, shape (tasks,): what stands for each task: the kept one of its group, else itself.
        vanishing: bool, shape (dependencies,): launches of members that vanish and of the gaps before them, and what
            members wait for inside their group: a collective of one rank exchanges nothing.
        gaps: int32: GAP tasks before members that vanish.
    """

    view: GraphView
    groups: TaskGroups
    kept: Int32Array
    node: Int32Array
    vanishing: BoolArray
    gaps: Int32Array

    @classmethod
    def of(cls, view: GraphView, groups: TaskGroups) -> "JoinedTasks":
        """Returns the view with groups joined."""
        graph = view.graph
        kept = _kept_tasks(view, groups)
        node = np.arange(len(graph), dtype=np.int32)
        node[groups.tasks] = kept[groups.group_of_task]
        vanishing = groups.tasks[node[groups.tasks] != groups.tasks]
        gaps = view.gap_of[vanishing]
        gaps = gaps[gaps >= 0]
        is_gone = np.zeros(len(graph), dtype=np.bool_)
        is_gone[vanishing] = True
        is_gone[gaps] = True
        from_host = (graph.stream[view.before] == Stream.HOST) & (graph.rank[view.before] == graph.rank[view.after])
        later = np.zeros(len(graph), dtype=np.bool_)
        later[groups.tasks] = True
        later[groups.tasks[groups.offsets[:-1]]] = False
        alone = _lonely_collectives(graph)[view.before] & later[view.after]
        return cls(view, groups, kept, node, (is_gone[view.after] & from_host) | alone, gaps)

    @property
    def stays(self) -> BoolArray:
        """bool, shape (tasks,): what is left when only members vanish."""
        result: BoolArray = self.node == np.arange(len(self.node))
        return result

    def spare_hosts(self) -> Int32Array:
        """Returns the host tasks, int32, that launched nothing but what vanishes."""
        graph, view = self.view.graph, self.view
        spare = np.zeros(len(graph), dtype=np.bool_)
        spare[view.before[self.vanishing]] = True
        spare[view.before[~self.vanishing & (graph.stream[view.after] != Stream.HOST)]] = False
        return np.flatnonzero(spare & (graph.kind == TaskKind.HOST)).astype(np.int32)

    def groups_on_circles(self) -> BoolArray:
        """Returns which groups would wait for themselves, bool, shape (groups,); members of a meeting count as one."""
        graph, view = self.view.graph, self.view
        place = self.node.copy()
        meeting = np.flatnonzero(graph.rendezvous >= 0)
        if len(meeting):
            _, first, inverse = np.unique(graph.rendezvous[meeting], return_index=True, return_inverse=True)
            place[meeting] = meeting[first][inverse]
        left = view.by_queue[self.stays[view.by_queue]]
        same = view.queue[left[1:]] == view.queue[left[:-1]]
        listed = np.flatnonzero(~self.vanishing)
        waits = place[np.concatenate((view.before[listed], left[:-1][same]))]
        waiting = place[np.concatenate((view.after[listed], left[1:][same]))]
        outside = waits != waiting
        return on_circles(waits[outside], waiting[outside], len(graph))[self.kept]


def _lonely_collectives(graph: TaskGraph) -> BoolArray:
    """Returns which tasks are collectives of a group of one rank (tensor parallelism of 1), bool, shape (tasks,)."""
    groups = [graph.strings.id_of(group.id) for group in graph.groups if len(group.ranks) == 1]
    result: BoolArray = (graph.kind == TaskKind.COLLECTIVE) & np.isin(
        graph.group, [item for item in groups if item >= 0]
    )
    return result


def _kept_tasks(view: GraphView, groups: TaskGroups) -> Int32Array:
    """Returns the task of each group that stays, int32: the first, or the last where others of its queue run between.

    What runs between may make what the last member reads (the second projection of a SwiGLU).
    """
    first, last = groups.tasks[groups.offsets[:-1]], groups.tasks[groups.offsets[1:] - 1]
    place = np.empty(len(view.graph), dtype=np.int64)
    place[view.by_queue] = np.cumsum(view.graph.kind[view.by_queue] != TaskKind.GAP)
    alone = place[last] - place[first] == np.diff(groups.offsets) - 1
    return np.where(alone | (view.queue[first] != view.queue[last]), first, last).astype(np.int32)
