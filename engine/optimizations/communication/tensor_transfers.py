"""Transfers of tensor groups and the products beside them: which stand exposed between what."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array
from engine.core.number_format import format_count, format_duration_ns
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.answers import no_effect, unknown
from engine.optimizations.communication.calls import Calls, Role, calls_of
from engine.optimizations.communication.exposure import Exposure, exposure, per_step
from engine.optimizations.communication.progress import rank_computing
from engine.optimizations.communication.waiting import unsplit_reason
from engine.optimizations.interface import Applicability, CapturePlan

HIDDEN_RATIO = 0.5
"""A transfer of which less than this share is exposed runs beside computing already."""
ADDITIONS = ("Add", "InplaceAdd", "AddInplace", "AddN")
"""The addition of a weight's gradient to its accumulator follows its product and needs no transfer."""
_MIXED_WORDS = ("mc2", "allgathermatmul", "matmulallreduce", "matmulreducescatter", "mmallreduce")


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """Exposed transfers of tensor groups with what is computed around them. Columns of shape (calls,).

    Attributes:
        graph: The tasks.
        seen: When everything runs as it is.
        calls: Transfers of complete groups, by rank, then start.
        producer: int32, last computing that ended before the transfer began, −1 for none.
        consumer: int32, first computing that starts after its end, −1 for none.
        between: int64, computing tasks from this transfer to the next one of its rank.
        is_exposed: bool.
    """

    graph: TaskGraph
    seen: Exposure
    calls: Calls
    producer: Int32Array
    consumer: Int32Array
    between: Int32Array
    is_exposed: BoolArray

    def kinds(self, *kinds: CollectiveKind) -> BoolArray:
        """Returns which transfers are of one of some kinds, bool, shape (calls,)."""
        chosen: BoolArray = np.isin(self.calls.kind, kinds)
        return chosen

    def is_product(self, task: Int32Array) -> BoolArray:
        """Returns which of some tasks are products, bool; −1 is none."""
        answer: BoolArray = (task >= 0) & (self.graph.kind[task] == TaskKind.CUBE)
        return answer

    def after(self, task: Int32Array, places: int) -> Int32Array:
        """Returns the computing task some places behind each of its rank, int32; −1 past the end and for −1."""
        found = np.full(len(task), -1, dtype=np.int32)
        for rank, own in rank_computing(self.graph, self.seen.schedule).items():
            place = np.full(len(self.graph), -1, dtype=np.int64)
            place[own.task] = np.arange(len(own.task))
            rows = np.flatnonzero((task >= 0) & (self.graph.rank[task] == rank))
            target = place[task[rows]] + places
            inside = (place[task[rows]] >= 0) & (target < len(own.task))
            found[rows[inside]] = own.task[target[inside]]
        return found


def tensor_transfers(graph: TaskGraph, known: Exposure | None = None) -> Transfers:
    """Returns the transfers of complete tensor groups of a graph."""
    seen = known or exposure(graph, calls_of(graph))
    tensor = (seen.calls.role == Role.TENSOR) & seen.calls.split
    calls, exposed_ns = seen.calls.select(tensor), seen.exposed_transfer_ns[tensor]
    start_ns, end_ns = (column[calls.task] for column in (seen.schedule.start_ns, seen.schedule.end_ns))
    order = np.lexsort((start_ns, graph.rank[calls.task]))
    calls, exposed_ns = calls.select(order), exposed_ns[order]
    start_ns, end_ns = start_ns[order], end_ns[order]
    producer, consumer, between = (np.full(len(calls), -1, dtype=np.int32) for _ in range(3))
    # A loop over ranks.
    for rank, own in rank_computing(graph, seen.schedule).items():
        rows = np.flatnonzero(graph.rank[calls.task] == rank)
        last = np.searchsorted(np.maximum.accumulate(own.end_ns), start_ns[rows], side="right") - 1
        following = np.searchsorted(own.start_ns, end_ns[rows])
        producer[rows] = np.where(last >= 0, own.task[np.maximum(last, 0)], -1)
        producer[rows[last < 0]] = -1
        inside = following < len(own.task)
        consumer[rows[inside]] = own.task[following[inside]]
        between[rows[:-1]] = last[1:] + 1 - following[:-1]
    is_exposed = exposed_ns > HIDDEN_RATIO * graph.duration_ns[calls.task]
    return Transfers(graph, seen, calls, producer, consumer, between, is_exposed)


def transfers_to_hide(plan: CapturePlan) -> Transfers | Applicability:
    """Returns the transfers of tensor groups of which some are exposed, or why there are none to hide."""
    graph = plan.graph
    seen = exposure(graph, calls_of(graph))
    tensor = seen.calls.role == Role.TENSOR
    mixed = mixed_tasks(graph)
    if not tensor.any():
        if mixed:
            return no_effect(f"{format_count(mixed)} fused kernels (MC2) hide the transfers of tensor groups already")
        return no_effect("the capture shows no transfers of tensor groups: every device holds whole layers")
    if not np.any(tensor & seen.calls.split):
        return unknown(unsplit_reason(graph, seen, tensor))
    transfers = tensor_transfers(graph, seen)
    if not transfers.is_exposed.any():
        whole_ns = per_step(graph, float(graph.duration_ns[transfers.calls.task].sum()))
        return no_effect(f"{format_duration_ns(whole_ns)} of such transfers per step runs beside computing already")
    return transfers


def mixed_tasks(graph: TaskGraph) -> int:
    """Returns how many kernels are products fused with their transfer (MC2): what they move is hidden inside them."""
    names, count = np.unique(graph.name[graph.stream != Stream.HOST], return_counts=True)
    fused = [
        int(number)
        for name, number in zip(names.tolist(), count.tolist(), strict=True)
        if any(word in graph.strings.text(name).casefold().replace("_", "") for word in _MIXED_WORDS)
    ]
    return sum(fused)
