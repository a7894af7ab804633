"""From places in a rank's trace to groups of tasks in the graph, and what a launch costs there."""

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.fusion.places import RankPlaces
from engine.optimizations.fusion.task_groups import TaskGroups
from engine.optimizations.interface import Bound
from engine.trace.strings import ABSENT


def tasks_of_events(graph: TaskGraph, rank: int, events: Int32Array) -> Int32Array:
    """Returns the device task made from each of some events of a rank's trace, int32, −1 for none."""
    tasks = np.flatnonzero((graph.rank == rank) & (graph.origin_event >= 0) & (graph.stream != Stream.HOST))
    origin = graph.origin_event[tasks]
    known = np.full(max(int(origin.max(initial=-1)), int(events.max(initial=-1))) + 1, ABSENT, dtype=np.int32)
    known[origin] = tasks
    return known[events]


def groups_of(
    graph: TaskGraph, places: RankPlaces, kernel: str, kind: TaskKind, bound: Bound, *, keeps_results: bool = False
) -> TaskGroups:
    """Returns the places of a rank whose kernels are all tasks of the graph; places of one kernel are left out."""
    found = places.found
    tasks = tasks_of_events(graph, places.rank, found.events)
    starts = found.offsets[:-1]
    lengths = np.diff(found.offsets)
    whole = np.minimum.reduceat(tasks, starts) >= 0 if len(starts) else np.empty(0, dtype=np.bool_)
    chosen = whole & (lengths > 1)
    return TaskGroups(
        offsets=np.concatenate(([0], np.cumsum(lengths[chosen]))).astype(np.int64),
        tasks=tasks[np.repeat(chosen, lengths)],
        kernel=(kernel,) * int(chosen.sum()),
        kind=np.full(int(chosen.sum()), int(kind), dtype=np.uint8),
        duration_ns=places.duration_ns(bound)[chosen],
        bytes=found.bytes[chosen],
        keeps_results=np.full(int(chosen.sum()), keeps_results),
    )


def launch_limit_ns(graph: TaskGraph, bound: Bound) -> Int64Array:
    """Returns what one launch takes of a rank's host at most, int64, shape (largest rank + 1,).

    The host tasks of a run are mostly launches: their upper quartile is what a launch takes at most. For the most gain
    it is Tukey's upper fence (third quartile + 1.5 × interquartile range, Exploratory Data Analysis, 1977); beyond it
    is something else (warming up, loading data, compiling). For the least gain it is the lower quartile.
    """
    ranks = int(graph.rank.max(initial=-1)) + 1
    limits = np.zeros(ranks, dtype=np.int64)
    host = (graph.kind == TaskKind.HOST) & (graph.duration_ns > 0)
    # A step per rank.
    for rank in range(ranks):
        times = graph.duration_ns[host & (graph.rank == rank)]
        if len(times):
            lower, upper = np.percentile(times, (25, 75))
            most = upper + 1.5 * (upper - lower)
            limits[rank] = int({Bound.LOW: lower, Bound.EXPECTED: upper, Bound.HIGH: most}[bound])
    return limits
