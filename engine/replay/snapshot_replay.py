"""A snapshot's log replayed on a simulated allocator, address by address."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.errors import MissingDataError
from engine.formats.snapshots.allocator_snapshot import AllocatorSnapshot, SnapshotLog
from engine.replay.snapshot_layout import TiledSegment, tiled_segments
from engine.replay.snapshot_policy import snapshot_policy
from engine.replay.snapshot_requests import RecordedRequests, recorded_requests, seeding_requests
from engine.replay.snapshot_start import StartState, start_state
from engine.replay.snapshot_statistics import SnapshotStatistics, snapshot_statistics
from engine.runtime.allocators.caching import CachingAllocator
from engine.runtime.allocators.caching_rules import rounded_size, rules_of
from engine.runtime.allocators.catalogue import AllocatorPolicy, new_allocator
from engine.runtime.allocators.interface import Allocator, AllocatorRun, DriverAction, RequestKind
from engine.trace.diagnostics import Diagnostic, DiagnosticLog, Severity


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first allocation whose address differs.

    Attributes:
        event: Index in the log.
        size_bytes: As requested.
        recorded_address: What the real allocator returned.
        replayed_address: What the simulated one returned, −1 when out of memory.
    """

    event: int
    size_bytes: int
    recorded_address: int
    replayed_address: int


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotReplay:
    """See CLI.md ``replay``.

    Attributes:
        policy: What was replayed.
        recorded_policy: What wrote the snapshot.
        device: Whose log was replayed: the one with most events.
        recorded_peak_allocated_bytes: Largest sum of blocks, from requests with the policy's rounding: the log holds
            requested sizes only.
        recorded_peak_reserved_bytes: From the log's segment events.
        replayed_peak_allocated_bytes: Of the replay.
        replayed_peak_reserved_bytes: Of the replay.
        addresses_total: Allocations in the log.
        addresses_matched: Of them, those that returned the recorded address.
        driver_events_total: Segment allocations and mappings in the log.
        driver_events_matched: Those repeated at the same request with the same address and size.
        driver_events_replayed: Those of the replay.
        releases_total: Runs of segment frees and unmappings in the log: calls of ``empty_cache``.
        releases_matched: Those that gave back exactly the recorded segments or pages.
        divergence: Where addresses part, None where all match.
        worst_stranded_bytes: Most that was stranded at a miss of the replay; None without a miss.
        statistics: What the snapshot says by itself.
        diagnostics: What could not be used.
    """

    policy: AllocatorPolicy
    recorded_policy: AllocatorPolicy
    device: int
    recorded_peak_allocated_bytes: int
    recorded_peak_reserved_bytes: int
    replayed_peak_allocated_bytes: int
    replayed_peak_reserved_bytes: int
    addresses_total: int
    addresses_matched: int
    driver_events_total: int
    driver_events_matched: int
    driver_events_replayed: int
    releases_total: int
    releases_matched: int
    divergence: Divergence | None
    worst_stranded_bytes: int | None
    statistics: SnapshotStatistics
    diagnostics: tuple[Diagnostic, ...]


def replay_snapshot(snapshot: AllocatorSnapshot, policy: AllocatorPolicy | None = None) -> SnapshotReplay:
    """Returns the replay of the longest log under ``policy``, by default the one the snapshot was written under.

    The log is undone to its start first, so the simulated allocator begins with the recorded segments and blocks; a
    policy that reserves memory in another way begins with the same blocks allocated in the order of their addresses.

    Raises:
        MissingDataError: The snapshot holds no event.
    """
    if not snapshot.logs:
        raise MissingDataError("log of events", "record with record_memory_history enabled")
    device = max(snapshot.logs, key=lambda number: len(snapshot.logs[number]))
    log = snapshot.logs[device]
    recorded_policy = snapshot_policy(snapshot, device)
    chosen = policy or recorded_policy
    start = start_state(snapshot, device)
    streams = _dense_streams(snapshot, device, log)
    recorded = recorded_requests(log, start, streams)
    allocator = _started(chosen, recorded_policy, start, recorded, streams)
    began_with = allocator.state
    run = allocator.run(recorded.requests)
    statistics = snapshot_statistics(snapshot, device, start)
    allocation = np.flatnonzero(recorded.requests.kind == RequestKind.ALLOCATE)
    matched = run.address[allocation] == recorded.address[allocation]
    gives = _calls(run, DriverAction.SEGMENT_ALLOCATE, DriverAction.MAP)
    stranded = run.driver.stranded_bytes[run.driver.stranded_bytes >= 0]
    releases_total, releases_matched = _matched_releases(run, recorded)
    return SnapshotReplay(
        policy=chosen,
        recorded_policy=recorded_policy,
        device=device,
        recorded_peak_allocated_bytes=_recorded_peak_allocated(recorded_policy, recorded, began_with.allocated_bytes),
        recorded_peak_reserved_bytes=statistics.peak_reserved_bytes,
        replayed_peak_allocated_bytes=int(run.allocated_bytes.max(initial=began_with.allocated_bytes)),
        replayed_peak_reserved_bytes=int(run.reserved_bytes.max(initial=began_with.reserved_bytes)),
        addresses_total=len(allocation),
        addresses_matched=int(np.count_nonzero(matched)),
        driver_events_total=len(recorded.gives),
        driver_events_matched=len(_rows(gives) & _rows(recorded.gives)),
        driver_events_replayed=len(gives),
        releases_total=releases_total,
        releases_matched=releases_matched,
        divergence=_divergence(run, recorded, allocation[~matched]),
        worst_stranded_bytes=int(stranded.max()) if len(stranded) else None,
        statistics=statistics,
        diagnostics=_diagnostics(snapshot, recorded, start),
    )


