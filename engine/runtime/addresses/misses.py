"""Why an allocation found no hole: which rule refuses each of the largest ones, and what pins their segments."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from engine.core.arrays import Int64Array
from engine.runtime.addresses.address_map import AddressMap

HOLES_SHOWN = 10
PINS_SHOWN = 3


class Refusal(StrEnum):
    """The rule that keeps a request out of a hole."""

    TOO_SMALL = "too_small"
    OTHER_POOL = "other_pool"
    """Small blocks and large blocks have segments of their own."""
    OTHER_STREAM = "other_stream"
    OTHER_CLASS = "other_class"
    """Lifetime classes have segments of their own."""
    NOT_SPLIT = "not_split"
    """``max_split_size``: so large a block is not cut for so small a request."""
    RELEASED_FIRST = "released_first"
    """Large enough as it stood; the allocator gave it back or joined it during the request itself."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A block that keeps a segment from being given back.

    Attributes:
        block: Row of ``AddressMap.blocks``.
        size_bytes: Its size.
        age_events: Requests since it was allocated; None for blocks older than the log.
    """

    block: int
    size_bytes: int
    age_events: int | None


@dataclass(frozen=True, slots=True)
class Hole:
    """A free range at the moment of a miss.

    Attributes:
        address: First byte.
        size_bytes: Length.
        refusal: Why it was not used.
        segment_address: First byte of its segment.
        segment_bytes: Length of the segment.
        pin_count: Blocks in the segment.
        pins: The oldest of them.
    """

    address: int
    size_bytes: int
    refusal: Refusal
    segment_address: int
    segment_bytes: int
    pin_count: int
    pins: tuple[Pin, ...]


@dataclass(frozen=True, slots=True)
class MissReport:
    """Everything about one miss.

    Attributes:
        event: The request.
        size_bytes: What was needed.
        stream: Of the request.
        is_large: Whether the pool of large blocks serves it.
        free_bytes: Sum of all holes.
        largest_bytes: The largest hole of any pool.
        largest_usable_bytes: The largest hole of the request's own pool.
        hole_count: Number of holes.
        holes: The largest ones.
    """

    event: int
    size_bytes: int
    stream: int
    is_large: bool
    free_bytes: int
    largest_bytes: int
    largest_usable_bytes: int
    hole_count: int
    holes: tuple[Hole, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Ranges:
    """Segments at a moment, by address. int64, shape (n,)."""

    start: Int64Array
    end: Int64Array
    stream: Int64Array
    group: Int64Array
    is_large: Int64Array


def miss_report(mapped: AddressMap, miss: int) -> MissReport:
    """Returns why a request found no hole, as things stood just before it.

    Args:
        mapped: The address map.
        miss: Row of its misses.
    """
    misses, blocks = mapped.misses, mapped.blocks
    event = int(misses.event[miss])
    ranges = _ranges_at(mapped, event)
    alive = np.flatnonzero((blocks.first_event < event) & (blocks.last_event >= event))
    alive = alive[np.argsort(blocks.address[alive], kind="stable")]
    start, size, owner = _holes(ranges, blocks.address[alive], blocks.size_bytes[alive])
    own = (
        (ranges.stream == misses.stream[miss])
        & (ranges.group == misses.group[miss])
        & (ranges.is_large == misses.is_large[miss])
    )
    order = np.lexsort((start, -size))[:HOLES_SHOWN]
    return MissReport(
        event=event,
        size_bytes=int(misses.size_bytes[miss]),
        stream=int(misses.stream[miss]),
        is_large=bool(misses.is_large[miss]),
        free_bytes=int(size.sum()),
        largest_bytes=int(size.max(initial=0)),
        largest_usable_bytes=int(size[own[owner]].max(initial=0)),
        hole_count=len(size),
        holes=tuple(
            _hole(mapped, miss, ranges, int(owner[row]), int(start[row]), int(size[row]), alive)
            for row in order.tolist()
        ),
    )


def _ranges_at(mapped: AddressMap, event: int) -> _Ranges:
    """Returns the segments just before an event; neighbouring ranges of one expandable segment are one."""
    segments = mapped.segments
    rows = np.flatnonzero((segments.first_event < event) & (segments.last_event >= event))
    rows = rows[np.argsort(segments.address[rows], kind="stable")]
    start = segments.address[rows]
    end = start + segments.size_bytes[rows]
    pools = (segments.stream[rows], segments.group[rows], segments.is_large[rows])
    if mapped.joins_segments and len(rows):
        begins = np.concatenate(([True], start[1:] != end[:-1]))
        for pool in pools:
            begins[1:] |= pool[1:] != pool[:-1]
        first = np.flatnonzero(begins)
        last = np.concatenate((first[1:], [len(rows)])) - 1
        start, end, pools = start[first], end[last], (pools[0][first], pools[1][first], pools[2][first])
    return _Ranges(start, end, *pools)


def _holes(ranges: _Ranges, address: Int64Array, size: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns start, size and range of every free stretch; blocks are sorted by address and lie inside ranges."""
    owner = np.searchsorted(ranges.start, address, side="right") - 1
    # A hole begins where a range or a block ends its predecessor, and ends where the next block or the range does.
    starts = np.concatenate((ranges.start, address + size))
    of = np.concatenate((np.arange(len(ranges.start)), owner))
    order = np.lexsort((starts, of))
    starts, of = starts[order], of[order]
    following = np.searchsorted(address, starts, side="left")
    next_block = np.append(address, np.iinfo(np.int64).max)[following]
    ends = np.minimum(next_block, ranges.end[of]) if len(of) else starts
    length = ends - starts
    real = length > 0
    return starts[real], length[real], of[real]


def _hole(
    mapped: AddressMap, miss: int, ranges: _Ranges, owner: int, address: int, size_bytes: int, alive: Int64Array
) -> Hole:
    blocks = mapped.blocks
    first, end = int(ranges.start[owner]), int(ranges.end[owner])
    begin, stop = np.searchsorted(blocks.address[alive], (first, end))
    inside = alive[begin:stop]
    oldest = inside[np.argsort(blocks.first_event[inside], kind="stable")][:PINS_SHOWN]
    event = int(mapped.misses.event[miss])
    pins = tuple(
        Pin(row, int(blocks.size_bytes[row]), event - born if (born := int(blocks.first_event[row])) >= 0 else None)
        for row in oldest.tolist()
    )
    refusal = _refusal(mapped, miss, ranges, owner, size_bytes)
    return Hole(address, size_bytes, refusal, first, end - first, len(inside), pins)


def _refusal(mapped: AddressMap, miss: int, ranges: _Ranges, owner: int, size_bytes: int) -> Refusal:
    misses = mapped.misses
    needed = int(misses.size_bytes[miss])
    if ranges.is_large[owner] != misses.is_large[miss]:
        return Refusal.OTHER_POOL
    if ranges.stream[owner] != misses.stream[miss]:
        return Refusal.OTHER_STREAM
    if ranges.group[owner] != misses.group[miss]:
        return Refusal.OTHER_CLASS
    if size_bytes < needed:
        return Refusal.TOO_SMALL
    limit = mapped.max_split_bytes
    return Refusal.NOT_SPLIT if limit and size_bytes >= limit else Refusal.RELEASED_FIRST
