"""The caching allocators: torch_npu's, PyTorch CUDA's, with expandable segments or without."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.units import GIB
from engine.runtime.allocators import block_store
from engine.runtime.allocators.block_store import (
    ACTIVE_BYTES,
    ALLOCATED,
    ALLOCATED_BYTES,
    DIVERGED,
    DRIVER_ROWS,
    FREE,
    NEXT_ADDRESS,
    NONE,
    REQUESTED_BYTES,
    RESERVED_BYTES,
    ROWS_USED,
    UNMAPPED,
    Blocks,
)
from engine.runtime.allocators.caching_kernel import serve
from engine.runtime.allocators.caching_rules import NPU_BASE_ALIGNMENT_BYTES, NPU_PAD_BYTES, CachingSettings, rules_of
from engine.runtime.allocators.interface import AllocatorRun, AllocatorState, DriverLog, RequestKind, RequestLog
from engine.runtime.allocators.stranded import largest_free_bytes

_OWN_ADDRESSES_FROM = 1 << 44
"""Where simulated driver addresses begin: like real device addresses, far from 0."""
_FIRST_CAPACITY = 1024

CACHING = CachingSettings(pad_bytes=NPU_PAD_BYTES)
CACHING_CUDA = CachingSettings(pad_bytes=0)
EXPANDABLE = CachingSettings(
    pad_bytes=NPU_PAD_BYTES, expandable_segments=True, base_alignment_bytes=NPU_BASE_ALIGNMENT_BYTES
)
EXPANDABLE_CUDA = CachingSettings(pad_bytes=0, expandable_segments=True)


@dataclass(frozen=True, slots=True, eq=False)
class BlockLayout:
    """Every block of every segment, by address. Columns of shape (n,).

    Attributes:
        address: int64.
        size_bytes: int64.
        requested_bytes: int64, of allocated blocks; 0 elsewhere.
        state: int64, FREE, ALLOCATED, AWAITING or UNMAPPED of ``block_store``.
        starts_segment: bool, the first block of a segment or reserved range.
        arena: int64, see ``block_store``.
        block: int64, the caller's id of the block it is or last was, −1 where it had none.
    """

    address: Int64Array
    size_bytes: Int64Array
    requested_bytes: Int64Array
    state: Int64Array
    starts_segment: np.ndarray[tuple[int], np.dtype[np.bool_]]
    arena: Int64Array
    block: Int64Array


@dataclass(frozen=True, slots=True)
class SegmentBlock:
    """A block of a segment that exists before the first request; ``block`` is the caller's id, −1 where free.

    ``state`` is FREE, ALLOCATED, AWAITING or UNMAPPED of ``block_store``.
    """

    size_bytes: int
    state: int
    block: int = NONE
    requested_bytes: int = 0


class CachingAllocator:
    """Best fit over cached segments, address-exact.

    Args:
        settings: Policy.
        stream_count: Streams that allocate.
        class_of_tag: Tag of a request → lifetime class; every class has segments of its own. () for one class.
        recorded: (address, size) of every segment allocation or mapping of a recorded run, to be answered by the
            driver as long as it is asked for the same; afterwards, and without a recording, addresses are made up.
    """

    def __init__(
        self,
        settings: CachingSettings,
        *,
        stream_count: int = 1,
        class_of_tag: Sequence[int] = (),
        recorded: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.settings = settings
        self._rules = rules_of(settings)
        self._stream_count = stream_count
        self._class_of_tag = np.asarray(class_of_tag or (0,), dtype=np.int64)
        arena_count = 2 * stream_count * (int(self._class_of_tag.max()) + 1)
        self._recorded = np.asarray(recorded, dtype=np.int64).reshape(-1, 2)
        self._blocks = block_store.new_blocks(arena_count, _FIRST_CAPACITY)
        self._row_of = np.full(_FIRST_CAPACITY, NONE, dtype=np.int64)
        highest = int(self._recorded[:, 0].max(initial=0))
        self._blocks.totals[NEXT_ADDRESS] = max(_OWN_ADDRESSES_FROM, _beyond(highest))

    @property
    def state(self) -> AllocatorState:
        """Totals now."""
        totals = self._blocks.totals
        return AllocatorState(
            allocated_bytes=int(totals[ALLOCATED_BYTES]),
            active_bytes=int(totals[ACTIVE_BYTES]),
            reserved_bytes=int(totals[RESERVED_BYTES]),
            requested_bytes=int(totals[REQUESTED_BYTES]),
            largest_free_bytes=int(largest_free_bytes(self._blocks)),
        )

    @property
    def stream_count(self) -> int:
        """Streams that allocate."""
        return self._stream_count

    @property
    def class_of_tag(self) -> Int64Array:
        """int64: tag of a request → lifetime class with segments of its own."""
        return self._class_of_tag

    @property
    def follows_recording(self) -> bool:
        """Whether the driver has been asked for exactly what was recorded so far."""
        return not self._blocks.totals[DIVERGED]

    def run(self, requests: RequestLog, *, stop_when_out: bool = False) -> AllocatorRun:
        """Serves the requests; see ``Allocator.run``."""
        count = len(requests)
        self._make_room_for(requests)
        group = self._class_of_tag[np.minimum(requests.tag, len(self._class_of_tag) - 1)]
        arena = 2 * (group * self._stream_count + requests.stream)
        columns = (requests.kind, requests.block, requests.size_bytes, arena)
        results = tuple(np.zeros(count, dtype=np.int64) for _ in range(3))
        served, out = 0, False
        while served < count and not (out and stop_when_out):
            served, out = serve(
                self._blocks, self._rules, self._recorded, self._row_of, columns, results, served, stop_when_out
            )
            if served < count and not out:
                self._blocks = block_store.grown(self._blocks)
        driver = self._blocks.driver[: self._blocks.totals[DRIVER_ROWS]].T.copy()
        self._blocks.totals[DRIVER_ROWS] = 0
        address, allocated, reserved = (column[:served] for column in results)
        return AllocatorRun(address, allocated, reserved, DriverLog(*driver), served)

    def limit_to(self, limit_bytes: int | None) -> None:
        """Changes what may be reserved from the next request on."""
        self.settings = replace(self.settings, limit_bytes=limit_bytes)
        self._rules = rules_of(self.settings)

    def _make_room_for(self, requests: RequestLog) -> None:
        highest = int(requests.block.max(initial=-1))
        missing = highest + 1 - len(self._row_of)
        if missing > 0:
            self._row_of = np.concatenate((self._row_of, np.full(missing, NONE, dtype=np.int64)))

    def add_segment(
        self, address: int, blocks: Sequence[SegmentBlock], *, stream: int, large: bool, page_bytes: int = 0
    ) -> None:
        """Puts a segment with its blocks, in address order, into the store: the state a recording began with.

        Args:
            address: First byte.
            blocks: Tile the segment.
            stream: Dense stream number.
            large: Whether it belongs to the large pool.
            page_bytes: Of an expandable segment's reserved range, 0 for an ordinary segment.
        """
        previous = NONE
        arena, origin = 2 * stream + int(large), address
        for item in blocks:
            while not block_store.has_room(self._blocks):
                self._blocks = block_store.grown(self._blocks)
            row = block_store.new_row(self._blocks, address, item.size_bytes, arena, page_bytes, item.state)
            self._blocks.origin[row] = origin
            if previous != NONE:
                block_store.link_after(self._blocks, previous, row)
            self._enter(row, item)
            previous, address = row, address + item.size_bytes
        totals = self._blocks.totals
        totals[NEXT_ADDRESS] = max(int(totals[NEXT_ADDRESS]), _beyond(address))

    def _enter(self, row: int, item: SegmentBlock) -> None:
        totals = self._blocks.totals
        if item.state == UNMAPPED:
            block_store.enter_unmapped(self._blocks, row)
            return
        totals[RESERVED_BYTES] += item.size_bytes
        if item.state == FREE:
            block_store.enter_free(self._blocks, row)
            return
        self._blocks.requested[row] = item.requested_bytes
        self._blocks.owner[row] = item.block
        totals[ACTIVE_BYTES] += item.size_bytes
        totals[ALLOCATED_BYTES] += item.size_bytes if item.state == ALLOCATED else 0
        totals[REQUESTED_BYTES] += item.requested_bytes
        if item.block >= len(self._row_of):
            more = np.full(item.block + 1, NONE, dtype=np.int64)
            self._row_of = np.concatenate((self._row_of, more))
        self._row_of[item.block] = row

    def layout(self) -> BlockLayout:
        """Returns a copy of every block as it is now."""
        return _layout(self._blocks)


def _layout(blocks: Blocks) -> BlockLayout:
    used = np.flatnonzero(blocks.state[: blocks.totals[ROWS_USED]] != block_store.UNUSED)
    rows = used[np.argsort(blocks.address[used], kind="stable")]
    taken = (blocks.state[rows] != FREE) & (blocks.state[rows] != UNMAPPED)
    return BlockLayout(
        address=blocks.address[rows],
        size_bytes=blocks.size[rows],
        requested_bytes=np.where(taken, blocks.requested[rows], 0),
        state=blocks.state[rows],
        starts_segment=blocks.previous[rows] == NONE,
        arena=blocks.arena[rows],
        block=blocks.owner[rows],
    )


def _beyond(address: int) -> int:
    """Returns the first GiB boundary above an address."""
    return (address // GIB + 1) * GIB


def with_limit(settings: CachingSettings, limit_bytes: int | None) -> CachingSettings:
    """Returns the policy under a limit."""
    return replace(settings, limit_bytes=limit_bytes)


__all__ = [
    "CACHING",
    "CACHING_CUDA",
    "EXPANDABLE",
    "EXPANDABLE_CUDA",
    "BlockLayout",
    "CachingAllocator",
    "RequestKind",
    "SegmentBlock",
    "with_limit",
]
