"""A replay of a recorded job as one side of a what-if."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.optimizations.interface import CapturePlan
from engine.optimizations.memory.outcomes import RankMemory, plan_memory
from engine.replay.replay_time import ReplayedTime, replay_time
from engine.replay.replayed_job import replayed_job
from engine.trace.job import Job
from engine.whatif.capture_shares import capture_shares
from engine.whatif.driver_calls import driver_call_ns, spares_calls, without_calls
from engine.whatif.inferred import carried
from engine.whatif.operator_totals import operator_totals
from engine.whatif.results import Side
from engine.workloads.results import RunStatus


@dataclass(frozen=True, slots=True, eq=False)
class CaptureRun:
    """A recorded job with some changes, run.

    Attributes:
        plan: The changes.
        replayed: When its tasks ran.
        memory: What its memory log came to, by rank.
        call_ns: int64, shape (tasks of ``replayed``,): recorded time of the allocator's driver calls in each.
    """

    plan: CapturePlan
    replayed: ReplayedTime
    memory: Mapping[int, RankMemory]
    call_ns: Int64Array

    @property
    def mean_step_ns(self) -> float:
        """Of the slowest rank; of a capture without steps the device span."""
        return float(np.mean(self.replayed.step_ns))


def capture_run(
    plan: CapturePlan,
    baseline: "CaptureRun | None" = None,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> CaptureRun:
    """Returns what a plan comes to.

    Args:
        plan: A recorded job with changes.
        baseline: The job without: what did not change is taken from it.
        progress: Told the share of tasks done.
        cancel: Looked at every few tens of ms.

    Raises:
        OperationCancelled: Cancelled.
    """
    if baseline is not None and plan.allocator is baseline.plan.allocator and not plan.edits:
        memory = baseline.memory
    else:
        memory = plan_memory(plan, cancel)
    if baseline is None:
        replayed = replay_time(plan.capture, plan.graph, progress, cancel)
        return CaptureRun(plan, replayed, memory, driver_call_ns(replayed))
    spares = plan.allocator is not None and spares_calls(memory, baseline.memory)
    replayed = replayed_plan(plan, baseline, spares=spares, progress=progress, cancel=cancel)
    call_ns = np.zeros(len(replayed.graph), dtype=np.int64)
    if not spares and baseline.call_ns.any():
        call_ns = carried(replayed.graph, baseline.replayed.graph, baseline.call_ns)
    return CaptureRun(plan, replayed, memory, call_ns)


def replayed_plan(
    plan: CapturePlan, baseline: CaptureRun, *, spares: bool, progress: Progress, cancel: CancelToken
) -> ReplayedTime:
    """Returns when the tasks of a plan run; the baseline's run where they are its tasks.

    Args:
        plan: A recorded job with changes.
        baseline: The job without.
        spares: Whether the recorded driver calls of the allocator are left out.
        progress: Told the share of tasks done.
        cancel: Looked at every few tens of ms.

    Raises:
        OperationCancelled: Cancelled.
    """
    graph = plan.graph
    if spares and baseline.call_ns.any():
        graph = without_calls(graph, baseline.plan.graph, baseline.call_ns)
    if graph is baseline.plan.graph:
        return baseline.replayed
    return replay_time(plan.capture, graph, progress, cancel)


def capture_side(run: CaptureRun) -> Side:
    """Returns a run of a recorded job as a side of a what-if."""
    capture, graph, replayed = run.plan.capture, run.replayed.graph, run.replayed
    outcomes = {rank: memory.outcome for rank, memory in run.memory.items()}
    shares = capture_shares(replayed, run.call_ns)

    def record(progress: Progress, cancel: CancelToken) -> Job:
        return replayed_job(capture, graph, replayed.schedule, progress, cancel)

    return Side(
        status=RunStatus.DONE if replayed.schedule.is_complete else RunStatus.DEADLOCK,
        step_ns=replayed.step_ns,
        tokens_per_s=None,
        device_count=device_count(capture.job),
        peak_allocated_bytes={rank: item.peak_allocated_bytes for rank, item in outcomes.items()},
        peak_reserved_bytes={rank: item.peak_reserved_bytes for rank, item in outcomes.items()},
        stranded_bytes={
            rank: item.stranded_bytes for rank, item in outcomes.items() if item.stranded_bytes is not None
        },
        operator_ns=operator_totals(graph),
        communication_share_ratio=shares.communication_ratio,
        bubble_ratio=shares.bubble_ratio,
        record=record,
        shares=shares,
        warm_up_count=0,
    )


def device_count(job: Job) -> int:
    """Returns the devices of the recorded job: its world size where a rank tells it, else the ranks that are open."""
    sizes = [entry.trace.metadata.world_size for entry in job.ranks]
    return max([len(job.ranks), *(size for size in sizes if size is not None)])
