"""The transfer time of collectives: from the last arrival to the common end."""

from collections.abc import Callable, Sequence

import numpy as np

from engine.core.arrays import AnyArray, Float64Array, Int64Array
from engine.graph.collective_kinds import POINT_TO_POINT, CollectiveKind
from engine.runtime.collectives.algorithms import FLAT, Algorithm
from engine.runtime.collectives.network import LinkTiming, Network

_NS = 1e9


def collective_durations(
    kind: CollectiveKind,
    size_bytes: AnyArray,
    ranks: Sequence[int],
    network: Network,
    algorithm: Algorithm | None = None,
) -> Int64Array:
    """Returns how long collectives of one kind and group take, ns, int64, the shape of ``size_bytes``.

    Args:
        kind: What they do; a barrier moves nothing, an unknown kind is priced as an all-reduce.
        size_bytes: The whole tensor of each (see ``algorithms``).
        ranks: The group's devices; fewer than two cost nothing.
        network: Links and their timing.
        algorithm: Forces one; by default the network's, else the soonest of those the library uses over the links.
            HIERARCHICAL means inside servers first and between them with what is left; groups inside one server have no
            such form and are then priced by their best.
    """
    algorithm = algorithm or network.algorithm
    size = np.asarray(size_bytes, dtype=np.float64)
    if kind in POINT_TO_POINT:
        return point_to_point_durations(size, ranks, network)
    if len(ranks) < 2:
        return np.zeros(size.shape, dtype=np.int64)
    kind = CollectiveKind.ALL_REDUCE if kind is CollectiveKind.UNKNOWN else kind
    size = size * 0.0 if kind is CollectiveKind.BARRIER else size
    nodes = network.by_node(ranks)
    even = len({len(members) for members in nodes}) == 1
    layered = len(nodes) > 1 and len(nodes[0]) > 1 and even
    answers: list[Float64Array] = []
    if layered and algorithm in (None, Algorithm.HIERARCHICAL):
        answers.append(_hierarchical_ns(kind, size, nodes, network))
    if not layered or algorithm not in (None, Algorithm.HIERARCHICAL):
        answers.append(_flat_ns(kind, size, ranks, network, algorithm))
    soonest_ns: Float64Array = np.minimum.reduce(answers)
    return np.rint(soonest_ns).astype(np.int64)


def point_to_point_durations(size_bytes: AnyArray, ranks: Sequence[int], network: Network) -> Int64Array:
    """Returns how long sends between two devices take, ns, int64: α + n·β over the nearest link that joins them."""
    size = np.asarray(size_bytes, dtype=np.float64)
    if len(set(ranks)) < 2:
        return np.zeros(size.shape, dtype=np.int64)
    link, timing = network.link_between(ranks)

    def send_ns(using: LinkTiming) -> Float64Array:
        wire = using.wire(link, 2)
        return using.base_ns + wire.step_ns + size * _NS / wire.pair_bytes_per_s

    return np.rint(_soonest(timing.point_to_point or timing, send_ns)).astype(np.int64)


def _soonest(timing: LinkTiming, cost_ns: Callable[[LinkTiming], Float64Array]) -> Float64Array:
    """Returns the time over the normal transport or the quick one, whichever ends sooner."""
    normal_ns = cost_ns(timing)
    return normal_ns if timing.quick is None else np.minimum(normal_ns, cost_ns(timing.quick))


def _flat_ns(
    kind: CollectiveKind,
    size: Float64Array,
    ranks: Sequence[int],
    network: Network,
    algorithm: Algorithm | None = None,
    *,
    begins: bool = True,
    neighbours: int = 1,
) -> Float64Array:
    """Returns the time where all members exchange over the one link that reaches them all.

    A later phase of a larger collective does not begin one (``begins``): agreement was reached before. ``neighbours``
    members of each server do the same for their parts of ``size`` and share the server's links to the network.
    """
    link, timing = network.link_between(ranks)
    chosen = timing.algorithms if algorithm in (None, Algorithm.HIERARCHICAL) else (algorithm,)

    def cost_ns(using: LinkTiming) -> Float64Array:
        wire = using.wire(link, len(ranks))
        part = size / using.rail_count(neighbours) if neighbours > 1 else size
        exchange_ns: Float64Array = np.minimum.reduce([FLAT[item](kind, part, wire) for item in chosen])
        return exchange_ns + (using.base_ns if begins else 0.0)

    return _soonest(timing, cost_ns)


def _hierarchical_ns(
    kind: CollectiveKind, size: Float64Array, nodes: Sequence[Sequence[int]], network: Network
) -> Float64Array:
    """Returns the time of a collective of several members on each of several servers.

    All-reduce: reduce-scatter inside the servers, all-reduce between them of each member's part over its own link to
    the network (so m members use m network links), all-gather inside. Its halves do half of that. A broadcast goes
    between servers in m parts, then inside; an all-to-all sends inside what stays and outside what leaves.
    """
    inside_ranks, across = nodes[0], [members[0] for members in nodes]
    count = len(inside_ranks)

    def inside(what: CollectiveKind, part: Float64Array) -> Float64Array:
        return _flat_ns(what, part, inside_ranks, network, begins=False)

    if kind is CollectiveKind.ALL_TO_ALL:
        # Every member sends its own bytes over the network, not a part of common ones.
        leaves = _flat_ns(kind, size * count, across, network, neighbours=count)
        return np.maximum(inside(kind, size / len(nodes)), leaves)
    between = _flat_ns(kind, size, across, network, neighbours=count)
    if kind is CollectiveKind.ALL_REDUCE:
        scatter = inside(CollectiveKind.REDUCE_SCATTER, size)
        return between + scatter + inside(CollectiveKind.ALL_GATHER, size)
    return between + inside(kind, size)
