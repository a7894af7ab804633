"""Blocks, segments and misses of an allocator as rectangles over addresses and events."""

from dataclasses import dataclass, fields
from enum import StrEnum

from engine.core.arrays import Int64Array


class Basis(StrEnum):
    """How an address map is known."""

    MEASURED = "measured"
    """The allocator recorded it."""
    RECONSTRUCTED = "reconstructed"
    """A recorded log of sizes was served by a simulated allocator: its addresses are likely, not known."""
    SIMULATED = "simulated"
    """Everything is simulated."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockRectangles:
    """Blocks. int64 columns, shape (n,), by first event.

    Attributes:
        address: First byte.
        size_bytes: As the allocator rounded it.
        first_event: The request that allocated it, −1 for blocks that are older than the log.
        last_event: The request that freed it, the number of events where none did.
        tag: Lifetime class (``engine.graph`` buffer tag); −1 where unknown.
        label: Index into ``AddressMap.labels``, −1 where it has none.
    """

    address: Int64Array
    size_bytes: Int64Array
    first_event: Int64Array
    last_event: Int64Array
    tag: Int64Array
    label: Int64Array

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, slots=True, eq=False)
class SegmentRectangles:
    """Ranges of addresses with memory behind them. int64 columns, shape (n,), by first event.

    Attributes:
        address: First byte.
        size_bytes: Length.
        first_event: The request during which it was taken, −1 for ranges that are older than the log.
        last_event: The request during which it was given back, the number of events where it never was.
        stream: Dense number of the stream whose blocks it holds.
        group: Lifetime class with segments of its own, 0 where policies do not separate.
        is_large: 1 for the pool of large blocks, 0 for that of small ones.
    """

    address: Int64Array
    size_bytes: Int64Array
    first_event: Int64Array
    last_event: Int64Array
    stream: Int64Array
    group: Int64Array
    is_large: Int64Array

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True, slots=True, eq=False)
class Misses:
    """Allocations that no hole could serve. int64 columns, shape (n,), by event.

    Attributes:
        event: The request.
        size_bytes: What was needed, rounded as the allocator rounds.
        stream: As of segments.
        group: As of segments.
        is_large: As of segments.
        action: DriverAction that tells most: OUT_OF_MEMORY before RETRY before SEGMENT_ALLOCATE, MAP or STITCH.
        stranded_bytes: Free in partly used segments in holes smaller than the request, at that moment.
    """

    event: Int64Array
    size_bytes: Int64Array
    stream: Int64Array
    group: Int64Array
    is_large: Int64Array
    action: Int64Array
    stranded_bytes: Int64Array

    def __len__(self) -> int:
        return len(self.event)


@dataclass(frozen=True, slots=True, eq=False)
class AddressMap:
    """What an allocator did with a log of requests.

    Attributes:
        basis: How it is known.
        policy: Name of the policy, for people.
        event_count: Requests of the log.
        blocks: Blocks.
        segments: Segments, or ranges of mapped pages.
        misses: Allocations that needed the driver.
        joins_segments: Whether holes reach across neighbouring ranges (pages of one expandable segment).
        max_split_bytes: Blocks of this size and more are never split; 0 for no limit.
        labels: Names of blocks.
    """

    basis: Basis
    policy: str
    event_count: int
    blocks: BlockRectangles
    segments: SegmentRectangles
    misses: Misses
    joins_segments: bool = False
    max_split_bytes: int = 0
    labels: tuple[str, ...] = ()

    @property
    def has_classes(self) -> bool:
        """Whether tags tell blocks apart: logs of captures know of no lifetime classes."""
        known = self.blocks.tag[self.blocks.tag >= 0]
        return bool(len(known)) and bool((known != known[0]).any())


Rectangles = BlockRectangles | SegmentRectangles | Misses


def columns_of(rectangles: Rectangles) -> dict[str, Int64Array]:
    """Returns the columns by field name."""
    return {item.name: getattr(rectangles, item.name) for item in fields(rectangles)}
