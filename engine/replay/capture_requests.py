"""A capture's memory log as requests: the blocks it lists, and what its curve says of blocks it does not list."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.memory import main_blocks, main_curve
from engine.core.arrays import Int64Array
from engine.core.errors import MissingDataError
from engine.graph.task_graph import BufferTag
from engine.replay.allocation_edit import AllocationEdit
from engine.runtime.allocators.interface import RequestKind, RequestLog
from engine.trace.diagnostics import Diagnostic, DiagnosticLog, Severity
from engine.trace.strings import ABSENT
from engine.trace.tables import MemoryCurve
from engine.trace.trace import Trace

HOST_MEMORY = "host-memory"
"""Code of the diagnostic that says so."""
SEED_DIVISIONS = (1, 8, 64)
"""In how many equal blocks what was alive before the capture is tried: its layout is not recorded."""
_FREE_FIRST, _ALLOCATE, _FREE_NEWBORN = 0, 1, 2
"""Order of events of one ns: old blocks are freed, blocks are allocated, blocks of no lifetime are freed."""


@dataclass(frozen=True, slots=True, eq=False)
class CaptureRequests:
    """What to replay.

    Attributes:
        seed: Allocations of the blocks alive before the first row.
        requests: Everything after that.
        request_time_ns: int64, shape (requests,): when the program made each, on the trace's clock.
        seed_bytes: Sum of the seed.
        peak_row: Index in ``requests`` of the allocation that reaches the highest sum of listed blocks; −1 for none.
        recorded_peak_allocated_bytes: Of the curve; None where no totals are recorded.
        recorded_peak_reserved_bytes: Of the curve; None where no totals are recorded.
        stream_count: Streams.
        allocation_of_block: int64: block id → row of the trace's allocations, −1 for blocks the table does not list.
        diagnostics: What had to be assumed.
        recorded_first_reserved_bytes: What was reserved when the recording began; None where no totals are recorded.
    """

    seed: RequestLog
    requests: RequestLog
    request_time_ns: Int64Array
    seed_bytes: int
    peak_row: int
    recorded_peak_allocated_bytes: int | None
    recorded_peak_reserved_bytes: int | None
    stream_count: int
    allocation_of_block: Int64Array
    diagnostics: tuple[Diagnostic, ...]
    recorded_first_reserved_bytes: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Blocks of the replayed allocator. int64, shape (n,); times are ABSENT where not recorded."""

    size_bytes: Int64Array
    allocated_ns: Int64Array
    let_go_ns: Int64Array
    free_ns: Int64Array
    stream: Int64Array


def capture_requests(
    trace: Trace, pad_bytes: int, seed_parts: int = 1, edit: AllocationEdit | None = None
) -> CaptureRequests:
    """Returns the log of the framework's allocator on the device it used most.

    The table lists blocks with their rounded sizes, so what was requested is taken to be the size without the
    allocator's padding: it is rounded to the same size again. Blocks that are freed according to the curve and not
    listed were alive before the first row, with the rest of what was allocated then; how that rest was divided is
    unknown.

    Args:
        trace: A capture.
        pad_bytes: Padding of the allocator that recorded it.
        seed_parts: Blocks the rest alive before the first row is divided into.
        edit: Changes of the listed blocks; what the curve says of others is read from the recording as it is.

    Raises:
        MissingDataError: The capture lists no blocks of the framework's allocator.
    """
    curve = main_curve(trace)
    rows, device = main_blocks(trace, curve)
    if len(rows) == 0:
        raise MissingDataError("list of allocated blocks", "record with profile_memory=True")
    log = DiagnosticLog()
    listed, stream_count = _listed(trace, rows)
    unlisted, first_bytes = _unlisted(listed, curve, log)
    rest = first_bytes - _older_bytes(listed) - _older_bytes(unlisted)
    _note_assumptions(log, rest, device)
    if edit is not None:
        listed, rows = _edited(listed, rows, edit)
    blocks = _joined(_parts(max(rest, 0), seed_parts), unlisted, listed)
    requested = np.maximum(blocks.size_bytes - pad_bytes, 1)
    requests, request_time_ns = _in_time_order(blocks, requested)
    return CaptureRequests(
        seed=_seed(blocks, requested),
        requests=requests,
        request_time_ns=request_time_ns,
        seed_bytes=_older_bytes(blocks),
        peak_row=_peak_row(requests, blocks.size_bytes),
        recorded_peak_allocated_bytes=_peak(curve.allocated_bytes) if curve is not None else None,
        recorded_peak_reserved_bytes=_peak(curve.reserved_bytes) if curve is not None else None,
        stream_count=stream_count,
        allocation_of_block=np.concatenate((np.full(len(blocks.size_bytes) - len(rows), ABSENT), rows)),
        diagnostics=log.diagnostics(),
        recorded_first_reserved_bytes=_peak(curve.reserved_bytes[:1]) if curve is not None else None,
    )


