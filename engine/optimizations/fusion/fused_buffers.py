"""The buffers of a graph once groups of its tasks are fused."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.graph.task_graph import BufferTable, Stream
from engine.optimizations.fusion.joined_tasks import JoinedTasks
from engine.trace.strings import ABSENT


def fused_buffers(joined: JoinedTasks, stays: BoolArray) -> BufferTable:
    """Returns the buffers without those of intermediates; others move to the nearest host task that stays.

    Args:
        joined: The groups.
        stays: bool, shape (tasks,): which tasks are left.
    """
    view, buffers = joined.view, joined.view.graph.buffers
    if len(buffers) == 0:
        return buffers
    launcher = _launchers_of_intermediates(joined)
    table = buffer_rows(buffers, np.flatnonzero(~launcher[buffers.allocated_by]))
    earlier, later = view.neighbour(stays, -1), view.neighbour(stays, 1)
    # The result of a group was allocated by the launch of its last kernel; now by the launch that stays.
    birth = np.where(earlier[table.allocated_by] >= 0, earlier[table.allocated_by], later[table.allocated_by])
    death = np.where(table.freed_by >= 0, later[table.freed_by], ABSENT)
    position = np.full(len(stays) + 1, ABSENT, dtype=np.int32)  # the last entry answers for −1
    position[np.flatnonzero(stays)] = np.arange(int(stays.sum()), dtype=np.int32)
    moved = replace(table, allocated_by=position[birth], freed_by=position[death])
    return buffer_rows(moved, np.argsort(moved.allocated_by, kind="stable"))


def _launchers_of_intermediates(joined: JoinedTasks) -> BoolArray:
    """Returns which host tasks launched intermediate members and nothing else, bool, shape (tasks,)."""
    view, graph = joined.view, joined.view.graph
    inner = np.zeros(len(graph), dtype=np.bool_)
    members = joined.groups.intermediate
    inner[members] = True
    gaps = view.gap_of[members]
    inner[gaps[gaps >= 0]] = True
    host = graph.stream[view.before] == Stream.HOST
    launcher = np.zeros(len(graph), dtype=np.bool_)
    launcher[view.before[host & inner[view.after]]] = True
    launcher[view.before[host & ~inner[view.after] & (graph.stream[view.after] != Stream.HOST)]] = False
    return launcher


def buffer_rows(buffers: BufferTable, rows: Int64Array) -> BufferTable:
    """Returns some rows of a table, in the order given."""
    return BufferTable(
        size_bytes=buffers.size_bytes[rows],
        allocated_by=buffers.allocated_by[rows],
        freed_by=buffers.freed_by[rows],
        stream=buffers.stream[rows],
        name=buffers.name[rows],
        operator=buffers.operator[rows],
        tag=buffers.tag[rows],
    )
