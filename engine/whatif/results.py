"""What a what-if answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.analyses.serving.latency import ServingAnalysis
from engine.core.arrays import Int64Array
from engine.core.progress import CancelToken, Progress
from engine.optimizations.fitting import Platform
from engine.optimizations.interface import Applicability
from engine.optimizations.selection import Enabled, Refusal
from engine.trace.job import Job
from engine.workloads.results import RunResult, RunStatus
from engine.workloads.serving.simulate import ServingResult


@dataclass(frozen=True, slots=True)
class Shares:
    """Where a step goes: shares of it, together 1 but for what overlaps; of a capture those of the slowest rank.

    Attributes:
        cube_ratio: Kernels that multiply matrices or hold such a product.
        vector_ratio: All other computing.
        communication_ratio: Transfers beside which nothing is computed; of a collective whose waiting cannot be told
            from its transfer, all of it.
        bubble_ratio: Waiting for another stage.
        waiting_ratio: Waiting for the late member of another collective.
        allocator_ratio: Host time in the allocator's driver calls; 0 where it is not known.
        host_ratio: The rest: the device has nothing to do, because the host has not dispatched it yet.
    """

    cube_ratio: float
    vector_ratio: float
    communication_ratio: float
    bubble_ratio: float
    waiting_ratio: float
    allocator_ratio: float
    host_ratio: float


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of the two runs.

    Attributes:
        status: How it ended; a replayed capture is DONE.
        step_ns: int64, shape (steps,): of each step, of the slowest rank; of a capture without steps the device span.
        tokens_per_s: None where the job does not say how many tokens a step has.
        device_count: Devices of the job.
        peak_allocated_bytes: By rank; empty where no memory was recorded.
        peak_reserved_bytes: By rank.
        stranded_bytes: By rank, where an allocator ran.
        operator_ns: Time of each operator by name, all ranks and steps together.
        communication_share_ratio: Share of the step the slowest rank's device transfers and does not compute.
        bubble_ratio: Share in which a rank's device waits for another stage, 0 without a pipeline.
        record: Makes the timeline of the run: all ranks as simulated traces (of a recorded baseline: the replay).
        run: The simulated run with its history, None for a capture.
        shares: Where the step goes, None where nothing ran.
        warm_up_count: First steps that do not count for the mean.
        serving: What a service came to, None for a training job. Its steps are requests: each from its arrival to its
            last token.
        service: The served run, None for a training job.
    """

    status: RunStatus
    step_ns: Int64Array
    tokens_per_s: float | None
    device_count: int
    peak_allocated_bytes: Mapping[int, int]
    peak_reserved_bytes: Mapping[int, int]
    stranded_bytes: Mapping[int, int]
    operator_ns: Mapping[str, int]
    communication_share_ratio: float
    bubble_ratio: float
    record: Callable[[Progress, CancelToken], Job]
    run: RunResult | None = None
    shares: Shares | None = None
    warm_up_count: int = 1
    serving: ServingAnalysis | None = None
    service: ServingResult | None = None

    @property
    def mean_step_ns(self) -> float:
        """Mean after the first step of a simulated job, which warms the allocator up; 0 where nothing ran."""
        times = self.step_ns[self.warm_up_count :] if len(self.step_ns) > self.warm_up_count else self.step_ns
        return float(np.mean(times)) if len(times) else 0.0

    @property
    def worst_reserved_bytes(self) -> int | None:
        """Of the fullest rank, None where no memory is known."""
        return max(self.peak_reserved_bytes.values(), default=None)


@dataclass(frozen=True, slots=True)
class Gain:
    """Saved per step, negative for a loss.

    Attributes:
        low_ns: The least that is plausible.
        expected_ns: Of the rerun.
        high_ns: The most.
    """

    low_ns: float
    expected_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one optimization gives when switched on after those before it.

    Attributes:
        id: Of the optimization.
        gain_ns: Marginal, per step.
        alone_ns: Of it alone on the baseline, per step.
    """

    id: str
    gain_ns: float
    alone_ns: float


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """A baseline and what optimizations make of it.

    Attributes:
        name: Of the capture or scenario.
        baseline: As it is; of a capture its replay.
        candidate: With everything of ``enabled`` that applies.
        enabled: What was asked for, in the order applied.
        applicability: Of each, by id.
        refused: What conflicts; then nothing was rerun and ``candidate`` is ``baseline``.
        gain: Of everything together, per step.
        contributions: One after another; the last entry leads to the candidate.
        inferred_share_ratio: Share of the gain that rests on inferred dependencies, None where nothing was gained.
        replay_error_ratio: Replayed ÷ recorded step − 1, None for a scenario.
        weak: Why the prediction is weak, None where it is not.
        assumptions: What it rests on.
        devices_for_equal_throughput: Devices (a whole number of replicas) with which the candidate gives the
            baseline's throughput; None where that cannot be said.
        notes: What a reader has to know beside the figures: what was left out and why.
        platform: What the job runs on, which decides about switches; None where that was not asked.
    """

    name: str
    baseline: Side
    candidate: Side
    enabled: tuple[Enabled, ...]
    applicability: Mapping[str, Applicability]
    refused: tuple[Refusal, ...]
    gain: Gain
    contributions: tuple[Contribution, ...]
    inferred_share_ratio: float | None
    replay_error_ratio: float | None
    weak: str | None = None
    assumptions: tuple[str, ...] = ()
    devices_for_equal_throughput: int | None = None
    notes: tuple[str, ...] = field(default=())
    platform: Platform | None = None

    @property
    def speedup_ratio(self) -> float | None:
        """Baseline ÷ candidate step time, None where one of them did not run."""
        before, after = self.baseline.mean_step_ns, self.candidate.mean_step_ns
        return before / after if before and after else None
