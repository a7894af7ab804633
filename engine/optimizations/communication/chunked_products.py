"""Transfers of tensor groups and the products next to them, cut in chunks that run beside each other."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from engine.devices.spec import DeviceSpec, DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.optimizations.communication.parts import in_parts, whole_meetings
from engine.optimizations.communication.pricing import fixed_ns, plan_network, slowed_ns
from engine.optimizations.communication.tensor_transfers import Transfers
from engine.optimizations.graph_edits import edges_of, launches_of, with_tasks
from engine.optimizations.interface import Bound, CapturePlan
from engine.optimizations.products import operand_sizes, product_sizes
from engine.runtime.cost import matmul, operator_durations

ASSUMPTION = (
    "products are cut along their rows; where shapes are not told, chunks of a product take equal parts of its time"
)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Transfers with the product they are chunked with. Columns of shape (pairs,).

    Attributes:
        row: int64, rows of the transfers, by task.
        product: int32.
        product_first: bool: the product makes what is transferred; else it takes what is gathered.
    """

    row: Int64Array
    product: Int32Array
    product_first: BoolArray

    def __len__(self) -> int:
        return len(self.row)


def chunk_pairs(transfers: Transfers) -> Pairs:
    """Returns the exposed reductions behind products, and the exposed gatherings before products that are left."""
    reduces = transfers.kinds(CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)
    behind = reduces & transfers.is_exposed & transfers.is_product(transfers.producer)
    gathers = transfers.kinds(CollectiveKind.ALL_GATHER) & transfers.is_exposed
    taken = np.zeros(len(transfers.graph), dtype=np.bool_)
    taken[transfers.producer[behind]] = True
    before = gathers & transfers.is_product(transfers.consumer) & ~taken[transfers.consumer]
    row = np.flatnonzero(behind | before)
    row = row[np.argsort(transfers.calls.task[row])]
    product = np.where(behind[row], transfers.producer[row], transfers.consumer[row])
    # A product that two transfers of one kind name is cut for the first of them.
    _, first = np.unique(product, return_index=True)
    kept = np.sort(first)
    # All members of a transfer call the chunks, or none does.
    kept = kept[whole_meetings(transfers.graph, transfers.calls.task[row[kept]])]
    return Pairs(row[kept], product[kept].astype(np.int32), behind[row[kept]])


def chunked(plan: CapturePlan, transfers: Transfers, chunks: int, bound: Bound) -> CapturePlan:
    """Returns the plan with every pair in chunks.

    Every chunk of a transfer pays its fixed cost again, every chunk of a product and of a transfer its launch on the
    host, and smaller products use the device less well. LOW also pays all of the fixed cost for chunks that are
    hidden; HIGH slows nothing beside transfers.
    """
    pairs = chunk_pairs(transfers)
    if len(pairs) == 0 or chunks < 2:
        return plan
    graph = transfers.graph
    calls = transfers.calls.select(pairs.row)
    share = np.full(len(calls), 1.0 / chunks)
    fixed = fixed_ns(graph, calls, plan_network(plan))
    parts = in_parts(graph, calls.task, share, fixed, graph.stream[calls.task])
    piece_ns = _piece_ns(plan.device, graph, pairs.product, chunks)
    if bound is not Bound.HIGH:
        piece_ns = _slowed(plan, graph, pairs.product, piece_ns)
    if bound is Bound.LOW:
        piece_ns = piece_ns + np.rint(fixed / chunks).astype(np.int64)
    columns, place, pieces = _product_pieces(graph, pairs.product, piece_ns, chunks, len(parts.place))
    both: dict[str, Any] = {name: np.concatenate((parts.columns[name], columns[name])) for name in columns}
    changed = parts.graph.duration_ns.copy()
    changed[pairs.product] = piece_ns
    changed = _with_launches(graph, changed, np.concatenate((pairs.product, calls.task)), chunks - 1)
    before, after = _waits(graph, pairs, calls.task, parts.number.reshape(-1, chunks), pieces)
    result, _ = with_tasks(
        replace(parts.graph, duration_ns=changed), both, np.concatenate((parts.place, place)), before, after
    )
    return replace(plan, graph=result, assumptions=(*plan.assumptions, ASSUMPTION))


