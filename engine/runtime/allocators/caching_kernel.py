"""The caching allocators' request loop: torch_npu's and PyTorch CUDA's rules over one block store."""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202

from engine.runtime.allocators.best_fit import cut_to_size, take_best_fit
from engine.runtime.allocators.block_store import (
    ACTIVE_BYTES,
    ALLOCATED,
    ALLOCATED_BYTES,
    AWAITING,
    FREE,
    NONE,
    REQUEST,
    REQUESTED_BYTES,
    RESERVED_BYTES,
    ROWS_USED,
    SMALL_SEARCHES,
    SYNCHRONIZATIONS,
    absorb,
    enter_free,
    has_room,
    log_call,
)
from engine.runtime.allocators.cache_release import collect_garbage, release_cache, release_for
from engine.runtime.allocators.caching_rules import SMALL_LIMIT_BYTES, UNLIMITED, rounded_size
from engine.runtime.allocators.compaction import compact
from engine.runtime.allocators.compiled import compiled
from engine.runtime.allocators.driver_memory import mapped_block, new_segment
from engine.runtime.allocators.interface import DriverAction, RequestKind
from engine.runtime.allocators.stranded import releasable_bytes, stranded_bytes

_ALLOCATE, _FREE, _FREE_REQUESTED = int(RequestKind.ALLOCATE), int(RequestKind.FREE), int(RequestKind.FREE_REQUESTED)
_EMPTY_CACHE, _SYNCHRONIZE = int(RequestKind.EMPTY_CACHE), int(RequestKind.SYNCHRONIZE)
_MEASURE, _MEASURED = int(RequestKind.MEASURE), int(DriverAction.MEASURE)
_DEVICE_SYNCHRONIZE, _RETRY = int(DriverAction.SYNCHRONIZE), int(DriverAction.RETRY)
_OUT_OF_MEMORY = int(DriverAction.OUT_OF_MEMORY)


@compiled
def serve(blocks, rules, recorded, row_of, requests, results, start, stop_when_out):
    """Serves requests from ``start``; returns the index of the first one not served and whether memory ran out.

    Stops early where the store must grow first (``has_room``) or, with ``stop_when_out``, after a failed allocation.

    Args:
        blocks: The store.
        rules: ``Rules``.
        recorded: int64, shape (calls, 2): addresses and sizes a recorded driver answered with; shape (0, 2) for none.
        row_of: int64: caller's block id → row, −1 for none.
        requests: (kind, block, size, arena of the small pool), int64 columns.
        results: (address, allocated, reserved), int64 columns to fill.
        start: First request to serve.
        stop_when_out: Stop after a failure.
    """
    kinds, ids, sizes, arenas = requests
    addresses, allocated, reserved = results
    for index in range(start, len(kinds)):
        if not has_room(blocks):
            return index, False
        blocks.totals[REQUEST] = index
        kind = kinds[index]
        out = False
        addresses[index] = NONE
        if kind == _ALLOCATE:
            row = allocate(blocks, rules, recorded, row_of, sizes[index], arenas[index])
            row_of[ids[index]] = row
            out = row == NONE
            if not out:
                blocks.owner[row] = ids[index]
                addresses[index] = blocks.address[row]
        elif kind == _FREE:
            row = row_of[ids[index]]
            row_of[ids[index]] = NONE
            # −1: never got memory, or a retry has completed its awaited free already.
            if row != NONE:
                free(blocks, row)
        elif kind == _FREE_REQUESTED:
            row = row_of[ids[index]]
            if row != NONE:
                await_free(blocks, row)
        elif kind == _EMPTY_CACHE:
            release_cache(blocks)
        elif kind == _SYNCHRONIZE:
            synchronized(blocks, rules)
        elif kind == _MEASURE:
            log_call(blocks, _MEASURED, NONE, sizes[index], stranded_bytes(blocks, rounded_size(rules, sizes[index])))
        allocated[index] = blocks.totals[ALLOCATED_BYTES]
        reserved[index] = blocks.totals[RESERVED_BYTES]
        if out and stop_when_out:
            return index + 1, True
    return len(kinds), False


