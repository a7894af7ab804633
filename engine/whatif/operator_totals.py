"""How long the operators of a task graph take on the device, by name."""

import numpy as np

from engine.core.arrays import Int64Array
from engine.graph.task_graph import TaskGraph, TaskKind

_HOST_KINDS = (TaskKind.HOST, TaskKind.SYNCHRONIZE, TaskKind.GAP)


def operator_totals(graph: TaskGraph, weight: Int64Array | int = 1) -> dict[str, int]:
    """Returns device time by name of operator, ns.

    Args:
        graph: Tasks.
        weight: int64, shape (tasks,) or one number: how often each counts; those of the host never do.
    """
    counted = np.flatnonzero(~np.isin(graph.kind, _HOST_KINDS) & (graph.name >= 0))
    weight_count = np.broadcast_to(np.asarray(weight, dtype=np.int64), (len(graph),))[counted]
    names, place = np.unique(graph.name[counted], return_inverse=True)
    total_ns = np.zeros(len(names), np.int64)
    np.add.at(total_ns, place, graph.duration_ns[counted] * weight_count)
    totals: dict[str, int] = {}
    # One turn per distinct name, not per task; two ids may be one text where tables were joined.
    for text, value in zip(graph.strings.texts(names), total_ns.tolist(), strict=True):
        totals[text] = totals.get(text, 0) + value
    return totals
