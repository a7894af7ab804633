"""Size of the device's last-level cache: whether an intermediate ever had to reach memory.

Every constant carries its source; a device that is not listed is unknown, and estimates get wider.
"""

from dataclasses import dataclass

from engine.core.units import MIB
from engine.trace.trace import TraceMetadata


@dataclass(frozen=True, slots=True)
class CacheSize:
    """A cache size with where it comes from.

    Attributes:
        bytes: The size.
        kind: ``"config"`` (the vendor's platform file) or ``"spec"`` (a data sheet).
        source: Where it stands.
    """

    bytes: int
    kind: str
    source: str


_CANN = "CANN 8.1.RC1 platform_config/{}.ini, l2_size"
_SHEET = "NVIDIA data sheet"
_L2: tuple[tuple[str, CacheSize], ...] = (
    ("910b1", CacheSize(192 * MIB, "config", _CANN.format("Ascend910B1"))),
    ("910b2", CacheSize(192 * MIB, "config", _CANN.format("Ascend910B2"))),
    ("910b3", CacheSize(192 * MIB, "config", _CANN.format("Ascend910B3"))),
    ("910b4", CacheSize(96 * MIB, "config", _CANN.format("Ascend910B4"))),
    ("910_9391", CacheSize(192 * MIB, "config", _CANN.format("Ascend910_9391"))),
    ("910_9362", CacheSize(168 * MIB, "config", _CANN.format("Ascend910_9362"))),
    ("310p3", CacheSize(16 * MIB, "config", _CANN.format("Ascend310P3"))),
    ("a100", CacheSize(40 * MIB, "spec", _SHEET)),
    ("h100", CacheSize(50 * MIB, "spec", _SHEET)),
)
LARGEST_KNOWN_BYTES = 192 * MIB
"""No listed device has a larger one: what exceeds it reaches memory whatever the device is."""


def cache_size(metadata: TraceMetadata) -> CacheSize | None:
    """Returns the size for the device a capture names, None where it names none we know."""
    named = " ".join((metadata.device or "", str(metadata.extra.get("soc_name", "")))).casefold()
    return next((size for key, size in _L2 if key in named), None)
