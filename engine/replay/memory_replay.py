"""A capture's memory log on simulated allocators: what its own policy gives, what others would have reserved."""

from dataclasses import dataclass, replace

import numpy as np

from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.replay.capture_policy import capture_policy
from engine.replay.capture_requests import SEED_DIVISIONS, CaptureRequests, capture_requests
from engine.runtime.allocators.catalogue import ALLOCATOR_POLICIES, AllocatorPolicy, new_allocator
from engine.runtime.allocators.interface import DriverAction, DriverLog, RequestKind, RequestLog
from engine.trace.diagnostics import Diagnostic
from engine.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """What one policy did with a log.

    Attributes:
        policy: The policy.
        peak_allocated_bytes: Highest sum of blocks.
        peak_reserved_bytes: Highest sum of segments or mapped pages.
        stranded_at_peak_bytes: At the highest sum of requested bytes, for the request that reached it; None where the
            log has no such request.
        stranded_at_misses_bytes: Most that was stranded when the driver was asked for memory; None where it never was.
        driver_calls: Segments allocated and freed, pages mapped and unmapped, ranges stitched.
        out_of_memory_count: Failed allocations.
    """

    policy: AllocatorPolicy
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    stranded_at_peak_bytes: int | None
    stranded_at_misses_bytes: int | None
    driver_calls: int
    out_of_memory_count: int

    @property
    def stranded_bytes(self) -> int | None:
        """The larger of the two."""
        known = [item for item in (self.stranded_at_peak_bytes, self.stranded_at_misses_bytes) if item is not None]
        return max(known, default=None)


@dataclass(frozen=True, slots=True)
class MemoryReplay:
    """See CLI.md ``replay``.

    Attributes:
        recorded_policy: What the capture was recorded under.
        outcome: Of the policy replayed.
        policies: Of every policy, with the same log.
        recorded_peak_allocated_bytes: Of the capture's curve; None where not recorded.
        recorded_peak_reserved_bytes: Likewise.
        reserved_range_bytes: Least and most the replayed policy reserves, over divisions of what was alive before.
        seed_bytes: What was alive before the first row.
        requests: Length of the log.
        diagnostics: What had to be assumed.
        recorded_first_reserved_bytes: What was reserved when the recording began; None where not recorded.
    """

    recorded_policy: AllocatorPolicy
    outcome: PolicyOutcome
    policies: tuple[PolicyOutcome, ...]
    recorded_peak_allocated_bytes: int | None
    recorded_peak_reserved_bytes: int | None
    reserved_range_bytes: tuple[int, int]
    seed_bytes: int
    requests: int
    diagnostics: tuple[Diagnostic, ...]
    recorded_first_reserved_bytes: int | None = None

    @property
    def reserved_error_ratio(self) -> float | None:
        """Replayed ÷ recorded − 1; None where no totals are recorded."""
        recorded = self.recorded_peak_reserved_bytes
        return self.outcome.peak_reserved_bytes / recorded - 1 if recorded else None


def replay_memory(
    trace: Trace, policy: AllocatorPolicy | None = None, *, cancel: CancelToken = NEVER_CANCELLED
) -> MemoryReplay:
    """Returns the replay of a capture's blocks under ``policy``, by default the one it names.

    Raises:
        MissingDataError: The capture lists no blocks.
    """
    recorded_policy = capture_policy(trace)
    chosen = policy or recorded_policy
    pad_bytes = recorded_policy.settings.pad_bytes
    log = capture_requests(trace, pad_bytes)
    known = {item.id: item for item in ALLOCATOR_POLICIES}
    tried = known | {recorded_policy.id: recorded_policy, chosen.id: chosen}
    outcomes = {}
    for item in tried.values():
        cancel.check()
        outcomes[item.id] = policy_outcome(item, log)
    reserved = [outcomes[chosen.id].peak_reserved_bytes]
    for parts in SEED_DIVISIONS[1:] if log.seed_bytes else ():
        cancel.check()
        reserved.append(policy_outcome(chosen, capture_requests(trace, pad_bytes, parts)).peak_reserved_bytes)
    return MemoryReplay(
        recorded_policy=recorded_policy,
        outcome=outcomes[chosen.id],
        policies=tuple(outcomes.values()),
        recorded_peak_allocated_bytes=log.recorded_peak_allocated_bytes,
        recorded_peak_reserved_bytes=log.recorded_peak_reserved_bytes,
        reserved_range_bytes=(min(reserved), max(reserved)),
        seed_bytes=log.seed_bytes,
        requests=len(log.requests),
        diagnostics=log.diagnostics,
        recorded_first_reserved_bytes=log.recorded_first_reserved_bytes,
    )


def policy_outcome(policy: AllocatorPolicy, log: CaptureRequests) -> PolicyOutcome:
    """Returns what a policy does with a log, from an allocator that holds the seed only."""
    return policy_run(policy, log)[0]


def policy_run(policy: AllocatorPolicy, log: CaptureRequests) -> tuple[PolicyOutcome, DriverLog]:
    """Returns what a policy does with a log, and the driver calls it makes after the seed.

    The calls' ``request`` counts in ``log.requests``.
    """
    allocator = new_allocator(policy, log.stream_count)
    seeded = allocator.run(log.seed)
    run = allocator.run(_measured_at(log.requests, log.peak_row))
    driver = run.driver
    measured = driver.stranded_bytes[driver.action == DriverAction.MEASURE]
    missed = driver.stranded_bytes[(driver.action != DriverAction.MEASURE) & (driver.stranded_bytes >= 0)]
    calls = (DriverAction.SEGMENT_ALLOCATE, DriverAction.SEGMENT_FREE, DriverAction.MAP, DriverAction.UNMAP)
    outcome = PolicyOutcome(
        policy=policy,
        peak_allocated_bytes=int(max(seeded.allocated_bytes.max(initial=0), run.allocated_bytes.max(initial=0))),
        peak_reserved_bytes=int(max(seeded.reserved_bytes.max(initial=0), run.reserved_bytes.max(initial=0))),
        stranded_at_peak_bytes=int(measured[0]) if len(measured) else None,
        stranded_at_misses_bytes=int(missed.max()) if len(missed) else None,
        driver_calls=int(np.count_nonzero(np.isin(driver.action, (*calls, DriverAction.STITCH)))),
        out_of_memory_count=int(np.count_nonzero(driver.action == DriverAction.OUT_OF_MEMORY)),
    )
    inserted = (driver.request > log.peak_row) if log.peak_row >= 0 else np.zeros(len(driver), dtype=np.bool_)
    return outcome, replace(driver, request=driver.request - inserted)


def _measured_at(requests: RequestLog, row: int) -> RequestLog:
    """Returns the log with a measurement right after a request, for its size."""
    if row < 0:
        return requests
    at = row + 1
    return replace(
        requests,
        kind=np.insert(requests.kind, at, RequestKind.MEASURE),
        block=np.insert(requests.block, at, -1),
        size_bytes=np.insert(requests.size_bytes, at, requests.size_bytes[row]),
        stream=np.insert(requests.stream, at, requests.stream[row]),
        tag=np.insert(requests.tag, at, requests.tag[row]),
    )
