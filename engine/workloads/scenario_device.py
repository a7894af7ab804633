"""The device table of a scenario: which device, how many, and what the scenario states of it."""

from dataclasses import replace
from pathlib import Path

from engine.core.errors import ScenarioError
from engine.core.units import NS_PER_US
from engine.devices.catalogue import device_ids, load_device, topology_of
from engine.devices.device_file import read_device
from engine.devices.spec import Constant, DeviceDataError, DeviceSpec, Provenance
from engine.workloads.block_times import CONTENTION
from engine.workloads.scenario_keys import Table


def device_of(table: Table, folder: Path) -> tuple[DeviceSpec, int, int]:
    """Returns the device of a table, how many there are, and how many of one server. Raises ScenarioError.

    ``preset`` names one of the catalogue; ``file`` a file of the user's, relative to the scenario's folder.
    """
    device = _device(table, folder)
    count = table.integer("count", 1)
    per_node = table.integer("per_node", topology_of(device).devices_per_node)
    if table.has("host_dispatch_us"):
        device = _stated(device, "host_dispatch_ns", table.number("host_dispatch_us") * NS_PER_US, "ns")
    if table.has(CONTENTION):
        device = _stated(device, CONTENTION, table.number(CONTENTION), "1")
    table.finish()
    return device, count, per_node


def _device(table: Table, folder: Path) -> DeviceSpec:
    if not table.has("file"):
        if not table.has("preset"):
            raise table.wrong("preset", "is missing")
        return load_device(table.word("preset", device_ids(), ""))
    if table.has("preset"):
        raise table.wrong("file", "and device.preset both name a device; keep one")
    try:
        return read_device(folder / table.text("file"))
    except DeviceDataError as error:
        raise ScenarioError(f"{table.path('file')}: {error}") from error


def _stated(device: DeviceSpec, name: str, value: float, unit: str) -> DeviceSpec:
    stated = Constant(value, unit, Provenance.ASSUMED, "stated by the scenario")
    return replace(device, constants={**device.constants, name: stated})
