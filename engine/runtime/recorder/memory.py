"""What one rank's allocator did, on the run's clock."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.runtime.allocators.interface import AllocatorRun, RequestKind, RequestLog
from engine.trace.builder import TraceBuilder
from engine.trace.strings import ABSENT, StringTable
from engine.trace.tables import AllocationTable, MemoryCurve

COMPONENT = "PTA"
"""The framework's allocator, as the profiler names it."""


@dataclass(frozen=True, slots=True, eq=False)
class RankMemory:
    """Blocks by allocation time and the allocator's totals. Times are ns from the start of the run.

    Attributes:
        address: int64, shape (blocks,).
        size_bytes: int64, as the allocator rounded it.
        requested_bytes: int64.
        allocated_at_ns: int64.
        freed_at_ns: int64, −1 while alive at the end.
        released_at_ns: int64, −1 while alive at the end.
        operator: int32 string id of the graph's strings.
        stream: int32.
        curve_time_ns: int64, shape (moments,), ascending.
        curve_allocated_bytes: int64, shape (moments,).
        curve_reserved_bytes: int64, shape (moments,).
        curve_active_bytes: int64, shape (moments,).
    """

    address: Int64Array
    size_bytes: Int64Array
    requested_bytes: Int64Array
    allocated_at_ns: Int64Array
    freed_at_ns: Int64Array
    released_at_ns: Int64Array
    operator: Int32Array
    stream: Int32Array
    curve_time_ns: Int64Array
    curve_allocated_bytes: Int64Array
    curve_reserved_bytes: Int64Array
    curve_active_bytes: Int64Array


def memory_of_run(requests: RequestLog, run: AllocatorRun, time_ns: Int64Array, operator: Int32Array) -> RankMemory:
    """Returns what an allocator did with a rank's requests, once the schedule says when each was made.

    A block is freed when the program lets go of it and released when it may be used again; the totals follow from the
    blocks, so that allocated ≤ active holds at every moment. Requests the allocator could not serve leave no block.

    Args:
        requests: What the program asked for.
        run: What the allocator answered.
        time_ns: int64, shape (requests,): when each was made, run ns, ascending.
        operator: int32, shape (requests,): string id of the operator that asked, of the graph's strings.
    """
    served = slice(0, run.served)
    kind, block = requests.kind[served], requests.block[served]
    born = np.flatnonzero((kind == RequestKind.ALLOCATE) & (run.address >= 0))
    before = np.concatenate(([0], run.allocated_bytes[:-1]))
    size = (run.allocated_bytes - before)[born]
    let_go = _next_of(kind, block, born, (RequestKind.FREE_REQUESTED, RequestKind.FREE))
    free = _next_of(kind, block, born, (RequestKind.FREE,))

    def moments(rows: Int64Array) -> Int64Array:
        return np.where(rows >= 0, time_ns[rows], ABSENT)

    changes = np.zeros((2, len(kind)), dtype=np.int64)
    for row, ends in enumerate((let_go, free)):
        np.add.at(changes[row], born, size)
        np.subtract.at(changes[row], ends[ends >= 0], size[ends >= 0])
    allocated, active = np.cumsum(changes, axis=1)
    told = np.isin(kind, (RequestKind.ALLOCATE, RequestKind.FREE, RequestKind.FREE_REQUESTED, RequestKind.EMPTY_CACHE))
    return RankMemory(
        address=run.address[born],
        size_bytes=size,
        requested_bytes=requests.size_bytes[served][born],
        allocated_at_ns=time_ns[born],
        freed_at_ns=moments(let_go),
        released_at_ns=moments(free),
        operator=operator[born],
        stream=requests.stream[served][born].astype(np.int32),
        curve_time_ns=time_ns[served][told],
        curve_allocated_bytes=allocated[told],
        curve_reserved_bytes=run.reserved_bytes[told],
        curve_active_bytes=active[told],
    )


def _next_of(kind: Int64Array, block: Int64Array, born: Int64Array, wanted: tuple[RequestKind, ...]) -> Int64Array:
    """Returns the first request of a wanted kind about each block after its birth and before its id is used again.

    int64, shape of ``born``; −1 where there is none.
    """
    rows = np.flatnonzero(np.isin(kind, (RequestKind.ALLOCATE, *wanted)))
    order = rows[np.argsort(block[rows], kind="stable")]
    place = np.empty(len(kind) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    following = np.append(order[1:], ABSENT)[place[born]] if len(born) else np.empty(0, dtype=np.int64)
    found: Int64Array = np.where(
        (following >= 0) & (block[following] == block[born]) & (kind[following] != RequestKind.ALLOCATE),
        following,
        ABSENT,
    )
    return found


def add_memory(
    builder: TraceBuilder, memory: RankMemory, words: StringTable, device: int, epoch_ns: int, window: tuple[int, int]
) -> None:
    """Adds the blocks that live in a window (run ns) and the totals inside it, in absolute time.

    Blocks born before it have no birth the profiler saw; frees after it were not seen either.
    """
    first_ns, last_ns = window
    freed = np.where(memory.freed_at_ns < 0, np.iinfo(np.int64).max, memory.freed_at_ns)
    rows = np.flatnonzero((memory.allocated_at_ns >= first_ns) & (memory.allocated_at_ns < last_ns) & (freed >= 0))
    rows = rows[np.argsort(memory.allocated_at_ns[rows], kind="stable")]

    def moment(column: Int64Array) -> Int64Array:
        seen = (column[rows] >= 0) & (column[rows] < last_ns)
        return np.where(seen, column[rows] + epoch_ns, ABSENT)

    builder.allocations = AllocationTable(
        address=memory.address[rows],
        size_bytes=memory.size_bytes[rows],
        requested_bytes=memory.requested_bytes[rows],
        allocated_at_ns=memory.allocated_at_ns[rows] + epoch_ns,
        freed_at_ns=moment(memory.freed_at_ns),
        released_at_ns=moment(memory.released_at_ns),
        operator=builder.strings.intern_all(words.texts(memory.operator[rows])),
        event=np.full(len(rows), ABSENT, dtype=np.int32),
        stream=memory.stream[rows].astype(np.int64),
        device=np.full(len(rows), device, dtype=np.int32),
    )
    inside = (memory.curve_time_ns >= first_ns) & (memory.curve_time_ns < last_ns)
    builder.curves.append(
        MemoryCurve(
            component=COMPONENT,
            device=device,
            time_ns=memory.curve_time_ns[inside] + epoch_ns,
            allocated_bytes=memory.curve_allocated_bytes[inside],
            reserved_bytes=memory.curve_reserved_bytes[inside],
            active_bytes=memory.curve_active_bytes[inside],
        )
    )
