"""Which shares of a step a device spends transferring without computing, and waiting for another stage."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.runtime.scheduler import Schedule
from engine.trace.intervals import Intervals, difference, join, union
from engine.workloads.step_graph import BEHIND


@dataclass(frozen=True, slots=True)
class StepShares:
    """Means over ranks, of the whole step.

    Attributes:
        communication_ratio: Transfers beside which nothing is computed.
        bubble_ratio: The device has nothing to do but to wait for another stage.
    """

    communication_ratio: float
    bubble_ratio: float


def step_shares(graph: TaskGraph, result: Schedule, exposed_ns: Mapping[int, int]) -> StepShares:
    """Returns the shares of a scheduled step.

    Args:
        graph: Its tasks.
        result: When they ran.
        exposed_ns: Transfers inside tasks of the compute stream beside which nothing is computed, by task.
    """
    inside_ns = np.zeros(len(graph), np.int64)
    inside_ns[list(exposed_ns)] = list(exposed_ns.values())
    ranks = np.unique(graph.rank).tolist()
    communication_ns, bubble_ns = 0, 0
    for rank in ranks:
        own = graph.rank == rank
        transfers = own & (graph.kind == TaskKind.COLLECTIVE)
        # All computing of a block is in its own task: what is left behind another transfer is transferring.
        late = own & (graph.stream == BEHIND)
        busy = _during(result.start_ns, result.end_ns, own & (graph.stream == Stream.COMPUTE))
        moving = _during(result.transfer_ns, result.end_ns, transfers | late)
        waiting = _during(result.start_ns, result.transfer_ns, transfers)
        communication_ns += int(inside_ns[own].sum()) + difference(moving, busy).total_ns
        bubble_ns += difference(waiting, join(busy, moving)).total_ns
    whole_ns = result.makespan_ns * len(ranks)
    return StepShares(communication_ns / whole_ns, bubble_ns / whole_ns) if whole_ns else StepShares(0.0, 0.0)


def _during(start_ns: Int64Array, end_ns: Int64Array, chosen: BoolArray) -> Intervals:
    return union(start_ns[chosen], end_ns[chosen])
