"""Which members of each collective have to meet, and which meetings can never take place."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt8Array
from engine.graph.collective_kinds import POINT_TO_POINT, CollectiveKind, collective_kind
from engine.graph.task_graph import TaskGraph
from engine.trace.strings import ABSENT

ANY_SIZE = (CollectiveKind.ALL_TO_ALL, CollectiveKind.SCATTER, CollectiveKind.SEND_RECEIVE)
"""Members of these exchange different numbers of bytes by their nature (all-to-all-v)."""


class MeetingFault(IntEnum):
    """Why the members of a collective can never start together."""

    NONE = 0
    MISSING_MEMBERS = 1
    DIFFERENT_OPERATORS = 2
    DIFFERENT_SIZES = 3


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """The collective instances of a graph. Columns of shape (instances,) unless said otherwise.

    Attributes:
        task: int32, shape (members,): the members, grouped by instance, in index order.
        offsets: int64, shape (instances + 1,): where each instance's members start in ``task``.
        instance: int32, shape (tasks,): the instance of each task of the graph, −1 for the others.
        expected_count: int32 members that must arrive.
        fault: uint8 MeetingFault.
    """

    task: Int32Array
    offsets: Int64Array
    instance: Int32Array
    expected_count: Int32Array
    fault: UInt8Array

    def members(self, instance: int) -> Int32Array:
        """Returns the tasks of one instance."""
        return self.task[self.offsets[instance] : self.offsets[instance + 1]]


def find_meetings(graph: TaskGraph) -> Meetings:
    """Returns the collective instances of ``graph``.

    An instance of a group waits for every rank of the group, whether the graph has a member for it or not; a send and
    its receive wait for each other. Members that do different things, or the same with different numbers of bytes,
    never start: HCCL would hang, or exchange wrong data.
    """
    rows = np.flatnonzero(graph.rendezvous >= 0)
    order = rows[np.argsort(graph.rendezvous[rows], kind="stable")].astype(np.int32)
    _, first, counts = np.unique(graph.rendezvous[order], return_index=True, return_counts=True)
    offsets = np.append(first, len(order)).astype(np.int64)
    instance = np.full(len(graph), ABSENT, dtype=np.int32)
    instance[order] = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    if len(order) == 0:
        return Meetings(order, offsets, instance, counts.astype(np.int32), np.empty(0, dtype=np.uint8))
    kinds = _kinds(graph, order)
    pairwise = np.isin(kinds, POINT_TO_POINT)
    expected = np.maximum(np.where(pairwise[first], 2, _group_sizes(graph, order[first])), counts)
    fault = np.zeros(len(counts), dtype=np.uint8)
    fault[expected > counts] = MeetingFault.MISSING_MEMBERS
    different_bytes = _differs(graph.bytes[order], first) & ~np.isin(kinds[first], ANY_SIZE)
    fault[different_bytes] = MeetingFault.DIFFERENT_SIZES
    fault[_differs(np.where(pairwise, CollectiveKind.SEND, kinds), first)] = MeetingFault.DIFFERENT_OPERATORS
    return Meetings(order, offsets, instance, expected.astype(np.int32), fault)


def _kinds(graph: TaskGraph, tasks: Int32Array) -> UInt8Array:
    """Returns the CollectiveKind of each task, uint8; each distinct name is read once."""
    names, inverse = np.unique(graph.name[tasks], return_inverse=True)
    kinds = np.array([collective_kind(graph.strings.text(name)) for name in names.tolist()], dtype=np.uint8)
    return kinds[inverse]


def _group_sizes(graph: TaskGraph, tasks: Int32Array) -> Int64Array:
    """Returns the number of ranks in each task's group, 0 where the graph does not say who is in it."""
    sizes = {group.id: len(group.ranks) for group in graph.groups}
    groups, inverse = np.unique(graph.group[tasks], return_inverse=True)
    known = np.array([sizes.get(graph.strings.text(group), 0) for group in groups.tolist()], dtype=np.int64)
    return known[inverse]


def _differs(values: AnyArray, first: Int64Array) -> BoolArray:
    """Returns, per run of ``values`` that starts at ``first``, whether it holds different ones."""
    unequal: BoolArray = np.maximum.reduceat(values, first) != np.minimum.reduceat(values, first)
    return unequal
