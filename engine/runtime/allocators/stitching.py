"""Virtual-memory stitching as in GMLake: free physical pages of several holes mapped into one new address range.

Small requests are cached as usual. Every larger one is rounded to pages of 2 MiB. A request looks for the tightest free
range or a cached stitched range whose pages are all free; else, from ``stitch_from_bytes`` on (at any size once the
driver refuses), the largest free ranges are stitched, and only what they lack is asked of the driver. Stitched ranges
stay cached after they are freed, so a program that repeats its sizes stops stitching after a few rounds.

Plain Python over ranges, a few µs per request: for recorded logs, not for millions of requests.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np

from engine.core.units import MIB
from engine.runtime.allocators.caching import CachingAllocator
from engine.runtime.allocators.caching_rules import SMALL_LIMIT_BYTES, CachingSettings, rounded_size, rules_of
from engine.runtime.allocators.free_pages import FreePages, PageRange
from engine.runtime.allocators.interface import (
    NO_ADDRESS,
    AllocatorRun,
    AllocatorState,
    DriverAction,
    DriverLog,
    RequestKind,
    RequestLog,
)

PAGE_BYTES = 2 * MIB
_PAGES_BASE = 1 << 46
_STITCHED_BASE = 1 << 50


@dataclass(frozen=True, slots=True)
class StitchingSettings:
    """GMLake's knobs, with the defaults of its source.

    Attributes:
        small: The caching allocator of small requests; its limit is the limit of both.
        stitch_from_bytes: Requests that are stitched before the driver is asked.
        reuse_limit: A stitched range may be reused for requests down to its size divided by this.
        stitched_limit_bytes: Address space of all stitched ranges; the least recently used free ones go first.
    """

    small: CachingSettings
    stitch_from_bytes: int = 512 * MIB
    reuse_limit: int = 10
    stitched_limit_bytes: int = 1000 << 30


@dataclass(slots=True)
class _Block:
    """A large block in use."""

    address: int
    size_bytes: int
    requested_bytes: int
    pages: tuple[PageRange, ...]
    dropped: bool = False


class StitchingAllocator:
    """GMLake's policy; see the module's description."""

    def __init__(self, settings: StitchingSettings, *, stream_count: int = 1) -> None:
        self.settings = settings
        self._small = CachingAllocator(settings.small, stream_count=stream_count)
        self._rules = rules_of(settings.small)
        self._limit = settings.small.limit_bytes
        self._free = FreePages()
        self._segments: dict[int, int] = {}
        self._stitched: dict[tuple[PageRange, ...], int] = {}
        self._live: dict[int, _Block] = {}
        self._next_page, self._next_stitched = _PAGES_BASE, _STITCHED_BASE
        self._calls: list[tuple[int, int, int, int, int]] = []
        self._request = 0

    @property
    def state(self) -> AllocatorState:
        """Totals now."""
        small, live = self._small.state, self._live.values()
        largest = self._free.by_size[-1][0] if self._free.by_size else 0
        return AllocatorState(
            allocated_bytes=small.allocated_bytes + sum(block.size_bytes for block in live if not block.dropped),
            active_bytes=small.active_bytes + sum(block.size_bytes for block in live),
            reserved_bytes=small.reserved_bytes + sum(self._segments.values()),
            requested_bytes=small.requested_bytes + sum(block.requested_bytes for block in live),
            largest_free_bytes=max(small.largest_free_bytes, largest),
        )

    def run(self, requests: RequestLog, *, stop_when_out: bool = False) -> AllocatorRun:
        """Serves the requests; see ``Allocator.run``."""
        large = self._large_rows(requests)
        allocated = np.zeros(len(requests), dtype=np.int64)
        reserved = np.zeros(len(requests), dtype=np.int64)
        address = np.full(len(requests), NO_ADDRESS, dtype=np.int64)
        self._calls = []
        in_use, served = sum(block.size_bytes for block in self._live.values() if not block.dropped), len(requests)
        kinds, ids, sizes = requests.kind.tolist(), requests.block.tolist(), requests.size_bytes.tolist()
        for row in range(len(requests)):
            self._request = row
            if large[row]:
                in_use += self._serve(kinds[row], ids[row], sizes[row])
                block = self._live.get(ids[row]) if kinds[row] == RequestKind.ALLOCATE else None
                address[row] = block.address if block is not None else NO_ADDRESS
            elif kinds[row] == RequestKind.EMPTY_CACHE:
                self._release()
            allocated[row], reserved[row] = in_use, sum(self._segments.values())
            if large[row] and kinds[row] == RequestKind.ALLOCATE and address[row] < 0 and stop_when_out:
                served = row + 1
                break
        kind = np.where(large, RequestKind.SKIP, requests.kind)[:served]
        rest = RequestLog(
            kind, requests.block[:served], requests.size_bytes[:served], requests.stream[:served], requests.tag[:served]
        )
        if self._limit is not None:
            self._small.limit_to(self._limit - int(reserved[:served].max(initial=0)))
        small = self._small.run(rest, stop_when_out=stop_when_out)
        count = small.served
        return AllocatorRun(
            address=np.where(large[:count], address[:count], small.address),
            allocated_bytes=allocated[:count] + small.allocated_bytes,
            reserved_bytes=reserved[:count] + small.reserved_bytes,
            driver=self._driver(small.driver, count),
            served=count,
        )

    def _large_rows(self, requests: RequestLog) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Returns which requests concern large blocks; follows the ids through the log."""
        sizes, inverse = np.unique(requests.size_bytes, return_inverse=True)
        rounded = np.array([rounded_size(self._rules, size) for size in sizes.tolist()], dtype=np.int64)
        above = (rounded > SMALL_LIMIT_BYTES)[inverse] if len(sizes) else np.zeros(0, dtype=bool)
        large = np.zeros(len(requests), dtype=bool)
        ids = set(self._live)
        for row, (kind, block) in enumerate(zip(requests.kind.tolist(), requests.block.tolist(), strict=True)):
            if kind == RequestKind.ALLOCATE:
                large[row] = above[row]
                ids.add(block) if above[row] else ids.discard(block)
            elif kind in (RequestKind.FREE, RequestKind.FREE_REQUESTED):
                large[row] = block in ids
            elif kind == RequestKind.MEASURE:
                large[row] = above[row]
        return large

    def _serve(self, kind: int, block_id: int, requested: int) -> int:
        """Serves one request for a large block; returns the change of the allocated bytes."""
        if kind == RequestKind.ALLOCATE:
            block = self._allocate(requested)
            if block is None:
                return 0
            self._live[block_id] = block
            return block.size_bytes
        if kind == RequestKind.MEASURE:
            size = self._rounded(requested)
            self._log(DriverAction.MEASURE, NO_ADDRESS, size, self._stranded(size))
            return 0
        known = self._live.get(block_id)
        if known is None:
            return 0
        change = 0 if known.dropped else -known.size_bytes
        known.dropped = True
        if kind == RequestKind.FREE:
            self._give_back(block_id)
        return change

    def _give_back(self, block_id: int) -> None:
        """Makes the pages of a block free."""
        for start, size in self._live.pop(block_id).pages:
            self._free.add(start, size)

    def _rounded(self, requested: int) -> int:
        return -(-(requested + self._rules.pad) // PAGE_BYTES) * PAGE_BYTES

    def _allocate(self, requested: int) -> _Block | None:
        size = self._rounded(requested)
        found = self._fitting(size)
        if found is None and size >= self.settings.stitch_from_bytes:
            found = self._stitch(size)
        if found is None:
            found = self._segment(size)
        if found is None:
            found = self._stitch(size)
        if found is None:
            self._log(DriverAction.SYNCHRONIZE, NO_ADDRESS, 0, -1)
            self._small.run(_empty_cache())
            for block_id in [number for number, block in self._live.items() if block.dropped]:
                self._give_back(block_id)
            self._release()
            self._log(DriverAction.RETRY, NO_ADDRESS, size, -1)
            found = self._segment(size)
        if found is None:
            self._log(DriverAction.OUT_OF_MEMORY, NO_ADDRESS, size, self._stranded(size))
            return None
        address, pages = found
        for start, length in pages:
            self._free.take(start, length)
        return _Block(address, sum(length for _, length in pages), requested, pages)

    def _fitting(self, size: int) -> tuple[int, tuple[PageRange, ...]] | None:
        """Returns the tightest free range or free stitched range, cut to size where it is a range of pages."""
        index = bisect_left(self._free.by_size, (size, 0))
        tightest = self._free.by_size[index] if index < len(self._free.by_size) else None
        if tightest is not None and tightest[0] == size:
            return tightest[1], ((tightest[1], size),)
        limit = min(size * self.settings.reuse_limit, tightest[0] if tightest is not None else size << 20)
        best: tuple[int, tuple[PageRange, ...]] | None = None
        for pages, address in self._stitched.items():
            total = sum(length for _, length in pages)
            if size <= total <= limit and all(self._free.holds(*part) for part in pages):
                best, limit = (address, pages), total - 1
        if best is not None:
            self._stitched[best[1]] = self._stitched.pop(best[1])  # now the most recently used
            return best
        return (tightest[1], ((tightest[1], size),)) if tightest is not None else None

    def _stitch(self, size: int) -> tuple[int, tuple[PageRange, ...]] | None:
        """Returns a range over the largest free ranges and, for what they lack, new pages; None beyond the limit."""
        pages: list[PageRange] = []
        missing = size
        for length, start in reversed(self._free.by_size):
            if missing == 0:
                break
            part = min(length, missing)
            pages.append((start, part))
            missing -= part
        if missing:
            fresh = self._segment(missing)
            if fresh is None:
                return None
            pages += fresh[1]
        if len(pages) == 1:
            return pages[0][0], tuple(pages)
        address, self._next_stitched = self._next_stitched, self._next_stitched + size
        self._log(DriverAction.STITCH, address, size, -1)
        self._stitched[tuple(pages)] = address
        self._forget_stitched()
        return address, tuple(pages)

    def _forget_stitched(self) -> None:
        """Unmaps the least recently used free stitched ranges above the limit of address space."""
        total = sum(length for pages in self._stitched for _, length in pages)
        for pages in list(self._stitched)[:-1]:
            if total <= self.settings.stitched_limit_bytes:
                return
            if all(self._free.holds(*part) for part in pages):
                del self._stitched[pages]
                total -= sum(length for _, length in pages)

    def _segment(self, size: int) -> tuple[int, tuple[PageRange, ...]] | None:
        """Returns new pages from the driver, entered as free, or None where the limit forbids them."""
        reserved = sum(self._segments.values()) + self._small.state.reserved_bytes
        if self._limit is not None and reserved + size > self._limit:
            return None
        self._log(DriverAction.SEGMENT_ALLOCATE, self._next_page, size, self._stranded(size))
        start, self._next_page = self._next_page, self._next_page + size + PAGE_BYTES
        self._segments[start] = size
        self._free.add(start, size)
        return start, ((start, size),)

    def _release(self) -> None:
        """Gives back whole free segments, with the stitched ranges over them."""
        for start, size in list(self._segments.items()):
            if self._free.holds(start, size):
                self._free.take(start, size)
                del self._segments[start]
                self._log(DriverAction.SEGMENT_FREE, start, size, -1)
        held = tuple(self._segments.items())
        self._stitched = {
            pages: address
            for pages, address in self._stitched.items()
            if all(any(start <= part < start + size for start, size in held) for part, _ in pages)
        }

    def _stranded(self, size: int) -> int:
        """Returns the bytes of free ranges that are smaller than a request and not whole segments.

        Free pages can be stitched, so for requests from ``stitch_from_bytes`` on nothing is stranded.
        """
        if size >= self.settings.stitch_from_bytes:
            return 0
        return sum(
            length for length, start in self._free.by_size if length < size and self._segments.get(start) != length
        )

    def _log(self, action: DriverAction, address: int, size: int, stranded: int) -> None:
        self._calls.append((self._request, int(action), address, size, stranded))

    def _driver(self, small: DriverLog, served: int) -> DriverLog:
        """Returns the calls for large and small blocks by request."""
        own = np.array(self._calls, dtype=np.int64).reshape(-1, 5)
        own = own[own[:, 0] < served]
        names = DriverLog.__dataclass_fields__
        both = [np.concatenate((column, getattr(small, name))) for column, name in zip(own.T, names, strict=True)]
        order = np.argsort(both[0], kind="stable")
        return DriverLog(*(column[order] for column in both))


def _empty_cache() -> RequestLog:
    one = np.zeros(1, dtype=np.int64)
    return RequestLog(one + RequestKind.EMPTY_CACHE, one - 1, one, one, one)


def stitching_under(settings: StitchingSettings, limit_bytes: int | None) -> StitchingSettings:
    """Returns the policy under a limit on everything it reserves."""
    return replace(settings, small=replace(settings.small, limit_bytes=limit_bytes))