def _product_pieces(
    graph: TaskGraph, product: Int32Array, piece_ns: Int64Array, chunks: int, already: int
) -> tuple[dict[str, AnyArray], Int32Array, Int32Array]:
    """Returns the new tasks of cut products, where they stand, and the number of every piece, (products, chunks)."""
    row = np.repeat(np.arange(len(product)), chunks - 1)
    own = product[row]
    columns: dict[str, AnyArray] = {
        name: getattr(graph, name)[own]
        for name in ("name", "kind", "rank", "stream", "step", "micro_batch", "layer", "phase", "group", "inferred")
    }
    columns["duration_ns"] = piece_ns[row]
    columns["bytes"] = graph.bytes[own] / chunks
    columns["rendezvous"] = np.full(len(own), -1, dtype=np.int64)
    new = len(graph) + already + np.arange(len(own))
    pieces = np.concatenate((new.reshape(-1, chunks - 1), product[:, None]), axis=1)
    return columns, own, pieces.astype(np.int32)


def _waits(
    graph: TaskGraph, pairs: Pairs, task: Int32Array, parts: Int32Array, pieces: Int32Array
) -> tuple[AnyArray, AnyArray]:
    """Returns all waits of the result.

    What a product waited for holds its first piece, what a transfer waited for its first part; those behind follow in
    their queues. A reduction's part waits for its piece of the product, a piece for its part of a gathering.
    """
    before, after = edges_of(graph)
    first = np.arange(len(graph), dtype=np.int32)
    first[task], first[pairs.product] = parts[:, 0], pieces[:, 0]
    ahead = pairs.product_first
    row_of = np.full(len(graph), -1, dtype=np.int64)
    row_of[task] = np.arange(len(task))
    calling, called = row_of[before], row_of[after]
    # The wait of the pair itself is replaced by those of its chunks; a gap before the product is held by the first one.
    to_call = (called >= 0) & ahead[called] & (before == pairs.product[called])
    to_product = (calling >= 0) & ~ahead[calling] & (after == pairs.product[calling])
    held = (calling >= 0) & ~ahead[calling] & (graph.kind[after] == TaskKind.GAP)
    sources = np.where(held, parts[calling, 0], before)
    kept = ~to_call & ~to_product
    one, other = np.where(ahead[:, None], pieces, parts), np.where(ahead[:, None], parts, pieces)
    return (
        np.concatenate((sources[kept], one.ravel())),
        np.concatenate((first[after[kept]], other.ravel())),
    )


def _piece_ns(device: DeviceSpec | None, graph: TaskGraph, product: Int32Array, chunks: int) -> Int64Array:
    """Returns the time of one chunk of each product, int64: its share, times what the model says it loses."""
    duration_ns = graph.duration_ns[product] / chunks
    if device is None:
        return np.rint(duration_ns).astype(np.int64)
    shapes, inverse = np.unique(graph.shape[product], return_inverse=True)
    pairs = [operand_sizes(graph.strings.text(int(item))) for item in shapes]
    loss = np.array([1.0 if pair is None else _loss(device, product_sizes(pair), chunks) for pair in pairs])
    answer: Int64Array = np.rint(duration_ns * loss[inverse]).astype(np.int64)
    return answer


def _loss(device: DeviceSpec, size: tuple[int, int, int], chunks: int) -> float:
    m, n, k = size
    if not m:
        return 1.0
    whole, part = operator_durations(device, matmul([m, -(-m // chunks)], n, k, DType.BF16)).tolist()
    return max(chunks * part / whole, 1.0) if whole else 1.0


def _slowed(plan: CapturePlan, graph: TaskGraph, product: Int32Array, piece_ns: Int64Array) -> Int64Array:
    whole = slowed_ns(graph, product, float(graph.duration_ns[product].sum()), plan.device)
    slowed: Int64Array = np.rint(piece_ns * whole / np.maximum(graph.duration_ns[product], 1)).astype(np.int64)
    return slowed


def _with_launches(graph: TaskGraph, duration_ns: Int64Array, task: Int32Array, further: int) -> Int64Array:
    """Returns durations with the host time of further launches, each as long as the rank's median dispatch."""
    launch = launches_of(graph)
    known = launch[task] >= 0
    launched = np.unique(launch[launch >= 0])
    for rank in np.unique(graph.rank[task]).tolist():
        own = launched[graph.rank[launched] == rank]
        mine = launch[task[known & (graph.rank[task] == rank)]]
        if len(own):
            np.add.at(duration_ns, mine, further * int(np.median(graph.duration_ns[own])))
    return duration_ns
