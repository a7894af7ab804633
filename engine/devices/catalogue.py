"""Loads devices and topologies from the data files beside this module."""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from engine.devices.spec import Constant, DeviceDataError, DeviceSpec, FamilyParameters, Provenance
from engine.devices.topology import Link, LinkKind, LinkLayout, Reach, Topology

FORMAT = 1
"""Version of the data files."""


def device_ids() -> tuple[str, ...]:
    """Returns the ids of all devices, sorted."""
    return _ids("devices")


def topology_ids() -> tuple[str, ...]:
    """Returns the ids of all topologies, sorted."""
    return _ids("topologies")


def load_device(device_id: str) -> DeviceSpec:
    """Returns a device by its id. Raises DeviceDataError that names the nearest known ids."""
    return device_from_document(_read("devices", device_id, device_ids()))


def load_topology(topology_id: str) -> Topology:
    """Returns a topology by its id. Raises DeviceDataError that names the nearest known ids."""
    return topology_from_document(_read("topologies", topology_id, topology_ids()))


def topology_of(device: DeviceSpec) -> Topology:
    """Returns the topology a device usually sits in."""
    return load_topology(device.topology)


def device_named(text: str) -> DeviceSpec | None:
    """Returns the device that a capture's own words name (``"Ascend910B3"``), None where they name none.

    The longest name that occurs wins, so that ``Ascend910B3`` is not taken for ``Ascend910B``.
    """
    folded = text.casefold()
    candidates = [
        (len(name), device_id)
        for device_id in device_ids()
        for name in (device_id, *load_device(device_id).soc_names)
        if name.casefold() in folded
    ]
    return load_device(max(candidates)[1]) if candidates else None


def device_from_document(document: Mapping[str, Any]) -> DeviceSpec:
    """Returns the device a parsed data file describes. Raises DeviceDataError."""
    try:
        return DeviceSpec(
            id=document["id"],
            title=document["title"],
            vendor=document["vendor"],
            soc_names=tuple(document["soc_names"]),
            aliases=tuple(document["aliases"]),
            die_count=int(document["die_count"]),
            topology=document["topology"],
            constants=constants_from_document(document["constants"]),
            measured=constants_from_document(document["measured"]),
            families={name: family_from_document(entry) for name, entry in document.get("families", {}).items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        message = f"device {document.get('id', '?')}: bad data file: {error!r}"
        raise DeviceDataError(message) from error


def topology_from_document(document: Mapping[str, Any]) -> Topology:
    """Returns the topology a parsed data file describes. Raises DeviceDataError."""
    try:
        return Topology(
            id=document["id"],
            title=document["title"],
            devices_per_package=int(document["devices_per_package"]),
            devices_per_node=int(document["devices_per_node"]),
            nodes_per_supernode=int(document["nodes_per_supernode"]),
            links=tuple(_link(entry) for entry in document["links"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        message = f"topology {document.get('id', '?')}: bad data file: {error!r}"
        raise DeviceDataError(message) from error


def constants_from_document(document: Mapping[str, Any]) -> dict[str, Constant]:
    """Returns constants by name. Raises KeyError, TypeError or ValueError for an entry that is none."""
    return {name: _constant(entry) for name, entry in document.items()}


def family_from_document(entry: Mapping[str, Any]) -> FamilyParameters:
    """Returns the constants of a family. Raises KeyError, TypeError or ValueError for an entry that is none."""
    return FamilyParameters(
        fixed_ns=float(entry["fixed_ns"]),
        block_cycles=float(entry["block_cycles"]),
        row_cycles=float(entry["row_cycles"]),
        memory_ratio=float(entry["memory_ratio"]),
        cube_ratio=float(entry["cube_ratio"]),
        traffic_ratio=float(entry["traffic_ratio"]),
        unaligned_cycles=float(entry["unaligned_cycles"]),
        rows_whole=bool(entry["rows_whole"]),
        kind=Provenance(entry["kind"]),
        source=entry["source"],
    )


def _constant(entry: Mapping[str, Any]) -> Constant:
    return Constant(float(entry["value"]), entry["unit"], Provenance(entry["kind"]), entry["source"])


def _link(entry: Mapping[str, Any]) -> Link:
    return Link(
        kind=LinkKind(entry["kind"]),
        reach=Reach(entry["reach"]),
        layout=LinkLayout(entry["layout"]),
        bytes_per_s=_constant(entry["bytes_per_s"]),
        link_count=_constant(entry["link_count"]),
        latency_ns=_constant(entry["latency_ns"]),
        efficiency_ratio=_constant(entry["efficiency_ratio"]),
    )


def _folder(name: str) -> Traversable:
    return resources.files("engine.devices").joinpath("data", name)


def _ids(folder: str) -> tuple[str, ...]:
    names = (entry.name for entry in _folder(folder).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def _read(folder: str, wanted: str, known: Iterable[str]) -> dict[str, Any]:
    ids = tuple(known)
    if wanted.casefold() not in ids:
        near = get_close_matches(wanted.casefold(), ids) or list(ids)
        message = f"no {folder[:-1].replace('topologie', 'topology')} {wanted!r}; nearest: {', '.join(near)}"
        raise DeviceDataError(message)
    text = _folder(folder).joinpath(f"{wanted.casefold()}.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    if document.get("format") != FORMAT:
        message = f"{folder}/{wanted}: format {document.get('format')!r}, this release reads {FORMAT}"
        raise DeviceDataError(message)
    return document