def _older_bytes(blocks: _Blocks) -> int:
    """Returns what was alive before the first row."""
    return int(blocks.size_bytes[blocks.allocated_ns == ABSENT].sum())


def _note_assumptions(log: DiagnosticLog, rest_bytes: int, device: int) -> None:
    """Counts what the recording does not say; ``rest_bytes``: alive before the first row in blocks nobody frees."""
    log.add(
        "seed-layout-unknown",
        Severity.NOTICE,
        "memory was allocated before the first row; where its blocks lay is not recorded",
        count=int(rest_bytes > 0),
    )
    log.add(
        HOST_MEMORY,
        Severity.NOTICE,
        "the blocks are of host memory, which no device's allocator served: policies show what they would have done",
        count=int(device < 0),
    )


def _seed(blocks: _Blocks, requested: Int64Array) -> RequestLog:
    """Returns allocations of the blocks alive before the first row."""
    seeded = np.flatnonzero(blocks.allocated_ns == ABSENT)
    persistent = np.full(len(seeded), BufferTag.PERSISTENT, dtype=np.int64)
    kinds = np.full(len(seeded), RequestKind.ALLOCATE, dtype=np.int64)
    return RequestLog(kinds, seeded, requested[seeded], blocks.stream[seeded], persistent)


def _listed(trace: Trace, rows: Int64Array) -> tuple[_Blocks, int]:
    """Returns the listed blocks and the number of streams.

    The framework lets go of a block at ``freed_at``; at ``released_at`` it may be used again. A release a few µs
    before the free is the ordinary case of one free, written by two threads.
    """
    table = trace.memory.allocations
    freed, released = table.freed_at_ns[rows], table.released_at_ns[rows]
    free_ns = np.where(released != ABSENT, released, freed)
    let_go_ns = np.where((freed != ABSENT) & (freed < free_ns), freed, free_ns)
    streams, number = np.unique(table.stream[rows], return_inverse=True)
    blocks = _Blocks(
        size_bytes=table.size_bytes[rows],
        allocated_ns=table.allocated_at_ns[rows],
        let_go_ns=let_go_ns,
        free_ns=free_ns,
        stream=number.astype(np.int64),
    )
    return blocks, len(streams)


def _unlisted(listed: _Blocks, curve: MemoryCurve | None, log: DiagnosticLog) -> tuple[_Blocks, int]:
    """Returns the blocks only the curve knows of, and what was allocated before the first event."""
    if curve is None or not np.any(curve.allocated_bytes >= 0):
        return _no_blocks(), 0
    known = curve.allocated_bytes >= 0
    time_ns, total = curve.time_ns[known], curve.allocated_bytes[known]
    moments, last = np.unique(time_ns[::-1], return_index=True)
    totals = total[::-1][last]
    change = np.zeros(len(moments), dtype=np.int64)
    for column, sign in ((listed.allocated_ns, 1), (listed.let_go_ns, -1)):
        at = np.searchsorted(moments, column)
        hit = (column != ABSENT) & (at < len(moments)) & (moments[np.minimum(at, len(moments) - 1)] == column)
        np.add.at(change, at[hit], sign * listed.size_bytes[hit])
    first_bytes = int(totals[0] - change[0])
    surplus = np.diff(totals, prepend=first_bytes) - change
    return _matched_surplus(moments, surplus, log), first_bytes


def _matched_surplus(moments: Int64Array, surplus: Int64Array, log: DiagnosticLog) -> _Blocks:
    """Returns blocks for rises and drops of the curve that no listed block explains.

    A drop frees the latest unlisted block of the same size, else one that was alive before the first row. A loop over
    unlisted changes, of which there are few.
    """
    rows: list[list[int]] = []
    alive: dict[int, list[int]] = {}
    older = 0
    for index in np.flatnonzero(surplus).tolist():
        size, moment = int(surplus[index]), int(moments[index])
        if size > 0:
            alive.setdefault(size, []).append(len(rows))
            rows.append([size, moment, ABSENT])
        elif alive.get(-size):
            rows[alive[-size].pop()][2] = moment
        else:
            older += 1
            rows.append([-size, ABSENT, moment])
    log.add(
        "free-of-unlisted-block",
        Severity.NOTICE,
        "the curve drops where no listed block is freed: blocks allocated before the first row",
        count=older,
    )
    log.add(
        "unlisted-allocation",
        Severity.NOTICE,
        "the curve rises where no listed block is allocated",
        count=len(rows) - older,
    )
    size_bytes, allocated_ns, free_ns = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    return _Blocks(size_bytes, allocated_ns, free_ns, free_ns, np.zeros(len(rows), dtype=np.int64))


