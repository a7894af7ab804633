"""What the laws share: achieved rates of a device, constants per row, and how bounds combine."""

from dataclasses import dataclass, fields

import numpy as np

from engine.core.arrays import BoolArray, Float64Array
from engine.devices.spec import DeviceSpec, DType
from engine.runtime.cost.operators import Law, OperatorTable
from engine.runtime.cost.parameters import DEFAULT_ATTENTION, DEFAULT_FAMILY, DEFAULT_MATMUL, CostParameters

BLOCK_ELEMENTS = 64
"""fp32 elements of one 256-byte vector instruction."""
_STANDS_IN = {Law.VECTOR: DEFAULT_FAMILY, Law.MATMUL: DEFAULT_MATMUL, Law.ATTENTION: DEFAULT_ATTENTION}


@dataclass(frozen=True, slots=True)
class FamilyColumns:
    """``FamilyParameters`` as columns, one row per operator. Shape (n,); float64 and one bool."""

    fixed_ns: Float64Array
    block_cycles: Float64Array
    row_cycles: Float64Array
    memory_ratio: Float64Array
    cube_ratio: Float64Array
    traffic_ratio: Float64Array
    unaligned_cycles: Float64Array
    rows_whole: BoolArray

    def part(self, rows: slice) -> "FamilyColumns":
        """Returns the constants of some rows."""
        return FamilyColumns(**{item.name: getattr(self, item.name)[rows] for item in fields(self)})


def stand_in_family(law: Law) -> str:
    """Returns the family whose constants serve where an operator's own family has none."""
    return _STANDS_IN[law]


def family_columns(parameters: CostParameters, operators: OperatorTable, law: Law) -> FamilyColumns:
    """Returns the constants of every operator's family; families without get those of the law's stand-in."""
    stand_in = parameters.families[stand_in_family(law)]
    chosen = [parameters.families.get(name, stand_in) for name in operators.families]

    def column(name: str) -> Float64Array:
        values = np.array([getattr(family, name) for family in chosen], np.float64)
        return values[operators.family]

    return FamilyColumns(
        fixed_ns=column("fixed_ns"),
        block_cycles=column("block_cycles"),
        row_cycles=column("row_cycles"),
        memory_ratio=column("memory_ratio"),
        cube_ratio=column("cube_ratio"),
        traffic_ratio=column("traffic_ratio"),
        unaligned_cycles=column("unaligned_cycles"),
        rows_whole=column("rows_whole") > 0,
    )


@dataclass(frozen=True, slots=True)
class Rates:
    """A device's achieved rates, per ns.

    Attributes:
        device: The device itself.
        core_count: Cores with a matrix unit.
        vector_core_count: Cores with a vector unit.
        cycles_per_ns: Clock.
        hbm_bytes_per_ns: Streaming rate beyond the cache.
        l2_bytes_per_ns: Streaming rate of vector operators inside the cache.
        l2_bytes: Bytes that stay in the cache between operators.
        tile_bytes_per_core_cycle: Rate at which one core loads tiles of a matmul from the cache.
        tile_drift_ratio: How far cores drift apart along the summed dimension of a matmul, over its length.
        block_vector_cycles: Vector cycles this device needs for one 256-byte block, over 1 (wider units: fewer).
    """

    device: DeviceSpec
    core_count: float
    vector_core_count: float
    cycles_per_ns: float
    hbm_bytes_per_ns: float
    l2_bytes_per_ns: float
    l2_bytes: float
    tile_bytes_per_core_cycle: float
    tile_drift_ratio: float
    block_vector_cycles: float

    @classmethod
    def of(cls, device: DeviceSpec, parameters: CostParameters) -> "Rates":
        """Returns the rates of a device under the shared constants."""
        hbm = device.hbm_bytes_per_s * device.value("hbm_stream_ratio") / 1e9
        cache = device.l2_read_bytes_per_s * parameters.shared_value("l2_stream_ratio") / 1e9
        return cls(
            device=device,
            core_count=float(device.cube_core_count),
            vector_core_count=float(device.vector_core_count),
            cycles_per_ns=device.clock_hz / 1e9,
            hbm_bytes_per_ns=hbm,
            l2_bytes_per_ns=max(cache, hbm),
            l2_bytes=device.l2_bytes * parameters.shared_value("l2_resident_ratio"),
            tile_bytes_per_core_cycle=device.value("l2_read_bytes_per_core_cycle")
            * parameters.shared_value("tile_load_ratio"),
            tile_drift_ratio=device.value("tile_drift_ratio"),
            block_vector_cycles=256.0 / device.value("vector_bytes_per_core_cycle"),
        )

    def stream_ns(self, moved_bytes: Float64Array, footprint_bytes: Float64Array, cold: BoolArray) -> Float64Array:
        """Returns the time to move bytes: at the cache's rate while the footprint stays in it, at memory's beyond.

        What exceeds the cache is read from memory; the share that does grows from 0 at the cache's size to 1 at twice
        its size (a cyclic walk over more than a cache hits less and less). Cold data comes from memory.
        """
        beyond = np.where(cold, 1.0, np.clip(footprint_bytes / self.l2_bytes - 1.0, 0.0, 1.0))
        return moved_bytes * ((1.0 - beyond) / self.l2_bytes_per_ns + beyond / self.hbm_bytes_per_ns)


def combined_ns(*bounds: Float64Array) -> Float64Array:
    """Returns the time of work bound by several resources that overlap imperfectly: a soft maximum.

    (sum of b^p)^(1/p) with p = 4: equal bounds cost 19 % more than one of them, a bound of half the other 1.5 %.
    """
    largest = np.maximum.reduce(bounds)
    safe = np.maximum(largest, 1e-9)
    total = sum(((bound / safe) ** 4 for bound in bounds), start=np.zeros_like(safe))
    return np.asarray(safe * total**0.25, np.float64)


def element_bytes(operators: OperatorTable) -> Float64Array:
    """Returns float64, shape (n,): bytes of one element of each operator's type."""
    sizes = np.array([dtype.size_bytes for dtype in DType], np.float64)
    return sizes[operators.dtype]
