"""Products joined with the transfer next to them (MC2): one mixed task whose transfer partly hides behind its tiles.

The product keeps its task, now mixed, and the transfer keeps its meeting: what is left of it beside the product.
"""

import re
from dataclasses import dataclass, replace

import numpy as np

from engine.analyses.fusion.kernel_sequence import kernel_sequence
from engine.analyses.fusion.matmul_communication import JoinedProducts, gathered_products, matmul_communication
from engine.core.arrays import Float64Array, Int32Array
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.fusion.task_lookup import launch_limit_ns, tasks_of_events
from engine.optimizations.graph_edits import edges_of, with_names
from engine.optimizations.interface import Bound, CapturePlan

KERNELS = {"all_reduce": "MatmulAllReduce", "reduce_scatter": "MatmulReduceScatter", "all_gather": "AllGatherMatmul"}
LEFT_RATIO = {"all_reduce": 0.76, "reduce_scatter": 0.47, "all_gather": 0.47}
"""Transfer time left beside the product ÷ transfer alone. 60 rows of MC2 operators on 8 × Atlas A2 (cann-bench): gather
and scatter add 3.17 µs per MB, the all-reduce 10.6; alone, eight cards move 149 and 72 GB/s: 6.7 and 13.9 µs per MB."""
_WORDS = {
    "all_reduce": re.compile("all_?reduce", re.I),
    "reduce_scatter": re.compile("reduce_?scatter", re.I),
    "all_gather": re.compile("all_?gather", re.I),
}
_TENSOR_NAMES = frozenset(("tp", "tensor", "tensor_model_parallel"))


@dataclass(frozen=True, slots=True, eq=False)
class MixedPairs:
    """Products with their transfers in the graph; columns of shape (pairs,).

    Attributes:
        product: int32 task.
        collective: int32 task.
        kernel: Name of the operator that is both.
        left_ratio: float64: transfer left ÷ transfer.
        unsplit_count: Pairs left out because members of the group are missing.
        is_gpu: Whether the job runs on GPUs, for which these operators do not exist.
    """

    product: Int32Array
    collective: Int32Array
    kernel: tuple[str, ...]
    left_ratio: Float64Array
    unsplit_count: int
    is_gpu: bool

    def __len__(self) -> int:
        return len(self.product)


def mixed_pairs(plan: CapturePlan) -> MixedPairs:
    """Returns the exposed transfers of tensor groups next to a product, of all ranks; each product in one pair."""
    graph = plan.graph
    tensor = _tensor_groups(graph)
    product, collective = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
    is_gpu = False
    for entry in plan.capture.job.ranks:
        sequence = kernel_sequence(entry.trace)
        is_gpu |= sequence.is_gpu
        for pairs in (matmul_communication(entry.trace, sequence), gathered_products(entry.trace, sequence)):
            if pairs is not None:
                tasks = _tasks(graph, entry.rank, pairs)
                product.append(tasks[0])
                collective.append(tasks[1])
    products, collectives = np.concatenate(product), np.concatenate(collective)
    chosen = (products >= 0) & (collectives >= 0)
    chosen &= np.isin(graph.group[collectives], tensor) & (graph.kind[products] == TaskKind.CUBE)
    products, collectives = products[chosen], collectives[chosen]
    split = graph.rendezvous[collectives] >= 0
    _, first = np.unique(products[split], return_index=True)
    first.sort()
    unsplit_count = int(np.count_nonzero(~split))
    return _described(graph, products[split][first], collectives[split][first], unsplit_count, is_gpu)


def _tasks(graph: TaskGraph, rank: int, pairs: JoinedProducts) -> tuple[Int32Array, Int32Array]:
    return tasks_of_events(graph, rank, pairs.product), tasks_of_events(graph, rank, pairs.collective)


def _tensor_groups(graph: TaskGraph) -> list[int]:
    """Returns the string ids of groups that share tensors: those the capture's metadata calls so, of several ranks."""
    named = [group for group in graph.groups if _TENSOR_NAMES & set(group.name.split(" or ")) and len(group.ranks) > 1]
    return [graph.strings.id_of(group.id) for group in named]


def _described(
    graph: TaskGraph, product: Int32Array, collective: Int32Array, unsplit_count: int, is_gpu: bool
) -> MixedPairs:
    """Returns the pairs whose collective is one that an operator joins with a product. A turn per pair."""
    words = [
        next((word for word, name in _WORDS.items() if name.search(graph.operator(task))), "") for task in collective
    ]
    known = np.array([bool(word) for word in words], dtype=np.bool_)
    named = [word for word in words if word]
    return MixedPairs(
        product=product[known],
        collective=collective[known],
        kernel=tuple(KERNELS[word] for word in named),
        left_ratio=np.array([LEFT_RATIO[word] for word in named]),
        unsplit_count=unsplit_count,
        is_gpu=is_gpu,
    )


def hidden_ns(graph: TaskGraph, pairs: MixedPairs, bound: Bound) -> Float64Array:
    """Returns how much of each transfer hides behind its product, float64, shape (pairs,).

    At best the whole of it as long as the product lasts; at least half of what is expected: shapes differ from those
    that were measured, and small products have few tiles to hide behind.
    """
    transfer, product = graph.duration_ns[pairs.collective], graph.duration_ns[pairs.product]
    if bound is Bound.HIGH:
        return np.minimum(transfer, product).astype(np.float64)
    expected = np.minimum(transfer * (1 - pairs.left_ratio), product)
    return expected / 2 if bound is Bound.LOW else expected


def joined_pairs(graph: TaskGraph, pairs: MixedPairs, bound: Bound) -> TaskGraph:
    """Returns the graph with mixed tasks, their transfers shortened.

    What launching such an operator costs is not published: only at best it is one launch instead of two.
    """
    graph, kernels = with_names(graph, pairs.kernel)
    name, kind, duration_ns = graph.name.copy(), graph.kind.copy(), graph.duration_ns.copy()
    name[pairs.product] = kernels
    kind[pairs.product] = TaskKind.MIX
    duration_ns[pairs.collective] -= np.rint(hidden_ns(graph, pairs, bound)).astype(np.int64)
    if bound is Bound.HIGH:
        hosts = _launches(graph, pairs.collective)
        limit = launch_limit_ns(graph, bound)[graph.rank[hosts]]
        duration_ns[hosts] -= np.minimum(duration_ns[hosts], limit)
    return replace(graph, name=name, kind=kind, duration_ns=duration_ns)


def _launches(graph: TaskGraph, tasks: Int32Array) -> Int32Array:
    """Returns the host tasks that launched some tasks, int32."""
    before, after = edges_of(graph)
    chosen = np.zeros(len(graph), dtype=np.bool_)
    chosen[tasks] = True
    hosts = np.unique(before[(graph.stream[before] == Stream.HOST) & chosen[after]])
    result: Int32Array = hosts[graph.kind[hosts] == TaskKind.HOST]
    return result
