"""What rules look at: a job with all its analyses, one time window per rank, and the scenario of a simulated one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.analyses.communication import Collective
from engine.analyses.step_history import StepHistory, step_history
from engine.analyses.steps import Step
from engine.analyses.summary import JobSummary, RankSummary, summarize
from engine.analyses.typical_step import measured_steps, step_length_ns
from engine.core.arrays import Int64Array
from engine.core.errors import MissingDataError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.optimizations.fitting import Platform, platform_of_job, platform_of_scenario
from engine.trace.job import Job
from engine.trace.trace import TimeRange, Trace
from engine.whatif.capture_changes import recorded_environment
from engine.whatif.results import Side
from engine.workloads.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Window:
    """The measured steps of a rank.

    Attributes:
        range: From the first one's start to the last one's end.
        step_count: How many.
    """

    range: TimeRange
    step_count: int


@dataclass(frozen=True, eq=False)
class Examination:
    """A job as rules see it.

    Attributes:
        name: Of the capture or scenario.
        job: The recorded ranks, or the profiled steps of a simulated run.
        summary: All analyses of it.
        scenario: What was simulated; None for a recorded job.
        side: How the simulated run went; None for a recorded job.
    """

    name: str
    job: Job
    summary: JobSummary
    scenario: Scenario | None = None
    side: Side | None = None

    @cached_property
    def _measured(self) -> Mapping[int, tuple[Step, ...]]:
        """Rank → its steps with device work; where no rank has any, all steps of the host."""
        found = {entry.rank: measured_steps(entry.steps) for entry in self.summary.ranks}
        if not any(found.values()):
            found = {entry.rank: entry.steps for entry in self.summary.ranks}
        return {rank: steps for rank, steps in found.items() if steps}

    @cached_property
    def steps(self) -> Mapping[int, Step]:
        """Rank → its typical step: the one of median length."""
        return {
            rank: sorted(steps, key=step_length_ns)[(len(steps) - 1) // 2] for rank, steps in self._measured.items()
        }

    @cached_property
    def windows(self) -> Mapping[int, Window]:
        """Rank → its measured steps."""
        windows = {}
        for rank, steps in self._measured.items():
            start_ns = min(step.range.start_ns for step in steps)
            end_ns = max(step.range.end_ns for step in steps)
            windows[rank] = Window(TimeRange(start_ns, end_ns), len(steps))
        return windows

    @cached_property
    def pace_rank(self) -> int | None:
        """The rank whose steps are the longest on average; None where nothing was recorded."""
        return max(self._measured, key=self._mean_step_ns, default=None)

    @cached_property
    def step_ns(self) -> float:
        """Mean step of the slowest rank, like the costs that are compared with it; of a service its mean request."""
        if self.side is not None and self.is_service:
            return self.side.mean_step_ns
        if self.pace_rank is None:
            raise MissingDataError("steps", "record at least one")
        return self._mean_step_ns(self.pace_rank)

    def _mean_step_ns(self, rank: int) -> float:
        """Returns the mean distance of a rank's steps: what lies between them counts, as it does in the costs."""
        steps, window = self._measured[rank], self.windows[rank]
        lengths = sum(step_length_ns(step) for step in steps)
        return max(lengths, float(window.range.duration_ns)) / len(steps)

    @cached_property
    def histories(self) -> Mapping[int, StepHistory]:
        """Rank → what its run kept of every step, where it kept anything."""
        found = {entry.rank: step_history(entry.trace) for entry in self.job.ranks}
        return {rank: history for rank, history in found.items() if history is not None}

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """Variables the recorded ranks had set; where ranks differ, that of the lowest."""
        return recorded_environment(self.job)

    @cached_property
    def platform(self) -> Platform:
        """What the job runs on, which decides about switches."""
        return platform_of_job(self.job) if self.scenario is None else platform_of_scenario(self.scenario)

    @property
    def is_ascend(self) -> bool:
        """Whether the job ran on Ascend devices."""
        return self.platform.is_ascend

    @property
    def has_steps(self) -> bool:
        """Whether steps were recorded; without them the start of the process counts in."""
        return any(step.step is not None for step in self.steps.values())

    @property
    def is_service(self) -> bool:
        """Whether this is a simulated service: its steps are requests."""
        return self.side is not None and self.side.serving is not None

    @property
    def is_recorded(self) -> bool:
        """Whether this is a real capture: what only a simulator can do is then never advised."""
        return self.scenario is None

    def trace(self, rank: int) -> Trace:
        """Returns the trace of a rank; KeyError if the job has none."""
        return self.job.rank_trace(rank).trace

    def collectives(self, rank: int) -> tuple[Collective, ...]:
        """Returns the collectives of a rank that start inside its measured steps."""
        window = self.windows.get(rank)
        own = self.summary.communication.collectives.get(rank, ())
        if window is None:
            return ()
        return tuple(item for item in own if window.range.start_ns <= item.start_ns < window.range.end_ns)

    def share(self, cost_ns: float) -> float:
        """Returns the share of the step, 0 where no step was recorded."""
        return cost_ns / self.step_ns if self.pace_rank is not None and self.step_ns else 0.0

    def per_step(self, rank: int, start_ns: Int64Array, duration_ns: Int64Array) -> float:
        """Returns what starts inside the measured steps of a rank, per step.

        Args:
            rank: Whose.
            start_ns: int64, trace time.
            duration_ns: int64, the same shape.
        """
        window = self.windows.get(rank)
        if window is None:
            return 0.0
        inside = (start_ns >= window.range.start_ns) & (start_ns < window.range.end_ns)
        return float(np.sum(duration_ns[inside])) / window.step_count

    def with_kernels(self) -> tuple[RankSummary, ...]:
        """Returns the ranks that list computing tasks; raises MissingDataError where none does."""
        found = tuple(entry for entry in self.summary.ranks if entry.operators and entry.rank in self.windows)
        if not found:
            raise MissingDataError("kernels", "record device activities of level 1 or more")
        return found


def examine_job(
    job: Job,
    scenario: Scenario | None = None,
    side: Side | None = None,
    name: str = "",
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Examination:
    """Returns a job with everything rules need. Raises OperationCancelled.

    Args:
        job: The ranks.
        scenario: What was simulated, None for a recorded job.
        side: How the simulated run went.
        name: For people; the job's path where left out.
        progress: Told what is done.
        cancel: Looked at between analyses.
    """
    return Examination(name or job.path, job, summarize(job, progress, cancel), scenario, side)
