"""Examinations made by hand: what rules look at, with exactly the loss a test is about."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.advisor.examination import Examination
from engine.analyses.communication import Collective, JobCommunication, LinkStatistic, SlowRank
from engine.analyses.fusion import FusionCandidate, Occurrence, Range3
from engine.analyses.idle import IdleCause, IdleGap
from engine.analyses.memory import MemoryAnalysis
from engine.analyses.modules import ModuleTime
from engine.analyses.operators import OperatorStatistic
from engine.analyses.step_history import StepHistory, history_table
from engine.analyses.steps import Step
from engine.analyses.summary import JobSummary, RankSummary
from engine.core.units import NS_PER_MS
from engine.trace import Origin, Source, TraceBuilder, TraceMetadata
from engine.trace.job import Alignment, Job, RankTrace
from engine.trace.trace import TimeRange, Trace

MATMUL = OperatorStatistic("MatMulV3_1", "MatMulV3", "AI_CORE", 10, 50 * NS_PER_MS, 1, 9, 1.0)


def bare_trace(rank: int = 0, metadata: TraceMetadata | None = None, source: str = "ascend-text") -> Trace:
    """Returns a trace without events."""
    known = replace(metadata or TraceMetadata(), rank=rank)
    return TraceBuilder().build(
        origin=Origin.MEASURED, source=Source("made", source), metadata=known, clock_is_unix=True
    )


def step_ms(
    length: float = 100.0,
    computing: float = 60.0,
    exposed: float = 20.0,
    *,
    number: int = 1,
    start: float = 0.0,
    wait: float | None = None,
) -> Step:
    """Returns a step; idle is what is left of it."""
    begin, end = round(start * NS_PER_MS), round((start + length) * NS_PER_MS)
    return Step(
        step=number,
        range=TimeRange(begin, end),
        computing_ns=computing * NS_PER_MS,
        communication_ns=exposed * NS_PER_MS,
        communication_not_overlapped_ns=exposed * NS_PER_MS,
        overlapped_ns=0.0,
        free_ns=max(length - computing - exposed, 0.0) * NS_PER_MS,
        stage_ns=None,
        bubble_ns=None,
        preparing_ns=None,
        wait_ns=None if wait is None else wait * NS_PER_MS,
        transfer_ns=None if wait is None else (exposed - wait) * NS_PER_MS,
    )


def collective_ms(
    elapsed: float,
    wait: float | None = 0.0,
    *,
    start: float = 0.0,
    name: str = "hcom_allReduce__1",
    group_name: str = "dp",
    late_rank: int | None = None,
    size_bytes: int | None = 1 << 24,
    missing_ranks: tuple[int, ...] = (),
    event: int = -1,
) -> Collective:
    """Returns a collective no computing covers; ``wait`` None for an unsplit one."""
    whole = round(elapsed * NS_PER_MS)
    waited = None if wait is None else round(wait * NS_PER_MS)
    return Collective(
        name=name,
        group="g",
        group_name=group_name,
        event=event,
        start_ns=round(start * NS_PER_MS),
        elapsed_ns=whole,
        bytes=size_bytes,
        wait_ns=waited,
        transfer_ns=None if waited is None else whole - waited,
        exposed_ns=whole,
        exposed_wait_ns=waited,
        hideable_ns=None if waited is None else whole - waited,
        late_rank=late_rank,
        members=(),
        missing_ranks=missing_ranks,
        vendor_transit_ns=None,
        vendor_wait_ns=None,
        vendor_idle_ns=None,
        bandwidth_bytes_per_s=None,
        step=1,
    )


def gaps_ms(cause: IdleCause, *lengths: float) -> tuple[IdleGap, ...]:
    """Returns gaps of one cause, one after another from 0."""
    found, at = [], 0
    for length in lengths:
        found.append(IdleGap(at, at + round(length * NS_PER_MS), cause, -1, -1))
        at += round(length * NS_PER_MS)
    return tuple(found)


def candidate_ms(
    pattern: str = "cross_entropy", total: float = 20.0, saving: tuple[float, float, float] = (8.0, 10.0, 12.0)
) -> FusionCandidate:
    """Returns a fusion candidate with one occurrence."""
    low, expected, high = (value * NS_PER_MS for value in saving)
    occurrence = Occurrence((0, 1), 0, round(total * NS_PER_MS), round(total * NS_PER_MS))
    return FusionCandidate(
        pattern=pattern,
        title="Cross-entropy over the vocabulary",
        replacement="torch_npu.npu_cross_entropy_loss",
        matched_by="kernels",
        count=1,
        total_ns=round(total * NS_PER_MS),
        gap_ns=0,
        launches=12,
        bound="memory",
        saving_ns=Range3(low, expected, high),
        reason="intermediates need not be moved",
        occurrences=(occurrence,),
    )


def rank_summary(
    rank: int = 0,
    steps: Sequence[Step] = (),
    *,
    idle: Sequence[IdleGap] = (),
    fusion: Sequence[FusionCandidate] = (),
    memory: MemoryAnalysis | None = None,
    modules: Sequence[ModuleTime] = (),
    operators: Sequence[OperatorStatistic] = (MATMUL,),
) -> RankSummary:
    """Returns the analyses of one rank; one step of 100 ms where none is given."""
    return RankSummary(
        rank=rank,
        steps=tuple(steps) or (step_ms(),),
        device=None,
        memory=memory,
        idle=tuple(idle),
        operators=tuple(operators),
        modules=tuple(modules),
        fusion_candidates=tuple(fusion),
    )


def examination_of(
    *ranks: RankSummary,
    collectives: Mapping[int, Sequence[Collective]] | None = None,
    links: Mapping[int, Sequence[LinkStatistic]] | None = None,
    slow_ranks: Sequence[SlowRank] = (),
    stages: Mapping[int, int] | None = None,
    traces: Mapping[int, Trace] | None = None,
) -> Examination:
    """Returns a recorded job of these ranks on one clock."""
    known = traces or {}
    entries = [
        RankTrace(item.rank, known.get(item.rank, bare_trace(item.rank)), 0, Alignment.SAME_CLOCK) for item in ranks
    ]
    given, lines = collectives or {}, links or {}
    joined = JobCommunication(
        collectives={item.rank: tuple(given.get(item.rank, ())) for item in ranks},
        links={item.rank: tuple(lines.get(item.rank, ())) for item in ranks},
        slow_ranks=tuple(slow_ranks),
        stages=stages or {},
    )
    return Examination("made by hand", Job("made", tuple(entries)), JobSummary(tuple(ranks), joined))


def with_history(history: StepHistory, rank: int = 0) -> Trace:
    """Returns a trace that carries the history of a run."""
    trace = bare_trace(rank)
    return replace(trace, tables={"step_history": history_table(history)})
