"""How long the operators of a task graph take on the device, by name."""

import numpy as np

from engine.core.arrays import BoolArray
from engine.graph.task_graph import TaskGraph, TaskKind

_HOST_KINDS = (TaskKind.HOST, TaskKind.SYNCHRONIZE, TaskKind.GAP)


def operator_totals(graph: TaskGraph, chosen: BoolArray) -> dict[str, int]:
    """Returns device time by name of operator, ns.

    Args:
        graph: Tasks.
        chosen: bool, shape (tasks,): which of them count; those of the host never do.
    """
    counted = np.flatnonzero(chosen & ~np.isin(graph.kind, _HOST_KINDS) & (graph.name >= 0))
    names, place = np.unique(graph.name[counted], return_inverse=True)
    total_ns = np.zeros(len(names), np.int64)
    np.add.at(total_ns, place, graph.duration_ns[counted])
    totals: dict[str, int] = {}
    # One turn per distinct name, not per task; two ids may be one text where tables were joined.
    for text, value in zip(graph.strings.texts(names), total_ns.tolist(), strict=True):
        totals[text] = totals.get(text, 0) + value
    return totals
