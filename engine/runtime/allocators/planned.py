"""The static plan as an allocator: blocks whose frees are known get planned offsets, the rest is cached as usual.

The log handed to ``run`` is taken for what the program will do again: every block that is freed inside it gets an
offset in one planned range, which grows when a later log needs more. Blocks that outlive their log come from a caching
allocator beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import Int64Array
from engine.runtime.allocators.caching import CachingAllocator
from engine.runtime.allocators.caching_rules import MIN_BLOCK_BYTES, OWN_SEGMENT_ROUNDING_BYTES, CachingSettings
from engine.runtime.allocators.interface import (
    NO_ADDRESS,
    AllocatorRun,
    AllocatorState,
    DriverAction,
    DriverLog,
    RequestKind,
    RequestLog,
)
from engine.runtime.allocators.static_plan import static_plan

_RANGE_BASE = 1 << 46
"""Planned ranges lie above everything the caching allocator beside them is given."""
_RANGE_SPACING = 1 << 42
PLAN_EFFORT = 0.01
"""Share of the whole search for a lower plan that every log is given (assumed: a choice between time and height)."""
_COLUMNS = tuple(DriverLog.__dataclass_fields__)
_EMPTY_CACHE = RequestLog(*(np.array([value], np.int64) for value in (int(RequestKind.EMPTY_CACHE), -1, 0, 0, 0)))


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Planned blocks, by allocation. int64, shape (n,): requests that allocate and free them, sizes, offsets."""

    born: Int64Array
    freed: Int64Array
    size: Int64Array
    offset: Int64Array
    height_bytes: int


class PlannedAllocator:
    """Static offsets for what a log frees, a caching allocator for what outlives it.

    Args:
        settings: Of the caching allocator beside the plan, with the limit for both.
        stream_count: Streams that allocate. One plan serves all of them: it follows the program's order.
        effort: Of the plan's search.
        planned_tags: Tags of the blocks that are planned; None for all.
        class_of_tag: Lifetime classes of the caching allocator.
    """

    def __init__(
        self,
        settings: CachingSettings,
        *,
        stream_count: int = 1,
        effort: float = PLAN_EFFORT,
        planned_tags: Sequence[int] | None = None,
        class_of_tag: Sequence[int] = (),
    ) -> None:
        self._kept = CachingAllocator(settings, stream_count=stream_count, class_of_tag=class_of_tag)
        self._planned_tags = planned_tags
        self._limit_bytes = settings.limit_bytes
        self._pad_bytes = settings.pad_bytes
        self._effort = effort
        self._range_bytes = 0
        self._base = _RANGE_BASE
        self._last: _Plan | None = None

    @property
    def state(self) -> AllocatorState:
        """Totals between logs: everything planned is free then."""
        kept = self._kept.state
        return replace(
            kept,
            reserved_bytes=kept.reserved_bytes + self._range_bytes,
            largest_free_bytes=max(kept.largest_free_bytes, self._range_bytes),
        )

    def run(self, requests: RequestLog, *, stop_when_out: bool = False) -> AllocatorRun:
        """Serves the requests; see ``Allocator.run``.

        A plan that does not fit under the limit fails as a whole at the first planned allocation: with
        ``stop_when_out`` nothing after it is served, else every planned block gets the address −1.
        """
        plan = self._plan(requests)
        calls = self._grow(plan)
        fits = plan.height_bytes <= self._range_bytes
        rest = _without(requests, plan)
        if not fits and stop_when_out:
            rest = _first(rest, int(plan.born[0]) + 1)
        if self._limit_bytes is not None:
            self._kept.limit_to(self._limit_bytes - self._range_bytes)
        kept = self._kept.run(rest, stop_when_out=stop_when_out)
        address = kept.address.copy()
        change = np.zeros(kept.served, dtype=np.int64)
        if fits:
            inside = plan.born < kept.served
            address[plan.born[inside]] = self._base + plan.offset[inside]
            change[plan.born[inside]] = plan.size[inside]
            ended = plan.freed < kept.served
            change[plan.freed[ended]] = -plan.size[ended]
        return AllocatorRun(
            address=address,
            allocated_bytes=kept.allocated_bytes + np.cumsum(change),
            reserved_bytes=kept.reserved_bytes + self._range_bytes,
            driver=_joined(calls, self._measured(kept.driver, plan)),
            served=kept.served,
        )

    def _plan(self, requests: RequestLog) -> _Plan:
        """Returns the plan of a log; the same lifetimes as last time have the same plan."""
        born, freed, size = _lifetimes(requests, self._pad_bytes, self._planned_tags)
        last = self._last
        if last is not None and all(map(np.array_equal, (born, freed, size), (last.born, last.freed, last.size))):
            return last
        plan = static_plan(size, born, freed, effort=self._effort)
        self._last = _Plan(born, freed, size, plan.offset, plan.height_bytes)
        return self._last

    def _grow(self, plan: _Plan) -> list[tuple[int, int, int, int, int]]:
        """Makes the range large enough if the limit allows; returns the driver calls that takes.

        Where it does not, the cache beside the plan is released first, as before any other retry.
        """
        wanted = round_up_to_segment(plan.height_bytes)
        if wanted <= self._range_bytes:
            return []
        first = int(plan.born[0])
        calls: list[tuple[int, int, int, int, int]] = []
        if not self._fits(wanted):
            released = self._kept.run(_EMPTY_CACHE).driver
            columns = [getattr(released, name).tolist() for name in _COLUMNS[1:]]
            calls += [(first, *row) for row in zip(*columns, strict=True)]
            if not self._fits(wanted):
                return [*calls, (first, DriverAction.OUT_OF_MEMORY, NO_ADDRESS, wanted, 0)]
            calls.append((first, DriverAction.RETRY, NO_ADDRESS, wanted, -1))
        if self._range_bytes:
            calls.append((first, DriverAction.SEGMENT_FREE, self._base, self._range_bytes, -1))
        self._base += _RANGE_SPACING
        self._range_bytes = wanted
        return [*calls, (first, DriverAction.SEGMENT_ALLOCATE, self._base, wanted, 0)]

    def _fits(self, range_bytes: int) -> bool:
        return self._limit_bytes is None or range_bytes + self._kept.state.reserved_bytes <= self._limit_bytes

    def _measured(self, driver: DriverLog, plan: _Plan) -> DriverLog:
        """Returns the driver log with the holes of the planned range added to what was measured as stranded."""
        stranded = driver.stranded_bytes.copy()
        for call in np.flatnonzero(driver.action == DriverAction.MEASURE).tolist():
            row = driver.request[call]
            live = np.flatnonzero((plan.born <= row) & (row < plan.freed))
            order = live[np.argsort(plan.offset[live])]
            ends = np.concatenate(([0], plan.offset[order] + plan.size[order]))
            holes = np.append(plan.offset[order], self._range_bytes) - ends
            if len(live):
                stranded[call] += int(holes[holes < driver.size_bytes[call]].sum())
        return replace(driver, stranded_bytes=stranded)


