"""How devices are connected: which link two devices share, how many of its lanes a group can use.

The rule that decides small groups: in a full mesh of links a group of p devices uses only p - 1 links of each, so four
of eight cards reach 3/7 of a card's rate (measured on 910B: all-gather of 2, 4, 8 cards 38, 64, 149 GB/s).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.devices.spec import Constant, DeviceDataError


class LinkKind(StrEnum):
    """Technologies."""

    HCCS = "hccs"
    ROCE = "roce"
    PCIE = "pcie"
    SIO = "sio"
    NVLINK = "nvlink"
    INFINIBAND = "infiniband"


class LinkLayout(StrEnum):
    """How a device's links reach its peers."""

    FULL_MESH = "full_mesh"
    """One link to each peer: a pair has one link, never more."""
    SWITCH = "switch"
    """All links lead to a switch: a pair can use all of them."""


class Reach(StrEnum):
    """How far a link reaches, nearest first; HOST leads to the host's memory."""

    PACKAGE = "package"
    NODE = "node"
    SUPERNODE = "supernode"
    CLUSTER = "cluster"
    HOST = "host"


_NEAREST_FIRST = (Reach.PACKAGE, Reach.NODE, Reach.SUPERNODE, Reach.CLUSTER)


@dataclass(frozen=True, slots=True)
class Link:
    """One kind of link of a device.

    Attributes:
        kind: Technology.
        reach: How far it goes.
        layout: Full mesh or switch.
        bytes_per_s: One direction of one link.
        link_count: Links of one device.
        latency_ns: One hop.
        efficiency_ratio: Share of ``bytes_per_s`` that large messages reach.
    """

    kind: LinkKind
    reach: Reach
    layout: LinkLayout
    bytes_per_s: Constant
    link_count: Constant
    latency_ns: Constant
    efficiency_ratio: Constant

    @property
    def pair_bytes_per_s(self) -> float:
        """Peak rate from one device to one peer."""
        lanes = 1 if self.layout is LinkLayout.FULL_MESH else self.link_count.value
        return self.bytes_per_s.value * lanes

    def usable_link_count(self, group_size: int) -> int:
        """Returns how many links a member of a group of ``group_size`` neighbours can send on at once."""
        if group_size < 2:
            return 0
        count = int(self.link_count.value)
        return min(group_size - 1, count) if self.layout is LinkLayout.FULL_MESH else count

    def group_bytes_per_s(self, group_size: int) -> float:
        """Returns the peak rate at which each member of such a group sends."""
        return self.bytes_per_s.value * self.usable_link_count(group_size)


@dataclass(frozen=True, slots=True)
class Topology:
    """A cluster of one kind of device. Ranks fill packages, then nodes, then supernodes, in order.

    Attributes:
        id: Catalogue id, such as ``"a2"``.
        title: For people.
        devices_per_package: Devices that share a package (dies of a 910C), 1 where none do.
        devices_per_node: Devices of one server (of one mesh on 910A).
        nodes_per_supernode: Servers that share a fabric, 1 where there is none.
        links: At most one per reach.
    """

    id: str
    title: str
    devices_per_package: int
    devices_per_node: int
    nodes_per_supernode: int
    links: tuple[Link, ...]

    def link(self, reach: Reach) -> Link | None:
        """Returns the link of that reach, None where there is none."""
        return next((link for link in self.links if link.reach is reach), None)

    @property
    def host_link(self) -> Link:
        """The link between a device and its host's memory. Raises DeviceDataError where none is described."""
        link = self.link(Reach.HOST)
        if link is None:
            message = f"topology {self.id} describes no link to the host"
            raise DeviceDataError(message)
        return link

    def reach_of(self, ranks: Sequence[int], devices_per_node: int | None = None) -> Reach:
        """Returns how far apart the members of a group are: the smallest reach that holds all of them.

        Args:
            ranks: Device numbers, 0-based.
            devices_per_node: Overrides the topology's own, for half-filled servers.
        """
        per_node = devices_per_node or self.devices_per_node
        sizes = (
            (Reach.PACKAGE, self.devices_per_package),
            (Reach.NODE, per_node),
            (Reach.SUPERNODE, per_node * self.nodes_per_supernode),
        )
        for reach, size in sizes:
            if len({rank // size for rank in ranks}) <= 1:
                return reach
        return Reach.CLUSTER

    def link_for(self, ranks: Sequence[int], devices_per_node: int | None = None) -> Link:
        """Returns the link that carries the group's slowest traffic: the nearest one that reaches all members.

        Raises DeviceDataError where the topology has no link that reaches them.
        """
        needed = _NEAREST_FIRST.index(self.reach_of(ranks, devices_per_node))
        for reach in _NEAREST_FIRST[needed:]:
            link = self.link(reach)
            if link is not None:
                return link
        message = f"topology {self.id} has no link between ranks {min(ranks)} and {max(ranks)}"
        raise DeviceDataError(message)