def _no_blocks() -> _Blocks:
    empty = np.empty(0, dtype=np.int64)
    return _Blocks(empty, empty, empty, empty, empty)


def _parts(total_bytes: int, count: int) -> _Blocks:
    """Returns blocks that are never freed and sum up to the total, of equal size but for the last."""
    if total_bytes == 0:
        return _no_blocks()
    part = max(total_bytes // count // 512 * 512, 512)
    whole = min(count, total_bytes // part)
    sizes = np.full(max(whole, 1), part, dtype=np.int64)
    sizes[-1] += total_bytes - int(sizes.sum())
    absent = np.full(len(sizes), ABSENT, dtype=np.int64)
    return _Blocks(sizes, absent, absent, absent, np.zeros(len(sizes), dtype=np.int64))


def _joined(*parts: _Blocks) -> _Blocks:
    names = _Blocks.__dataclass_fields__
    return _Blocks(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _edited(listed: _Blocks, rows: Int64Array, edit: AllocationEdit) -> tuple[_Blocks, Int64Array]:
    """Returns the listed blocks that are still allocated, with their new sizes and ends, and their rows."""
    size_bytes, freed_ns = edit.size_bytes[rows], edit.freed_at_ns[rows]
    kept = np.flatnonzero(size_bytes > 0)
    moved = freed_ns[kept] != listed.free_ns[kept]
    blocks = _Blocks(
        size_bytes=size_bytes[kept],
        allocated_ns=listed.allocated_ns[kept],
        let_go_ns=np.where(moved, freed_ns[kept], listed.let_go_ns[kept]),
        free_ns=freed_ns[kept],
        stream=listed.stream[kept],
    )
    return blocks, rows[kept]


def _in_time_order(blocks: _Blocks, requested: Int64Array) -> tuple[RequestLog, Int64Array]:
    """Returns allocations, drops and frees by time, and when; what is never freed is tagged as long-lived."""
    born = np.flatnonzero(blocks.allocated_ns != ABSENT)
    dropped = np.flatnonzero((blocks.let_go_ns != ABSENT) & (blocks.let_go_ns < blocks.free_ns))
    freed = np.flatnonzero(blocks.free_ns != ABSENT)
    block = np.concatenate((born, dropped, freed))
    time_ns = np.concatenate((blocks.allocated_ns[born], blocks.let_go_ns[dropped], blocks.free_ns[freed]))
    kind = np.repeat(
        np.array([RequestKind.ALLOCATE, RequestKind.FREE_REQUESTED, RequestKind.FREE], dtype=np.int64),
        (len(born), len(dropped), len(freed)),
    )
    newborn = time_ns == blocks.allocated_ns[block]
    rank = np.where(kind == RequestKind.ALLOCATE, _ALLOCATE, np.where(newborn, _FREE_NEWBORN, _FREE_FIRST))
    order = np.lexsort((kind == RequestKind.FREE, rank, time_ns))
    kind, block = kind[order], block[order]
    size = np.where(kind == RequestKind.ALLOCATE, requested[block], 0)
    tag = np.where(blocks.free_ns == ABSENT, BufferTag.LONG_LIVED, BufferTag.STEP).astype(np.int64)
    return RequestLog(kind, block, size, blocks.stream[block], tag[block]), time_ns[order]


def _peak_row(requests: RequestLog, size_bytes: Int64Array) -> int:
    sign = np.zeros(len(RequestKind), dtype=np.int64)
    sign[RequestKind.ALLOCATE], sign[RequestKind.FREE] = 1, -1
    total = np.cumsum(sign[requests.kind] * size_bytes[requests.block])
    row = int(np.argmax(total)) if len(total) else -1
    return row if row >= 0 and requests.kind[row] == RequestKind.ALLOCATE else -1


def _peak(column: Int64Array) -> int | None:
    highest = int(column.max(initial=-1))
    return highest if highest >= 0 else None
