"""Ranks of a step as tasks of one graph: their communication groups, and which calls of different ranks meet."""

import numpy as np

from engine.core.arrays import Int64Array
from engine.graph.builder import GraphBuilder
from engine.trace.strings import ABSENT
from engine.trace.trace import ParallelGroup
from engine.workloads.blocks import GroupKind
from engine.workloads.layout import group_name, group_ranks, place_of
from engine.workloads.operator_tasks import group_columns
from engine.workloads.scenario import Parallelism

STAGES = len(GroupKind)
"""Number of the groups of stages, after the kinds of collectives."""
_MEETINGS_OF_STEP = 1 << 40
"""More than one step can number."""


class Groups:
    """Communication groups with ids, and the ids of their meetings."""

    def __init__(self, parallel: Parallelism, builder: GraphBuilder) -> None:
        self._parallel = parallel
        self._builder = builder
        self._known: dict[tuple[str, tuple[int, ...]], int] = {}
        self._meetings: dict[tuple[int, int], int] = {}

    def of(self, kind: GroupKind | None, rank: int) -> tuple[int, int]:
        """Returns the string id of a rank's group of a kind (None: stages), and the group's number."""
        place = place_of(rank, self._parallel)
        if kind is None:
            name = "pp"
            lane = self._parallel.tensor * self._parallel.context * self._parallel.data
            members = tuple(rank % lane + stage * lane for stage in range(self._parallel.pipeline))
        else:
            name, members = group_name(kind), group_ranks(kind, place, self._parallel)
        number = self._known.setdefault((name, members), len(self._known))
        identity = f"{name}_{members[0]}_{members[-1]}"
        if number == len(self._builder.groups):
            self._builder.groups.append(ParallelGroup(identity, name, members))
        return self._builder.strings.intern(identity), number

    def meetings(self, group: int, calls: Int64Array) -> Int64Array:
        """Returns the rendezvous ids of calls of a group."""
        return np.array([self._meetings.setdefault((group, call), len(self._meetings)) for call in calls.tolist()])


def add_rank(builder: GraphBuilder, groups: Groups, rank: int, columns: dict[str, Int64Array]) -> int:
    """Adds the tasks of one rank with its groups and meetings; returns the index of the first.

    Args:
        builder: Receives them.
        groups: Known so far, of all ranks.
        rank: Whose tasks.
        columns: int64, shape (tasks,) each: ``TASK_COLUMNS``, with a ``GroupKind`` or STAGES as group and the number of
            a transfer between stages as meeting. Calls of other groups meet in the order each rank makes them.
    """
    kinds, meeting = columns["group"], columns["meeting"]
    tasks, number = group_columns(np.where(kinds == STAGES, ABSENT, kinds))
    group, rendezvous = np.full(len(kinds), ABSENT, np.int64), np.full(len(kinds), ABSENT, np.int64)
    for kind in np.unique(kinds[tasks]).tolist():
        own = tasks[kinds[tasks] == kind]
        text, identity = groups.of(GroupKind(kind), rank)
        group[own] = text
        rendezvous[own] = groups.meetings(identity, number[kinds[tasks] == kind])
    between = np.flatnonzero(kinds == STAGES)
    if len(between):
        text, identity = groups.of(None, rank)
        group[between] = text
        # Transfers are numbered within their step, and every step has the same ones.
        rendezvous[between] = groups.meetings(identity, columns["step"][between] * _MEETINGS_OF_STEP + meeting[between])
    known = {name: values for name, values in columns.items() if name not in ("group", "meeting")}
    return builder.add_tasks(len(kinds), rank=rank, group=group, rendezvous=rendezvous, **known)
