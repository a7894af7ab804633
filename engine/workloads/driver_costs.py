"""What calls of the device driver cost the host, from the data file with their provenance."""

import json
from dataclasses import dataclass
from importlib import resources

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.units import NS_PER_S
from engine.devices.spec import DeviceSpec
from engine.runtime.allocators.interface import DriverAction, DriverLog


@dataclass(frozen=True, slots=True)
class DriverCosts:
    """Host time of driver calls, ns; each waits for the device first.

    Attributes:
        by_action: ns by DriverAction.
        catch_ns: Catching an out-of-memory error in the training loop.
        compaction_bytes_per_s: Rate at which live blocks move inside HBM: each byte is read and written.
    """

    by_action: tuple[int, ...]
    catch_ns: int
    compaction_bytes_per_s: float

    def of(self, log: DriverLog) -> Int64Array:
        """Returns the cost of each call of a log, int64 ns."""
        costs = np.array(self.by_action, np.int64)[log.action]
        moved = np.where(log.action == DriverAction.COMPACT, log.size_bytes, 0)
        return costs + np.rint(moved / self.compaction_bytes_per_s * NS_PER_S).astype(np.int64)


SYNCHRONIZING = (
    DriverAction.SEGMENT_ALLOCATE,
    DriverAction.SEGMENT_FREE,
    DriverAction.MAP,
    DriverAction.UNMAP,
    DriverAction.SYNCHRONIZE,
    DriverAction.STITCH,
    DriverAction.COMPACT,
)
"""Calls for which the host waits until the device has finished everything."""
DRIVER_CALLS = (
    DriverAction.SEGMENT_ALLOCATE,
    DriverAction.SEGMENT_FREE,
    DriverAction.MAP,
    DriverAction.UNMAP,
    DriverAction.STITCH,
)
"""What counts as a call of the driver."""


CALL_NAMES = {
    DriverAction.SEGMENT_ALLOCATE: "aclrtMalloc",
    DriverAction.SEGMENT_FREE: "aclrtFree",
    DriverAction.MAP: "aclrtMapMem",
    DriverAction.UNMAP: "aclrtUnmapMem",
    DriverAction.STITCH: "aclrtMapMem",
    DriverAction.SYNCHRONIZE: "aclrtSynchronizeDevice",
    DriverAction.COMPACT: "compaction (simulator only)",
}
"""What a timeline calls them."""


def load_driver_costs(device: DeviceSpec) -> DriverCosts:
    """Returns the shipped costs of calls on a device."""
    text = resources.files("engine.devices").joinpath("data", "driver.json").read_text(encoding="utf-8")
    calls = {name: round(float(entry["value"])) for name, entry in json.loads(text)["calls"].items()}
    known = {
        DriverAction.SEGMENT_ALLOCATE: "segment_allocate_ns",
        DriverAction.SEGMENT_FREE: "segment_free_ns",
        DriverAction.MAP: "map_ns",
        DriverAction.UNMAP: "unmap_ns",
        DriverAction.STITCH: "stitch_ns",
    }
    by_action = tuple(calls[known[item]] if item in known else 0 for item in DriverAction)
    return DriverCosts(by_action, calls["catch_ns"], device.hbm_bytes_per_s / 2)
