"""What the links of a topology achieve: constants of its data file, or of a fit to a published table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from math import inf
from typing import Any

from engine.devices.catalogue import load_topology
from engine.devices.topology import Link, LinkLayout, Reach, Topology
from engine.runtime.collectives.algorithms import Algorithm, Wire

_FILE = "measured.json"


@dataclass(frozen=True, slots=True)
class LinkTiming:
    """What collectives over one kind of link cost.

    Attributes:
        base_ns: One collective before its first byte moves: launch and agreement.
        step_ns: α, one exchange.
        lane_bytes_per_s: Achieved rate of one link, one direction.
        lane_counts: Links a member can use in a group of so many members of one reach; empty where the topology's
            layout says it.
        copy_bytes_per_s: 1 ÷ γ, see ``Wire``.
        rail_counts: Links to the network that so many members of one server have between them; empty where each
            member has its own.
        point_to_point: What sends and receives cost where that was measured; None where they cost one exchange.
        quick: The transport for small messages (less waiting, lower rate): the sooner of the two is taken; None where
            the library has one transport or nobody measured the other.
        algorithms: Which ones the library uses over this link.
    """

    base_ns: float
    step_ns: float
    lane_bytes_per_s: float
    lane_counts: Mapping[int, float]
    copy_bytes_per_s: float
    rail_counts: Mapping[int, float]
    point_to_point: "LinkTiming | None"
    quick: "LinkTiming | None"
    algorithms: tuple[Algorithm, ...]

    def rail_count(self, member_count: int) -> float:
        """Returns how many links to the network ``member_count`` members of one server share."""
        return self.rail_counts.get(member_count, float(member_count))

    def wire(self, link: Link, member_count: int) -> Wire:
        """Returns what the formulas need for ``member_count`` ≥ 2 members that this link joins."""
        lanes = self.lane_counts.get(member_count)
        if lanes is None and self.lane_counts:
            lanes = self.lane_counts[min(self.lane_counts, key=lambda known: abs(known - member_count))]
        group = lanes if lanes is not None else link.usable_link_count(member_count)
        pair = 1.0 if link.layout is LinkLayout.FULL_MESH else group
        return Wire(
            rank_count=member_count,
            step_ns=self.step_ns,
            pair_bytes_per_s=self.lane_bytes_per_s * pair,
            group_bytes_per_s=self.lane_bytes_per_s * group,
            copy_bytes_per_s=self.copy_bytes_per_s,
        )


@dataclass(frozen=True, slots=True)
class Network:
    """A topology with the timing of each of its links.

    Attributes:
        topology: The links.
        timings: Of each link, by reach.
        devices_per_node: Devices of one server.
        algorithm: The one all collectives use; None for the soonest of those usual over each link.
    """

    topology: Topology
    timings: Mapping[Reach, LinkTiming]
    devices_per_node: int
    algorithm: Algorithm | None = None

    def using(self, algorithm: Algorithm | None) -> "Network":
        """Returns the same links with collectives of one algorithm, None for the soonest."""
        return replace(self, algorithm=algorithm)

    def by_node(self, ranks: Sequence[int]) -> list[list[int]]:
        """Returns the ranks of each server that has members, in order."""
        nodes: dict[int, list[int]] = {}
        for rank in ranks:
            nodes.setdefault(rank // self.devices_per_node, []).append(rank)
        return [nodes[node] for node in sorted(nodes)]

    def link_between(self, ranks: Sequence[int]) -> tuple[Link, LinkTiming]:
        """Returns the nearest link that reaches all of ``ranks`` and its timing. Raises DeviceDataError."""
        link = self.topology.link_for(ranks, self.devices_per_node)
        return link, self.timings[link.reach]


def network_of(topology: Topology, devices_per_node: int | None = None) -> Network:
    """Returns the network of a topology.

    Args:
        topology: Where the links are described.
        devices_per_node: Overrides the topology's own, for half-filled servers.
    """
    document = measured_constants()
    return _network(topology, document["topologies"].get(topology.id, {}), document["usual"], devices_per_node)


def measured_system(name: str, document: Mapping[str, Any] | None = None) -> Network:
    """Returns the network of a system that published a table of collectives; KeyError where there is none.

    Args:
        name: Of the system.
        document: Constants in place of the shipped ones, for fitting.
    """
    document = document or measured_constants()
    described = document["systems"][name]
    topology = load_topology(described["topology"])
    links = {Reach(reach): float(count["value"]) for reach, count in described.get("link_counts", {}).items()}
    own = tuple(
        replace(link, link_count=replace(link.link_count, value=links.get(link.reach, link.link_count.value)))
        for link in topology.links
    )
    measured = document["topologies"].get(topology.id, {}) | described.get("links", {})
    return _network(replace(topology, links=own), measured, document["usual"], None)


def _network(
    topology: Topology, measured: Mapping[str, Any], usual: Mapping[str, Any], devices_per_node: int | None
) -> Network:
    timings: dict[Reach, LinkTiming] = {
        link.reach: _timing(link, measured.get(str(link.reach), {}), usual)
        for link in topology.links
        if link.reach is not Reach.HOST
    }
    return Network(topology, timings, devices_per_node or topology.devices_per_node)


def measured_constants() -> dict[str, Any]:
    """Returns the shipped constants that fits to published tables gave: a copy."""
    text = resources.files("engine.runtime.collectives").joinpath(_FILE).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _timing(link: Link, measured: Mapping[str, Any], usual: Mapping[str, Any]) -> LinkTiming:
    """Returns the timing of a link: measured constants first, then the link's own, then the usual ones."""
    mesh = link.layout is LinkLayout.FULL_MESH
    words = measured.get("algorithms", usual["mesh_algorithms" if mesh else "switch_algorithms"])
    plain = LinkTiming(
        base_ns=float(usual["base_ns"]["value"]),
        step_ns=link.latency_ns.value,
        lane_bytes_per_s=link.bytes_per_s.value * link.efficiency_ratio.value,
        lane_counts={},
        copy_bytes_per_s=inf,
        rail_counts={},
        point_to_point=None,
        quick=None,
        algorithms=tuple(Algorithm(word) for word in words),
    )
    return _measured(plain, measured)


def _measured(plain: LinkTiming, measured: Mapping[str, Any]) -> LinkTiming:
    """Returns ``plain`` with what was measured in place of what was not."""
    numbers = {
        name: float(measured[name]["value"])
        for name in ("base_ns", "step_ns", "lane_bytes_per_s", "copy_bytes_per_s")
        if name in measured
    }
    counts = {
        name: {int(members): float(count) for members, count in measured[name]["value"].items()}
        for name in ("lane_counts", "rail_counts")
        if name in measured
    }
    timing = replace(plain, **(numbers | counts))  # type: ignore[arg-type]  # names of fields of these types
    parts = {name: _measured(timing, measured[name]) for name in ("point_to_point", "quick") if name in measured}
    return replace(timing, **parts)  # type: ignore[arg-type]
