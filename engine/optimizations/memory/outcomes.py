"""Memory of a capture under a plan: the rank's own allocator, or the one the plan puts in its place."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.errors import MissingDataError
from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.optimizations.interface import CapturePlan
from engine.replay.allocation_edit import AllocationEdit
from engine.replay.capture_graph import CaptureGraph
from engine.replay.capture_policy import capture_policy
from engine.replay.capture_requests import CaptureRequests, capture_requests
from engine.replay.memory_replay import PolicyOutcome, policy_run
from engine.runtime.allocators.catalogue import AllocatorPolicy
from engine.runtime.allocators.interface import DriverLog, RequestKind
from engine.trace.job import RankTrace


@dataclass(frozen=True, slots=True, eq=False)
class RankMemory:
    """What an allocator makes of a rank's log.

    Attributes:
        outcome: Totals.
        driver: Its calls.
    """

    outcome: PolicyOutcome
    driver: DriverLog


def plan_memory(plan: CapturePlan, cancel: CancelToken = NEVER_CANCELLED) -> dict[int, RankMemory]:
    """Returns the memory of every rank whose capture lists blocks.

    Raises:
        OperationCancelled: Cancelled.
    """
    if plan.allocator is None and not plan.edits:
        return dict(recorded_memory(plan.capture))
    return _memory_of(plan.capture, plan.allocator, plan.edits, cancel)


@lru_cache(maxsize=1)
def recorded_memory(capture: CaptureGraph) -> Mapping[int, RankMemory]:
    """Returns the memory of every rank under the policy it was recorded with; kept for the capture asked for last."""
    return _memory_of(capture, None, {}, NEVER_CANCELLED)


def _memory_of(
    capture: CaptureGraph,
    policy: AllocatorPolicy | None,
    edits: Mapping[int, AllocationEdit],
    cancel: CancelToken,
) -> dict[int, RankMemory]:
    known: dict[int, RankMemory] = {}
    for entry in capture.job.ranks:
        cancel.check()
        found = _rank_memory(capture, entry, policy, edits.get(entry.rank))
        if found is not None:
            known[entry.rank] = found
    return known


def _rank_memory(
    capture: CaptureGraph, entry: RankTrace, policy: AllocatorPolicy | None, edit: AllocationEdit | None
) -> RankMemory | None:
    recorded = capture_policy(entry.trace)
    try:
        log = capture_requests(entry.trace, recorded.settings.pad_bytes, edit=edit)
    except MissingDataError:
        return None
    return RankMemory(*policy_run(policy or recorded, _with_synchronizations(log, _step_ends_ns(capture, entry))))


def _step_ends_ns(capture: CaptureGraph, entry: RankTrace) -> Int64Array:
    """Returns when the rank's steps end, on its trace's clock: the host waits for the device there."""
    steps = capture.steps
    mine = (steps.rank == entry.rank) & (steps.step >= 0)
    ends: Int64Array = steps.end_ns[mine] - entry.offset_ns
    return ends


def _with_synchronizations(log: CaptureRequests, moments_ns: Int64Array) -> CaptureRequests:
    """Returns the log with a synchronisation at each moment: where rules of memory management may act."""
    if len(moments_ns) == 0:
        return log
    at = np.searchsorted(log.request_time_ns, np.sort(moments_ns), side="right")
    requests = log.requests
    return replace(
        log,
        requests=replace(
            requests,
            kind=np.insert(requests.kind, at, RequestKind.SYNCHRONIZE),
            block=np.insert(requests.block, at, -1),
            size_bytes=np.insert(requests.size_bytes, at, 0),
            stream=np.insert(requests.stream, at, 0),
            tag=np.insert(requests.tag, at, 0),
        ),
        request_time_ns=np.insert(log.request_time_ns, at, np.sort(moments_ns)),
        peak_row=log.peak_row + int(np.count_nonzero(at <= log.peak_row)) if log.peak_row >= 0 else -1,
    )