def round_up_to_segment(size_bytes: int) -> int:
    """Returns the size of the planned range for a plan's height."""
    return -(-size_bytes // OWN_SEGMENT_ROUNDING_BYTES) * OWN_SEGMENT_ROUNDING_BYTES


def _lifetimes(
    requests: RequestLog, pad_bytes: int, tags: Sequence[int] | None
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns every planned block that is allocated and freed inside the log: those two requests, and its size."""
    rows = np.flatnonzero((requests.kind == RequestKind.ALLOCATE) | (requests.kind == RequestKind.FREE))
    rows = rows[np.argsort(requests.block[rows], kind="stable")]
    ends = (requests.kind[rows[:-1]] == RequestKind.ALLOCATE) & (requests.kind[rows[1:]] == RequestKind.FREE)
    pairs = np.flatnonzero(ends & (requests.block[rows[:-1]] == requests.block[rows[1:]]))
    born, freed = rows[pairs], rows[pairs + 1]
    if tags is not None:
        planned = np.isin(requests.tag[born], tags)
        born, freed = born[planned], freed[planned]
    order = np.argsort(born)
    born, freed = born[order], freed[order]
    padded = np.maximum(requests.size_bytes[born] + pad_bytes, 1)
    size = -(-padded // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES
    return born, freed, size


def _without(requests: RequestLog, plan: _Plan) -> RequestLog:
    """Returns the log with everything that concerns planned blocks skipped."""
    kind = requests.kind.copy()
    kind[plan.born] = RequestKind.SKIP
    kind[plan.freed] = RequestKind.SKIP
    dropped = np.flatnonzero(kind == RequestKind.FREE_REQUESTED)
    # A drop belongs to the block's latest allocation before it.
    key = requests.block[plan.born] * (len(kind) + 1) + plan.born
    order = np.argsort(key)
    wanted = requests.block[dropped] * (len(kind) + 1) + dropped
    at = np.searchsorted(key[order], wanted) - 1
    candidate = order[np.maximum(at, 0)] if len(order) else np.zeros(0, dtype=np.int64)
    if len(order):
        same = (at >= 0) & (requests.block[plan.born[candidate]] == requests.block[dropped])
        inside = same & (plan.freed[candidate] > dropped)
        kind[dropped[inside]] = RequestKind.SKIP
    return replace(requests, kind=kind)


def _first(requests: RequestLog, count: int) -> RequestLog:
    return RequestLog(*(getattr(requests, name)[:count] for name in RequestLog.__dataclass_fields__))


def _joined(calls: list[tuple[int, int, int, int, int]], driver: DriverLog) -> DriverLog:
    """Returns the range's calls before the cached blocks' ones, by request."""
    columns = np.array(calls, dtype=np.int64).reshape(-1, 5).T
    both = [np.concatenate((column, getattr(driver, name))) for column, name in zip(columns, _COLUMNS, strict=True)]
    order = np.argsort(both[0], kind="stable")
    return DriverLog(*(column[order] for column in both))
