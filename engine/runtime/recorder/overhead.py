"""What recording itself costs the host."""

from dataclasses import replace

import numpy as np

from engine.graph.task_graph import TaskGraph, TaskKind


def with_profiling(graph: TaskGraph, host_ns_per_operator: int, steps: tuple[int, ...] | None = None) -> TaskGraph:
    """Returns the graph as it runs under the profiler: every host task takes ``host_ns_per_operator`` longer.

    The device records by itself; what a host-bound job loses is the time its host spends on noting each call.

    Args:
        graph: What would run unprofiled.
        host_ns_per_operator: Cost of noting one call, 0 for instrumentation switched off.
        steps: Profiled steps; all where None.
    """
    noted = np.isin(graph.kind, (TaskKind.HOST, TaskKind.SYNCHRONIZE))
    if steps is not None:
        noted &= np.isin(graph.step, steps)
    return replace(graph, duration_ns=graph.duration_ns + noted * np.int64(host_ns_per_operator))
