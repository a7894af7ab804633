"""Address maps of what an allocator policy did with a log."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from engine.core.arrays import Int64Array
from engine.runtime.addresses.address_map import AddressMap, Basis, BlockRectangles, Misses, SegmentRectangles
from engine.runtime.allocators.block_store import ALLOCATED, AWAITING, UNMAPPED
from engine.runtime.allocators.caching import BlockLayout
from engine.runtime.allocators.caching_rules import SMALL_LIMIT_BYTES, CachingSettings
from engine.runtime.allocators.interface import (
    NO_ADDRESS,
    AllocatorRun,
    DriverAction,
    DriverLog,
    RequestKind,
    RequestLog,
)

_TAKES = (DriverAction.SEGMENT_ALLOCATE, DriverAction.MAP)
_GIVES = (DriverAction.SEGMENT_FREE, DriverAction.UNMAP)
_MISSES = {
    int(DriverAction.OUT_OF_MEMORY): 3,
    int(DriverAction.RETRY): 2,
    int(DriverAction.SEGMENT_ALLOCATE): 1,
    int(DriverAction.MAP): 1,
    int(DriverAction.STITCH): 1,
}
"""What tells that no hole fitted, by how much it tells."""


class ServedLog(NamedTuple):
    """Requests with what a policy did about them."""

    requests: RequestLog
    run: AllocatorRun


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """How a policy sorts requests into pools.

    Attributes:
        stream_count: Streams that allocate.
        class_of_tag: int64: tag of a request → lifetime class with segments of its own.
    """

    stream_count: int
    class_of_tag: Int64Array

    def group_of(self, tag: Int64Array) -> Int64Array:
        """Returns the lifetime class of each tag."""
        return self.class_of_tag[np.minimum(tag, len(self.class_of_tag) - 1)]


def address_map(
    before: BlockLayout,
    served: Sequence[ServedLog],
    settings: CachingSettings,
    pools: Pools,
    *,
    basis: Basis,
    policy: str,
    labels: tuple[str, ...] = (),
    label_of_block: Int64Array | None = None,
    old_tags: Int64Array | None = None,
) -> AddressMap:
    """Returns the map of a log that was served in one or several calls.

    Args:
        before: Every block before the first request.
        served: The calls in order.
        settings: Of the policy.
        pools: Of the policy.
        basis: How the log is known.
        policy: Name for people.
        labels: Names of blocks.
        label_of_block: int64: caller's block id → label; None where blocks have no names.
        old_tags: int64, shape (blocks of ``before``,): their lifetime classes; None where unknown.
    """
    log, run = _joined(served)
    rounded = _rounded_sizes(before, log, run)
    return AddressMap(
        basis=basis,
        policy=policy,
        event_count=len(log),
        blocks=_blocks(before, log, run, rounded, label_of_block, old_tags),
        segments=_segments(before, log, run, rounded, pools),
        misses=_misses(log, run, rounded, pools),
        joins_segments=settings.expandable_segments,
        max_split_bytes=settings.max_split_size_bytes or 0,
        labels=labels,
    )


def _joined(served: Sequence[ServedLog]) -> tuple[RequestLog, AllocatorRun]:
    """Returns the calls as one; requests that were not served any more are left out."""
    counts = [run.served for _, run in served]
    starts = np.cumsum([0, *counts])[:-1].astype(np.int64)

    def column(parts: Sequence[Int64Array]) -> Int64Array:
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    log = RequestLog(
        **{
            item.name: column([getattr(requests, item.name)[: run.served] for requests, run in served])
            for item in fields(RequestLog)
        }
    )
    driver = {item.name: column([getattr(run.driver, item.name) for _, run in served]) for item in fields(DriverLog)}
    driver["request"] = driver["request"] + np.repeat(starts, [len(run.driver) for _, run in served])
    return log, AllocatorRun(
        address=column([run.address for _, run in served]),
        allocated_bytes=column([run.allocated_bytes for _, run in served]),
        reserved_bytes=column([run.reserved_bytes for _, run in served]),
        driver=DriverLog(**driver),
        served=len(log),
    )


def _rounded_sizes(before: BlockLayout, log: RequestLog, run: AllocatorRun) -> Int64Array:
    """Returns the size of the block each allocation got: what the sum of blocks grew by. 0 for other requests."""
    first = before.size_bytes[before.state == ALLOCATED].sum()
    grown = np.diff(run.allocated_bytes, prepend=first)
    got = (log.kind == RequestKind.ALLOCATE) & (run.address != NO_ADDRESS)
    return np.where(got, grown, 0)


def _blocks(
    before: BlockLayout,
    log: RequestLog,
    run: AllocatorRun,
    rounded: Int64Array,
    label_of_block: Int64Array | None,
    old_tags: Int64Array | None,
) -> BlockRectangles:
    old = np.flatnonzero((before.state == ALLOCATED) | (before.state == AWAITING))
    allocated = np.flatnonzero((log.kind == RequestKind.ALLOCATE) & (run.address != NO_ADDRESS))
    freed = np.flatnonzero(log.kind == RequestKind.FREE)
    block = np.concatenate((before.block[old], log.block[allocated]))
    first = np.concatenate((np.full(len(old), -1), allocated))
    last = _ends(block, first, log.block[freed], freed, len(log))
    order = np.argsort(first, kind="stable")
    labels = np.full(len(block), -1, dtype=np.int64)
    if label_of_block is not None:
        known = (block >= 0) & (block < len(label_of_block))
        labels[known] = label_of_block[block[known]]
    known_tags = np.full(len(old), -1) if old_tags is None else old_tags[old]
    tags = np.concatenate((known_tags, log.tag[allocated]))
    columns = (
        np.concatenate((before.address[old], run.address[allocated])),
        np.concatenate((before.size_bytes[old], rounded[allocated])),
        first,
        last,
        tags,
        labels,
    )
    return BlockRectangles(*(column[order].astype(np.int64) for column in columns))


def _ends(block: Int64Array, first: Int64Array, freed: Int64Array, events: Int64Array, count: int) -> Int64Array:
    """Returns the first free of the same id after each birth; ``count`` where there is none before the next birth."""
    ids = np.concatenate((block, freed))
    moments = np.concatenate((first, events))
    order = np.lexsort((moments, ids))
    here, after = order[:-1], order[1:]
    same = (ids[after] == ids[here]) & (here < len(block)) & (after >= len(block))
    last = np.full(len(ids), count, dtype=np.int64)
    last[here[same]] = moments[after[same]]
    return last[: len(block)]


def _segments(
    before: BlockLayout, log: RequestLog, run: AllocatorRun, rounded: Int64Array, pools: Pools
) -> SegmentRectangles:
    live = _first_ranges(before, pools)
    done: list[tuple[int, ...]] = []
    driver = run.driver
    columns = (driver.request, driver.action, driver.address, driver.size_bytes)
    # A Python loop over driver calls, of which there are few beside requests.
    for request, action, address, size in zip(*(column.tolist() for column in columns), strict=True):
        if action in _TAKES:
            stream, group, large = _pool(log, rounded, request, pools)
            live[address] = (size, request, stream, group, large)
        elif action in _GIVES:
            _give_back(live, done, address, address + size, request)
    done += [(address, item[0], item[1], len(log), *item[2:]) for address, item in live.items()]
    rows = np.array(sorted(done, key=lambda row: (row[2], row[0])), dtype=np.int64).reshape(-1, 7)
    return SegmentRectangles(*rows.T.copy())


def _first_ranges(before: BlockLayout, pools: Pools) -> dict[int, tuple[int, ...]]:
    """Returns address → (size, −1, stream, group, is large) of the ranges with memory behind them before the log."""
    mapped = np.flatnonzero(before.state != UNMAPPED)
    address, size = before.address[mapped], before.size_bytes[mapped]
    begins = before.starts_segment[mapped].copy()
    if len(mapped):
        begins[0] = True
        begins[1:] |= address[1:] != address[:-1] + size[:-1]
    starts = np.flatnonzero(begins)
    sums = np.add.reduceat(size, starts) if len(starts) else size[:0]
    arena = before.arena[mapped][starts]
    stream, group = arena // 2 % pools.stream_count, arena // 2 // pools.stream_count
    columns = (address[starts], sums, stream, group, arena % 2)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {first: (length, -1, *pool) for first, length, *pool in rows}


def _give_back(
    live: dict[int, tuple[int, ...]], done: list[tuple[int, ...]], start: int, end: int, request: int
) -> None:
    """Ends the parts of live ranges inside ``start``…``end``; what sticks out lives on."""
    for address in [first for first, item in live.items() if first < end and first + item[0] > start]:
        size, born, *pool = live.pop(address)
        low, high = max(address, start), min(address + size, end)
        done.append((low, high - low, born, request, *pool))
        for left, right in ((address, low), (high, address + size)):
            if right > left:
                live[left] = (right - left, born, *pool)


def _pool(log: RequestLog, rounded: Int64Array, request: int, pools: Pools) -> tuple[int, int, int]:
    size = int(rounded[request]) or int(log.size_bytes[request])
    group = int(pools.group_of(log.tag[request : request + 1])[0])
    return int(log.stream[request]), group, int(size > SMALL_LIMIT_BYTES)


def _misses(log: RequestLog, run: AllocatorRun, rounded: Int64Array, pools: Pools) -> Misses:
    driver = run.driver
    weight = np.zeros(max(DriverAction) + 1, dtype=np.int64)
    for action, value in _MISSES.items():
        weight[action] = value
    telling = np.flatnonzero(weight[driver.action] > 0)
    # Of several calls during one request the one that tells most, and the first of these.
    order = telling[np.lexsort((telling, -weight[driver.action[telling]], driver.request[telling]))]
    events, first = np.unique(driver.request[order], return_index=True)
    rows = order[first]
    stranded = np.full(len(log), -1, dtype=np.int64)
    np.maximum.at(stranded, driver.request, driver.stranded_bytes)
    failed = driver.action[rows] == DriverAction.OUT_OF_MEMORY
    sizes = np.where(failed, driver.size_bytes[rows], rounded[events])
    return Misses(
        event=events,
        size_bytes=sizes,
        stream=log.stream[events],
        group=pools.group_of(log.tag[events]),
        is_large=(sizes > SMALL_LIMIT_BYTES).astype(np.int64),
        action=driver.action[rows],
        stranded_bytes=stranded[events],
    )
