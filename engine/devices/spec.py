"""What a device is: counts, rates and sizes, every one tagged with where it comes from.

A spec holds only what was looked up; rates that follow from other constants (peak = cores x FLOP per cycle x clock) are
computed here, so that nobody can change one without the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from engine.core.errors import EngineError


class Provenance(StrEnum):
    """How far a constant can be trusted."""

    SPEC = "spec"
    """From the vendor: a data sheet or a platform file."""
    MEASURED = "measured"
    """From a published or captured measurement."""
    ASSUMED = "assumed"
    """Nobody published it; a usual or inherited figure."""


class DType(IntEnum):
    """Element types that cost differently. Codes are stable: they are columns of operator tables."""

    FP32 = 0
    FP16 = 1
    BF16 = 2
    INT8 = 3
    INT32 = 4
    INT64 = 5
    FP8 = 6
    BOOL = 7

    @property
    def size_bytes(self) -> int:
        """Bytes of one element."""
        return _ELEMENT_BYTES[self]


_ELEMENT_BYTES = {
    DType.FP32: 4,
    DType.FP16: 2,
    DType.BF16: 2,
    DType.INT8: 1,
    DType.INT32: 4,
    DType.INT64: 8,
    DType.FP8: 1,
    DType.BOOL: 1,
}


class DeviceDataError(EngineError):
    """A device or topology file, or a name of one, that cannot be used."""


@dataclass(frozen=True, slots=True)
class Constant:
    """One number with where it comes from.

    Attributes:
        value: In ``unit``.
        unit: ``"B"``, ``"B/s"``, ``"FLOP"``, ``"FLOP/s"``, ``"Hz"``, ``"ns"`` or ``"1"``.
        kind: Specified, measured or assumed.
        source: Where it stands, or why it is assumed.
    """

    value: float
    unit: str
    kind: Provenance
    source: str


@dataclass(frozen=True, slots=True)
class FamilyParameters:
    """Constants of one family. Times at the clock and core count of the device, so they carry over to its siblings.

    Attributes:
        fixed_ns: Time of an operator that does nothing: launch, scalar prologue, tiling.
        block_cycles: Vector and attention: cycles per 64 elements (one 256-byte fp32 block) and core. Matmul: extra
            share of a tile's time where the first operand is stored transposed.
        row_cycles: Cycles per row (vector), tile (matmul) or block of queries (attention) and core.
        memory_ratio: Share of the streaming rate it reaches.
        cube_ratio: Share of the matrix rate it reaches inside a tile.
        traffic_ratio: Bytes really moved, over bytes of inputs and outputs.
        unaligned_cycles: Vector: extra cycles per row and core where rows do not start on 32 bytes. Matmul: extra
            share of the time to load such tiles.
        rows_whole: A row stays on one core (reductions), so few rows leave cores idle; else any core takes any part.
        kind: Measured where fitted, else assumed.
        source: From which rows.
    """

    fixed_ns: float
    block_cycles: float
    row_cycles: float
    memory_ratio: float
    cube_ratio: float
    traffic_ratio: float
    unaligned_cycles: float
    rows_whole: bool
    kind: Provenance
    source: str


REQUIRED_CONSTANTS = (
    "cube_core_count",
    "vector_core_count",
    "clock_hz",
    "cube_fp16_flop_per_core_cycle",
    "cube_int8_flop_per_core_cycle",
    "vector_bytes_per_core_cycle",
    "hbm_bytes",
    "hbm_usable_ratio",
    "hbm_bytes_per_s",
    "hbm_stream_ratio",
    "l2_bytes",
    "l2_read_bytes_per_core_cycle",
    "l2_write_bytes_per_core_cycle",
    "l0a_bytes",
    "l0b_bytes",
    "l0c_bytes",
    "l1_bytes",
    "unified_buffer_bytes",
    "tile_drift_ratio",
    "ddr_bytes",
    "ddr_bytes_per_s",
    "host_dispatch_ns",
    "host_launch_ns",
)


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One kind of device.

    Attributes:
        id: Catalogue id, such as ``"910b2"``.
        title: For people.
        vendor: ``"Huawei"`` or ``"NVIDIA"``.
        soc_names: What profilers call it.
        aliases: Other names in use, such as product names.
        die_count: Dies in one device; their cores and memories are added up in the constants.
        topology: Id of the topology it usually sits in.
        constants: Everything the cost model needs, by name; at least ``REQUIRED_CONSTANTS``.
        measured: Published measurements of this device that nothing is computed from; they judge the cost model.
        families: Constants of families of operators that were fitted on this very device, by family.
    """

    id: str
    title: str
    vendor: str
    soc_names: tuple[str, ...]
    aliases: tuple[str, ...]
    die_count: int
    topology: str
    constants: Mapping[str, Constant]
    measured: Mapping[str, Constant]
    families: Mapping[str, FamilyParameters] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = [name for name in REQUIRED_CONSTANTS if name not in self.constants]
        if missing:
            message = f"device {self.id} lacks {', '.join(missing)}"
            raise DeviceDataError(message)

    def value(self, name: str) -> float:
        """Returns a constant's value. Raises DeviceDataError where the device has none of that name."""
        try:
            return self.constants[name].value
        except KeyError:
            message = f"device {self.id} has no constant {name}"
            raise DeviceDataError(message) from None

    @property
    def cube_core_count(self) -> int:
        """Cores with a matrix unit (streaming multiprocessors on a GPU)."""
        return int(self.value("cube_core_count"))

    @property
    def vector_core_count(self) -> int:
        """Cores with a vector unit."""
        return int(self.value("vector_core_count"))

    @property
    def clock_hz(self) -> float:
        """Cycles per second of the cores."""
        return self.value("clock_hz")

    def supports(self, dtype: DType) -> bool:
        """Whether the matrix unit multiplies this type (910A and 310P have no bf16)."""
        return f"cube_{dtype.name.lower()}_flop_per_core_cycle" in self.constants

    def cube_flop_per_core_cycle(self, dtype: DType) -> float:
        """Returns FLOP per cycle of one matrix unit; a type it lacks is computed as fp32, else at 1/8 of fp16."""
        for name in (dtype.name.lower(), "fp32"):
            constant = self.constants.get(f"cube_{name}_flop_per_core_cycle")
            if constant is not None:
                return constant.value
        return self.value("cube_fp16_flop_per_core_cycle") / _EMULATED_FP32_SLOWDOWN

    def cube_flop_per_s(self, dtype: DType) -> float:
        """Returns the peak matrix rate: cores x FLOP per cycle x clock."""
        return self.cube_core_count * self.cube_flop_per_core_cycle(dtype) * self.clock_hz

    @property
    def vector_bytes_per_s(self) -> float:
        """Bytes of one operand all vector units take per second: lanes of fp32 = this / 4."""
        return self.vector_core_count * self.value("vector_bytes_per_core_cycle") * self.clock_hz

    @property
    def hbm_bytes(self) -> int:
        """Size of the device's memory (LPDDR on 310P)."""
        return int(self.value("hbm_bytes"))

    @property
    def hbm_usable_bytes(self) -> int:
        """What a process can allocate of it."""
        return int(self.value("hbm_bytes") * self.value("hbm_usable_ratio"))

    @property
    def hbm_bytes_per_s(self) -> float:
        """Peak rate of the device's memory, reads and writes together."""
        return self.value("hbm_bytes_per_s")

    @property
    def l2_bytes(self) -> int:
        """Size of the last-level cache."""
        return int(self.value("l2_bytes"))

    @property
    def l2_read_bytes_per_s(self) -> float:
        """Peak rate at which all cores read from the last-level cache."""
        return self.cube_core_count * self.value("l2_read_bytes_per_core_cycle") * self.clock_hz

    @property
    def ddr_bytes(self) -> int:
        """Host memory that belongs to one device."""
        return int(self.value("ddr_bytes"))

    @property
    def ddr_bytes_per_s(self) -> float:
        """Rate of that host memory; copies to the device are bound by the host link of the topology."""
        return self.value("ddr_bytes_per_s")

    @property
    def host_dispatch_ns(self) -> float:
        """Host time of one eager operator with one kernel."""
        return self.value("host_dispatch_ns")

    @property
    def host_launch_ns(self) -> float:
        """Host time of each further kernel of the same operator."""
        return self.value("host_launch_ns")


_EMULATED_FP32_SLOWDOWN = 8
"""910A and 310P multiply fp32 in several fp16 passes; the number of passes is assumed, nothing is published."""
