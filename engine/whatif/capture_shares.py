"""Where the step of a replayed job goes, on the rank that sets the pace."""

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.graph.collective_kinds import POINT_TO_POINT, collective_kind
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.replay.replay_time import ReplayedTime
from engine.runtime.scheduler import Schedule
from engine.trace.intervals import Intervals, clip, difference, join, union
from engine.whatif.results import Shares

_CUBE = (TaskKind.CUBE, TaskKind.MIX)
_VECTOR = (TaskKind.VECTOR, TaskKind.AI_CPU)


def slowest_rank(replayed: ReplayedTime) -> int:
    """Returns the rank whose steps take longest together."""
    steps = replayed.capture.steps
    ranks, place = np.unique(steps.rank, return_inverse=True)
    total_ns = np.zeros(len(ranks), dtype=np.int64)
    np.add.at(total_ns, place, replayed.end_ns - replayed.start_ns)
    return int(ranks[np.argmax(total_ns)])


def capture_shares(replayed: ReplayedTime, call_ns: Int64Array) -> Shares:
    """Returns where the steps of the slowest rank go.

    Args:
        replayed: A run of a recorded job.
        call_ns: int64, shape (tasks,): time of each task in the allocator's driver calls; what of it the device did not
            work through counts for the allocator.
    """
    graph, result = replayed.graph, replayed.schedule
    rank = slowest_rank(replayed)
    rows = np.flatnonzero(replayed.capture.steps.rank == rank)
    bounds = [(int(replayed.start_ns[row]), int(replayed.end_ns[row])) for row in rows.tolist()]
    whole_ns = sum(end - start for start, end in bounds)
    if whole_ns == 0:
        return Shares(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    own = (graph.rank == rank) & result.ended
    collectives = own & (graph.kind == TaskKind.COLLECTIVE)
    between_stages = collectives & _between_stages(graph, collectives)
    cube = _ran(result, own & np.isin(graph.kind, _CUBE))
    computing = join(cube, _ran(result, own & np.isin(graph.kind, _VECTOR)))
    moving = _during(result, collectives, waiting=False)
    busy = join(computing, moving)
    bubbles = difference(_during(result, between_stages, waiting=True), busy)
    waits = difference(_during(result, collectives, waiting=True), join(busy, bubbles))
    parts = (cube, difference(computing, cube), difference(moving, computing), bubbles, waits)
    ratios = [sum(clip(part, *step).total_ns for step in bounds) / whole_ns for part in parts]
    cube_ratio, vector_ratio, *waits_ratio = ratios
    rest_ratio = max(1.0 - sum(ratios), 0.0)
    allocator_ratio = min(float(call_ns[own].sum()) / whole_ns, rest_ratio)
    return Shares(
        cube_ratio=cube_ratio,
        vector_ratio=vector_ratio,
        communication_ratio=waits_ratio[0],
        bubble_ratio=waits_ratio[1],
        waiting_ratio=waits_ratio[2],
        allocator_ratio=allocator_ratio,
        host_ratio=rest_ratio - allocator_ratio,
    )


def _between_stages(graph: TaskGraph, collectives: BoolArray) -> BoolArray:
    """Returns which tasks are sends and receives, bool, shape (tasks,); a turn per distinct name."""
    names = np.unique(graph.name[collectives])
    kinds = [collective_kind(text) in POINT_TO_POINT for text in graph.strings.texts(names)]
    chosen: BoolArray = np.isin(graph.name, names[np.array(kinds, dtype=np.bool_)])
    return chosen


def _ran(result: Schedule, chosen: BoolArray) -> Intervals:
    return union(result.start_ns[chosen], result.end_ns[chosen])


def _during(result: Schedule, chosen: BoolArray, *, waiting: bool) -> Intervals:
    """Returns when chosen collectives waited for a member, or transferred."""
    if waiting:
        return union(result.start_ns[chosen], result.transfer_ns[chosen])
    return union(result.transfer_ns[chosen], result.end_ns[chosen])
