"""Everything the first screen and ``cannscope analyze`` show, computed once for a job."""

from dataclasses import dataclass

from engine.analyses.communication import JobCommunication, communication, split_waiting
from engine.analyses.device import DeviceTotals, device_totals
from engine.analyses.fusion import FusionCandidate, fusion_candidates
from engine.analyses.idle import IdleGap, idle_gaps
from engine.analyses.memory import MemoryAnalysis, memory_analysis
from engine.analyses.modules import ModuleTime, module_times
from engine.analyses.operators import OperatorStatistic, operator_statistics
from engine.analyses.serving.latency import ServingAnalysis
from engine.analyses.serving.recorded import recorded_serving
from engine.analyses.steps import Step, steps
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.trace.job import Job, RankTrace

_STAGES_PER_RANK = 7
"""Steps and the six analyses of ``_summarize_rank``."""


@dataclass(frozen=True, slots=True)
class RankSummary:
    """All analyses of one rank.

    Attributes:
        event_count: Events of the trace.
        duration_ns: What the trace covers.
        serving: What the service the trace shows came to; None where it shows none.
    """

    rank: int
    steps: tuple[Step, ...]
    device: DeviceTotals | None
    memory: MemoryAnalysis | None
    idle: tuple[IdleGap, ...]
    operators: tuple[OperatorStatistic, ...]
    modules: tuple[ModuleTime, ...]
    fusion_candidates: tuple[FusionCandidate, ...]
    event_count: int = 0
    duration_ns: int = 0
    serving: ServingAnalysis | None = None


@dataclass(frozen=True, slots=True)
class JobSummary:
    """All analyses of a job; ``ranks`` in the job's order."""

    ranks: tuple[RankSummary, ...]
    communication: JobCommunication

    def rank(self, rank: int) -> RankSummary:
        """Returns the summary of a global rank; KeyError if the job has none."""
        for entry in self.ranks:
            if entry.rank == rank:
                return entry
        raise KeyError(rank)


def summarize(job: Job, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> JobSummary:
    """Returns all analyses of ``job``. Raises OperationCancelled."""
    work = _Work(progress, cancel, total=_STAGES_PER_RANK * len(job.ranks) + 1)
    steps_of_rank = {}
    for entry in job.ranks:
        work.next(f"rank {entry.rank}: steps")
        steps_of_rank[entry.rank] = steps(entry.trace)
    work.next("communication")
    joined = communication(job, steps_of_rank, cancel)
    ranks = [
        _summarize_rank(entry, split_waiting(steps_of_rank[entry.rank], joined.collectives[entry.rank]), work)
        for entry in job.ranks
    ]
    cancel.check()
    progress(1.0, "done")
    return JobSummary(tuple(ranks), joined)


class _Work:
    """Counts stages, so that progress and cancellation are heard between any two of them."""

    def __init__(self, progress: Progress, cancel: CancelToken, total: int) -> None:
        self._progress = progress
        self.cancel = cancel
        self._total = total
        self._begun = 0

    def next(self, what: str) -> None:
        """Begins a stage. Raises OperationCancelled."""
        self.cancel.check()
        self._progress(self._begun / self._total, what)
        self._begun += 1


def _summarize_rank(entry: RankTrace, rank_steps: tuple[Step, ...], work: _Work) -> RankSummary:
    trace, who = entry.trace, f"rank {entry.rank}"
    work.next(f"{who}: device time")
    device = device_totals(trace)
    work.next(f"{who}: memory")
    memory = memory_analysis(trace, rank_steps)
    work.next(f"{who}: idle gaps")
    idle = idle_gaps(trace)
    work.next(f"{who}: operators")
    operators = operator_statistics(trace)
    work.next(f"{who}: modules")
    modules = module_times(trace)
    work.next(f"{who}: fusion candidates")
    candidates = fusion_candidates(trace, cancel=work.cancel)
    return RankSummary(
        rank=entry.rank,
        steps=rank_steps,
        device=device,
        memory=memory,
        idle=idle,
        operators=operators,
        modules=modules,
        fusion_candidates=candidates,
        event_count=len(trace.events),
        duration_ns=trace.time_range.duration_ns,
        serving=recorded_serving(trace),
    )
