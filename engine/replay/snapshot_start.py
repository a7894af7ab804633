"""The state a snapshot's log began with: the final segments with the log undone, event by event, backwards."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.formats.snapshots.allocator_snapshot import (
    AllocatorSnapshot,
    BlockState,
    SnapshotAction,
    SnapshotLog,
    SnapshotSegment,
)
from engine.runtime.allocators.caching_rules import (
    LARGE_SEGMENT_BYTES,
    SMALL_SEGMENT_BYTES,
)


@dataclass(slots=True)
class LiveBlock:
    """A block in use. ``size_bytes`` is −1 where the log tells only what was requested."""

    address: int
    size_bytes: int
    requested_bytes: int
    awaiting: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """A segment, or a page of an expandable segment."""

    address: int
    size_bytes: int
    stream: int
    large: bool


@dataclass(slots=True)
class StartState:
    """What existed before the first event of a device's log.

    Attributes:
        live: Address → block in use.
        segments: Address → ordinary segment.
        pages: Address → mapped page of an expandable segment.
        errors: What of the log contradicts the final segments: kind → events.
    """

    live: dict[int, LiveBlock] = field(default_factory=dict)
    segments: dict[int, Range] = field(default_factory=dict)
    pages: dict[int, Range] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def reserved_bytes(self) -> int:
        """Sum of segments and pages."""
        return sum(item.size_bytes for item in (*self.segments.values(), *self.pages.values()))

    @property
    def requested_bytes(self) -> int:
        """Sum of what was requested for the blocks in use."""
        return sum(block.requested_bytes for block in self.live.values())


def final_state(snapshot: AllocatorSnapshot, device: int) -> StartState:
    """Returns the state at the end of the log: what the snapshot's segments say."""
    state = StartState()
    for segment in snapshot.segments:
        if segment.device != device:
            continue
        whole = Range(segment.address, segment.size_bytes, segment.stream, segment.large)
        if segment.expandable:
            state.pages.update(_pages(whole))
        else:
            state.segments[segment.address] = whole
        for block in segment.blocks:
            if block.state is not BlockState.INACTIVE:
                awaiting = block.state is BlockState.AWAITING_FREE
                live = LiveBlock(block.address, block.size_bytes, block.requested_bytes, awaiting)
                state.live[block.address] = live
    return state


def start_state(snapshot: AllocatorSnapshot, device: int) -> StartState:
    """Returns the state before the first event; a plain loop, because every step depends on the one after it."""
    state = final_state(snapshot, device)
    log = snapshot.logs.get(device)
    if log is None:
        return state
    pools = _PoolFinder(snapshot, device)
    for index in range(len(log) - 1, -1, -1):
        _undo(state, log, index, pools)
    return state


class _PoolFinder:
    """Tells whether a page range belongs to a large pool: as the nearest expandable segment of its stream does."""

    def __init__(self, snapshot: AllocatorSnapshot, device: int) -> None:
        self._segments: list[SnapshotSegment] = [
            segment for segment in snapshot.segments if segment.device == device and segment.expandable
        ]

    def is_large(self, address: int, size_bytes: int, stream: int) -> bool:
        near = [segment for segment in self._segments if segment.stream == stream]
        if not near:
            return size_bytes % LARGE_SEGMENT_BYTES == 0
        return min(near, key=lambda segment: abs(segment.address - address)).large


def _undo(state: StartState, log: SnapshotLog, index: int, pools: _PoolFinder) -> None:
    action = log.action[index]
    address, size, stream = int(log.address[index]), int(log.size_bytes[index]), int(log.stream[index])
    if action == SnapshotAction.ALLOC:
        block = state.live.pop(address, None)
        if block is None or block.requested_bytes != size:
            state.errors["alloc"] += 1
    elif action == SnapshotAction.FREE_COMPLETED:
        if address in state.live:
            state.errors["free_completed"] += 1
        state.live[address] = LiveBlock(address, -1, size, awaiting=True)
    elif action == SnapshotAction.FREE_REQUESTED:
        requested = state.live.get(address)
        if requested is None:
            state.errors["free_requested"] += 1
        else:
            requested.awaiting = False
    elif action == SnapshotAction.SEGMENT_ALLOC:
        if state.segments.pop(address, None) is None:
            state.errors["segment_alloc"] += 1
    elif action == SnapshotAction.SEGMENT_FREE:
        state.segments[address] = Range(address, size, stream, size != SMALL_SEGMENT_BYTES)
    elif action == SnapshotAction.SEGMENT_MAP:
        pages = _pages(Range(address, size, stream, pools.is_large(address, size, stream)))
        missing = sum(state.pages.pop(page, None) is None for page in pages)
        if missing:
            state.errors["segment_map"] += 1
    elif action == SnapshotAction.SEGMENT_UNMAP:
        state.pages.update(_pages(Range(address, size, stream, pools.is_large(address, size, stream))))


def _pages(whole: Range) -> Mapping[int, Range]:
    page = LARGE_SEGMENT_BYTES if whole.large else SMALL_SEGMENT_BYTES
    end = whole.address + whole.size_bytes
    return {
        address: Range(address, min(page, end - address), whole.stream, whole.large)
        for address in range(whole.address, end, page)
    }
