"""Segments tiled with blocks, as an allocator is given them, from a start state."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.core.units import GIB
from engine.replay.snapshot_start import LiveBlock, Range, StartState
from engine.runtime.allocators.block_store import ALLOCATED, AWAITING, FREE, UNMAPPED
from engine.runtime.allocators.caching import SegmentBlock
from engine.runtime.allocators.caching_rules import (
    LARGE_SEGMENT_BYTES,
    SMALL_LIMIT_BYTES,
    SMALL_SEGMENT_BYTES,
    Rules,
    rounded_size,
)

RESERVATION_BYTES = 72 * GIB
"""Address space of an expandable segment on a device of 64 GiB, where the recording does not bound it."""


@dataclass(frozen=True, slots=True)
class TiledSegment:
    """Arguments of ``CachingAllocator.add_segment``. ``stream`` is the recorded stream pointer."""

    address: int
    blocks: tuple[SegmentBlock, ...]
    stream: int
    large: bool
    page_bytes: int


def tiled_segments(state: StartState, rules: Rules, block_ids: Mapping[int, int]) -> list[TiledSegment]:
    """Returns every segment and reserved range of the state, by address.

    Args:
        state: What is in use and what is reserved.
        rules: Decide the size of blocks of which only the request is known.
        block_ids: Address of a live block → the id it gets.
    """
    live = sorted(state.live.values(), key=lambda block: block.address)
    segments = []
    for segment in state.segments.values():
        blocks = tuple(_tiles(segment, live, rules, block_ids))
        segments.append(TiledSegment(segment.address, blocks, segment.stream, segment.large, 0))
    segments += _reservations(state, live, rules, block_ids)
    return sorted(segments, key=lambda segment: segment.address)


def _tiles(
    segment: Range, live: Sequence[LiveBlock], rules: Rules, block_ids: Mapping[int, int]
) -> Iterator[SegmentBlock]:
    """Yields the blocks of one segment or mapped run, the free ones between the live ones included.

    A block of which only the request is known takes what is too small to have been split off after it.
    """
    end = segment.address + segment.size_bytes
    inside = _between(live, segment.address, end)
    position = segment.address
    for index, block in enumerate(inside):
        if block.address > position:
            yield SegmentBlock(block.address - position, FREE)
        limit = inside[index + 1].address if index + 1 < len(inside) else end
        size = block.size_bytes
        if size < 0:
            size = int(rounded_size(rules, block.requested_bytes))
            if segment.large and not rules.expandable and limit - block.address - size <= SMALL_LIMIT_BYTES:
                size = limit - block.address
        size = min(size, limit - block.address)
        state = AWAITING if block.awaiting else ALLOCATED
        yield SegmentBlock(size, state, block_ids[block.address], block.requested_bytes)
        position = block.address + size
    if position < end:
        yield SegmentBlock(end - position, FREE)


def _between(live: Sequence[LiveBlock], start: int, end: int) -> list[LiveBlock]:
    first = bisect_left(live, start, key=lambda block: block.address)
    last = bisect_left(live, end, key=lambda block: block.address)
    return list(live[first:last])


def _reservations(
    state: StartState, live: Sequence[LiveBlock], rules: Rules, block_ids: Mapping[int, int]
) -> Iterator[TiledSegment]:
    """Yields one reserved range per stream and pool: mapped runs, unmapped ranges between and after them."""
    groups: dict[tuple[int, bool], list[Range]] = {}
    for page in sorted(state.pages.values(), key=lambda item: item.address):
        groups.setdefault((page.stream, page.large), []).append(page)
    starts = sorted(pages[0].address for pages in groups.values())
    for (stream, large), pages in groups.items():
        start = pages[0].address
        end = min([other for other in starts if other > start], default=start + RESERVATION_BYTES)
        end = max(min(end, start + RESERVATION_BYTES), pages[-1].address + pages[-1].size_bytes)
        blocks: list[SegmentBlock] = []
        position = start
        for run in _runs(pages):
            if run.address > position:
                blocks.append(SegmentBlock(run.address - position, UNMAPPED))
            blocks += _tiles(run, live, rules, block_ids)
            position = run.address + run.size_bytes
        if position < end:
            blocks.append(SegmentBlock(end - position, UNMAPPED))
        page_bytes = LARGE_SEGMENT_BYTES if large else SMALL_SEGMENT_BYTES
        yield TiledSegment(start, tuple(blocks), stream, large, page_bytes)


def _runs(pages: Sequence[Range]) -> Iterator[Range]:
    """Yields pages in address order with neighbours joined."""
    start, size = pages[0].address, 0
    for page in pages:
        if page.address != start + size:
            yield Range(start, size, page.stream, page.large)
            start, size = page.address, 0
        size += page.size_bytes
    yield Range(start, size, pages[0].stream, pages[0].large)