@compiled
def allocate(blocks, rules, recorded, row_of, requested, small_arena):
    """Returns the row of a block for a request, or −1 when out of memory."""
    size = rounded_size(rules, requested)
    arena = small_arena if size <= SMALL_LIMIT_BYTES else small_arena + 1
    blocks.totals[SMALL_SEARCHES + (arena & 1)] += 1
    row = take_best_fit(blocks, rules, arena, size)
    if row == NONE:
        if blocks.totals[RESERVED_BYTES] > rules.collect_above:
            collect_garbage(blocks, rules)
        row = _from_driver(blocks, rules, recorded, arena, size)
        if row == NONE and release_for(blocks, rules, arena, size):
            row = _from_driver(blocks, rules, recorded, arena, size)
        if row == NONE:
            row = _retry(blocks, rules, recorded, row_of, arena, size)
        if row == NONE:
            log_call(blocks, _OUT_OF_MEMORY, NONE, size, stranded_bytes(blocks, size))
            return NONE
    row = cut_to_size(blocks, rules, row, size)
    blocks.state[row] = ALLOCATED
    blocks.requested[row] = requested
    blocks.totals[ALLOCATED_BYTES] += blocks.size[row]
    blocks.totals[ACTIVE_BYTES] += blocks.size[row]
    blocks.totals[REQUESTED_BYTES] += requested
    return row


@compiled
def _from_driver(blocks, rules, recorded, arena, size):
    if rules.expandable:
        return mapped_block(blocks, rules, recorded, arena, size)
    return new_segment(blocks, rules, recorded, arena, size)


@compiled
def _retry(blocks, rules, recorded, row_of, arena, size):
    """Waits for the device, completes awaited frees, gives the cache back and asks the driver once more."""
    log_call(blocks, _DEVICE_SYNCHRONIZE, NONE, 0, -1)
    for row in range(blocks.totals[ROWS_USED]):
        if blocks.state[row] == AWAITING:
            row_of[blocks.owner[row]] = NONE
            free(blocks, row)
    release_cache(blocks)
    log_call(blocks, _RETRY, NONE, size, -1)
    return _from_driver(blocks, rules, recorded, arena, size)


@compiled
def synchronized(blocks, rules):
    """Gives the cache back if the rules say so at this synchronisation with the device."""
    blocks.totals[SYNCHRONIZATIONS] += 1
    if rules.release_stranded == UNLIMITED or blocks.totals[SYNCHRONIZATIONS] % rules.release_interval != 0:
        return
    if rules.compacts and stranded_bytes(blocks, UNLIMITED) > rules.release_stranded:
        compact(blocks)
        release_cache(blocks)
    elif releasable_bytes(blocks) > 0 and stranded_bytes(blocks, UNLIMITED) > rules.release_stranded:
        release_cache(blocks)


@compiled
def await_free(blocks, row):
    """Takes a block out of the allocated ones; it stays active until it is freed."""
    if blocks.state[row] == ALLOCATED:
        blocks.state[row] = AWAITING
        blocks.totals[ALLOCATED_BYTES] -= blocks.size[row]


@compiled
def free(blocks, row):
    """Makes an allocated or awaited block free and merges it with free neighbours."""
    if blocks.state[row] == ALLOCATED:
        blocks.totals[ALLOCATED_BYTES] -= blocks.size[row]
    blocks.totals[ACTIVE_BYTES] -= blocks.size[row]
    blocks.totals[REQUESTED_BYTES] -= blocks.requested[row]
    absorb(blocks, row, blocks.previous[row], FREE)
    absorb(blocks, row, blocks.following[row], FREE)
    enter_free(blocks, row)
