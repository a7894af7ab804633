"""Communicators of two ranks: HCCL opens one for every pair that sends and receives, whatever group they are of."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.core.arrays import Int32Array
from engine.graph.collective_kinds import CollectiveKind, collective_kind
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.trace.strings import StringTable
from engine.trace.trace import ParallelGroup

_ENDS = (CollectiveKind.SEND, CollectiveKind.RECEIVE)


def with_pair_groups(graph: TaskGraph) -> tuple[TaskGraph, Mapping[str, str]]:
    """Returns a graph in which sends and receives of groups of more than two name their pair, and pair → group ids.

    PyTorch's process groups make a communicator for the two ends of a send, keyed by the lower and the higher rank.
    Operators of a group of two are in it already. The pairs carry the framework's word for their group.
    """
    tasks = _ends_of_large_groups(graph)
    if len(tasks) == 0:
        return graph, {}
    order = np.lexsort((graph.rank[tasks], graph.rendezvous[tasks]))
    tasks = tasks[order]
    first = np.flatnonzero(np.diff(graph.rendezvous[tasks], prepend=-1))
    counts = np.diff(np.append(first, len(tasks)))
    first = first[counts == 2]
    members = np.stack((graph.group[tasks[first]], graph.rank[tasks[first]], graph.rank[tasks[first + 1]]), axis=1)
    pairs, number = np.unique(members, axis=0, return_inverse=True)
    known = {group.id: group for group in graph.groups}
    added: list[ParallelGroup] = []
    parents: dict[str, str] = {}
    for parent, low, high in pairs.tolist():
        whole = known[graph.strings.text(parent)]
        added.append(ParallelGroup(f"{whole.id}_pair_{low}_{high}", whole.name, (low, high)))
        parents[added[-1].id] = whole.id
    group = graph.group.copy()
    ids = (len(graph.strings) + number.reshape(-1)).astype(np.int32)
    group[tasks[first]], group[tasks[first + 1]] = ids, ids
    strings = StringTable.from_strings([*graph.strings, *parents])
    return replace(graph, group=group, strings=strings, groups=(*graph.groups, *added)), parents


def _ends_of_large_groups(graph: TaskGraph) -> Int32Array:
    """Returns the sends and receives that meet somebody in a group of more than two, int32."""
    large = {group.id for group in graph.groups if len(group.ranks) > 2}
    tasks = np.flatnonzero((graph.kind == TaskKind.COLLECTIVE) & (graph.rendezvous >= 0)).astype(np.int32)
    if not large or len(tasks) == 0:
        return tasks[:0]
    names, name = np.unique(graph.name[tasks], return_inverse=True)
    groups, group = np.unique(graph.group[tasks], return_inverse=True)
    is_end = np.array([collective_kind(text) in _ENDS for text in graph.strings.texts(names)], dtype=np.bool_)
    is_large = np.array([text in large for text in graph.strings.texts(groups)], dtype=np.bool_)
    return tasks[is_end[name] & is_large[group]]
