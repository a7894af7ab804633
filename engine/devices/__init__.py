"""Devices and the links between them, as data with provenance: ``load_device("910b2")``, ``load_topology("a2")``."""

from engine.devices.catalogue import device_ids, load_device, load_topology, topology_ids, topology_of
from engine.devices.spec import Constant, DeviceSpec, DType, Provenance
from engine.devices.topology import Link, LinkKind, LinkLayout, Reach, Topology

__all__ = [
    "Constant",
    "DType",
    "DeviceSpec",
    "Link",
    "LinkKind",
    "LinkLayout",
    "Provenance",
    "Reach",
    "Topology",
    "device_ids",
    "load_device",
    "load_topology",
    "topology_ids",
    "topology_of",
]