def _started(
    policy: AllocatorPolicy,
    recorded_policy: AllocatorPolicy,
    start: StartState,
    recorded: RecordedRequests,
    streams: Mapping[int, int],
) -> Allocator:
    """Returns an allocator in the state the log began with, as far as the policy can take it over."""
    if not _reserves_alike(policy, recorded_policy):
        fresh = new_allocator(policy, len(streams))
        fresh.run(seeding_requests(start, recorded.block_ids))
        return fresh
    allocator = CachingAllocator(
        policy.settings,
        stream_count=len(streams),
        recorded=[(int(call[1]), int(call[2])) for call in recorded.gives],
    )
    _load(allocator, tiled_segments(start, rules_of(policy.settings), recorded.block_ids), streams)
    return allocator


def _reserves_alike(policy: AllocatorPolicy, recorded: AllocatorPolicy) -> bool:
    """Tells whether a policy can go on from the recorded segments."""
    of_the_family = policy.id in ("caching", "caching-cuda", "expandable")
    return of_the_family and policy.settings.expandable_segments == recorded.settings.expandable_segments


def _load(allocator: CachingAllocator, segments: Sequence[TiledSegment], streams: Mapping[int, int]) -> None:
    for segment in segments:
        allocator.add_segment(
            segment.address,
            segment.blocks,
            stream=streams[segment.stream],
            large=segment.large,
            page_bytes=segment.page_bytes,
        )


def _dense_streams(snapshot: AllocatorSnapshot, device: int, log: SnapshotLog) -> dict[int, int]:
    pointers = {segment.stream for segment in snapshot.segments if segment.device == device}
    pointers.update(np.unique(log.stream).tolist())
    return {pointer: number for number, pointer in enumerate(sorted(pointers))}


def _recorded_peak_allocated(policy: AllocatorPolicy, recorded: RecordedRequests, start_bytes: int) -> int:
    """Returns the peak of the sum of blocks, every request rounded as the policy rounds it."""
    requests = recorded.requests
    sizes = np.unique(requests.size_bytes)
    rounded = rounded_sizes(policy, sizes)[np.searchsorted(sizes, requests.size_bytes)]
    sign = np.zeros(len(RequestKind), dtype=np.int64)
    # What was let go of counts as allocated no more, though it may still be active.
    sign[RequestKind.ALLOCATE], sign[RequestKind.FREE_REQUESTED] = 1, -1
    return int((start_bytes + np.cumsum(sign[requests.kind] * rounded)).max(initial=start_bytes))


def rounded_sizes(policy: AllocatorPolicy, sizes: Int64Array) -> Int64Array:
    """Returns the block sizes a policy gives to requests, int64, shape (n,)."""
    rules = rules_of(policy.settings)
    return np.array([rounded_size(rules, size) for size in sizes.tolist()], dtype=np.int64)


def _calls(run: AllocatorRun, *actions: DriverAction) -> Int64Array:
    """Returns (request, address, size) of the run's driver calls of these kinds, int64, shape (calls, 3)."""
    driver = run.driver
    rows = np.isin(driver.action, actions)
    return np.stack((driver.request[rows], driver.address[rows], driver.size_bytes[rows]), axis=1)


def _rows(calls: Int64Array) -> set[tuple[int, ...]]:
    return set(map(tuple, calls.tolist()))


def _matched_releases(run: AllocatorRun, recorded: RecordedRequests) -> tuple[int, int]:
    """Returns how many cache releases the log holds and how many gave back exactly the same."""
    replayed: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for request, address, size in _calls(run, DriverAction.SEGMENT_FREE, DriverAction.UNMAP).tolist():
        replayed[request].add((address, size))
    wanted: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for request, address, size in recorded.takes.tolist():
        wanted[request].add((address, size))
    return len(wanted), sum(replayed[request] == calls for request, calls in wanted.items())


def _divergence(run: AllocatorRun, recorded: RecordedRequests, differing: Int64Array) -> Divergence | None:
    if len(differing) == 0:
        return None
    first = int(differing[0])
    return Divergence(
        event=int(recorded.event[first]),
        size_bytes=int(recorded.requests.size_bytes[first]),
        recorded_address=int(recorded.address[first]),
        replayed_address=int(run.address[first]),
    )


def _diagnostics(snapshot: AllocatorSnapshot, recorded: RecordedRequests, start: StartState) -> tuple[Diagnostic, ...]:
    log = DiagnosticLog()
    log.extend(snapshot.diagnostics)
    log.add(
        "devices-not-replayed",
        Severity.NOTICE,
        "the snapshot holds logs of further devices; the longest was replayed",
        count=len(snapshot.logs) - 1,
    )
    log.add(
        "free-of-unknown-address",
        Severity.DATA_LOSS,
        "events free an address at which nothing was allocated; they were left out",
        count=recorded.unknown_frees,
    )
    log.add(
        "log-contradicts-segments",
        Severity.NOTICE,
        "events cannot be undone from the final segments; the state the log began with is uncertain",
        count=sum(start.errors.values()),
    )
    return log.diagnostics()
