"""Cost formulas of collectives: α per exchange, β per byte on the wire, γ per byte copied inside a device.

HCCL's own cost table (its guide to collective algorithms) gives ring, mesh, halving-doubling, pairwise and star; the
formulas here are the same with the rate of the links spelled out. ``size`` is n, the whole tensor: what an all-reduce
reduces, an all-gather ends with, a reduce-scatter starts from, and what one rank sends in an all-to-all, a broadcast
or a send. p is the number of ranks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log2

from engine.core.arrays import Float64Array
from engine.graph.collective_kinds import CollectiveKind


class Algorithm(StrEnum):
    """How the members of a group exchange."""

    RING = "ring"
    MESH = "mesh"
    HALVING_DOUBLING = "halving_doubling"
    HIERARCHICAL = "hierarchical"


@dataclass(frozen=True, slots=True)
class Wire:
    """What the formulas need of a group's links.

    Attributes:
        rank_count: p, ≥ 2.
        step_ns: α, one exchange.
        pair_bytes_per_s: From one member to one other.
        group_bytes_per_s: From one member to all others at once.
        copy_bytes_per_s: 1 ÷ γ: what every member copies between its buffers and the transport's; infinite where the
            rates of the links were measured with it.
    """

    rank_count: int
    step_ns: float
    pair_bytes_per_s: float
    group_bytes_per_s: float
    copy_bytes_per_s: float


_ROOTED = (CollectiveKind.BROADCAST, CollectiveKind.REDUCE)
_NS = 1e9


def ring_ns(kind: CollectiveKind, size: Float64Array, wire: Wire) -> Float64Array:
    """Returns the time on a ring: p − 1 exchanges with a neighbour (twice that for an all-reduce), ns.

    All-reduce 2(p−1)α + 2(p−1)/p·n·β; reduce-scatter, all-gather, all-to-all (p−1)α + (p−1)/p·n·β; a pipelined
    broadcast or reduce (p−1)α + n·β. A member of a ring has one neighbour to send to: its links to others lie idle in
    a mesh, behind a switch all of them reach the neighbour.
    """
    p = wire.rank_count
    steps, share = (2 * (p - 1), 2 * (p - 1) / p) if kind is CollectiveKind.ALL_REDUCE else (p - 1, (p - 1) / p)
    if kind in _ROOTED:
        share = 1.0
    return steps * wire.step_ns + size * _NS * (share / wire.pair_bytes_per_s + 1 / wire.copy_bytes_per_s)


def mesh_ns(kind: CollectiveKind, size: Float64Array, wire: Wire) -> Float64Array:
    """Returns the time where every member exchanges with all others at once over p − 1 links, ns.

    All-reduce 2α + 2n/p·β; reduce-scatter, all-gather, all-to-all, scatter α + n/p·β; broadcast and reduce as scatter
    plus all-gather 2α + 2n/p·β, or a star α + n·β where that is sooner (β per link).
    """
    p = wire.rank_count
    rounds = 2 if kind is CollectiveKind.ALL_REDUCE or kind in _ROOTED else 1
    part_ns = (p - 1) / p * size * _NS / wire.group_bytes_per_s
    return rounds * (wire.step_ns + part_ns) + size * _NS / wire.copy_bytes_per_s


def halving_doubling_ns(kind: CollectiveKind, size: Float64Array, wire: Wire) -> Float64Array:
    """Returns the time of recursive halving and doubling: ⌈log₂ p⌉ exchanges of ever smaller parts, ns.

    The bytes are those of a ring, the exchanges fewer; an all-to-all has no such form and goes pairwise.
    """
    p = wire.rank_count
    if kind is CollectiveKind.ALL_TO_ALL:
        return ring_ns(kind, size, wire)
    steps = ceil(log2(p)) * (2 if kind is CollectiveKind.ALL_REDUCE else 1)
    share = 2 * (p - 1) / p if kind is CollectiveKind.ALL_REDUCE else (p - 1) / p
    if kind in _ROOTED:
        share = 1.0
    return steps * wire.step_ns + size * _NS * (share / wire.pair_bytes_per_s + 1 / wire.copy_bytes_per_s)


FLAT: dict[Algorithm, Callable[[CollectiveKind, Float64Array, Wire], Float64Array]] = {
    Algorithm.RING: ring_ns,
    Algorithm.MESH: mesh_ns,
    Algorithm.HALVING_DOUBLING: halving_doubling_ns,
}
"""Algorithms inside one kind of link; the hierarchical one is made of two of them."""
