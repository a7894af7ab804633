"""Size of the device's last-level cache: whether an intermediate ever had to reach memory.

A device that the catalogue does not know is unknown, and estimates get wider.
"""

from dataclasses import dataclass

from engine.core.units import MIB
from engine.devices.catalogue import device_named
from engine.trace.trace import TraceMetadata


@dataclass(frozen=True, slots=True)
class CacheSize:
    """A cache size with where it comes from.

    Attributes:
        bytes: The size.
        kind: How it is known: ``"spec"``, ``"measured"`` or ``"assumed"``.
        source: Where it stands.
    """

    bytes: int
    kind: str
    source: str


LARGEST_KNOWN_BYTES = 192 * MIB
"""No single die has a larger one: what exceeds it reaches memory whatever the device is."""


def cache_size(metadata: TraceMetadata) -> CacheSize | None:
    """Returns the size for the device a capture names, None where it names none we know."""
    device = device_named(f"{metadata.device or ''} {metadata.extra.get('soc_name', '')}")
    if device is None:
        return None
    constant = device.constants["l2_bytes"]
    return CacheSize(device.l2_bytes, constant.kind.value, constant.source)
