"""Turns a recorded job into the tasks a replay runs; see ``CaptureGraph``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.analyses.communication import JobCommunication, communication
from engine.analyses.steps import steps
from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.core.errors import MissingDataError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.replay.capture_graph import CaptureGraph, Gaps, HostSource, RecordedSteps
from engine.replay.meetings import meetings_of
from engine.replay.rank_graph import NOT_RECORDED, RankWriter
from engine.replay.rank_plan import RankPlan, rank_plan
from engine.replay.shadow_ranks import TwinWaits, twin_of, twin_waits
from engine.runtime.scheduler import schedule
from engine.runtime.scheduler.meetings import MeetingFault, find_meetings
from engine.trace.diagnostics import Diagnostic, DiagnosticLog, Severity
from engine.trace.job import Alignment, Job
from engine.trace.strings import ABSENT
from engine.trace.trace import ParallelGroup


@dataclass(frozen=True, slots=True, eq=False)
class JobPlans:
    """What a job's graph is made of, whatever becomes of its gaps.

    Attributes:
        job: The recorded ranks.
        talk: Their collectives.
        ranks: Rank → its plan; ranks without device tasks have none.
        diagnostics: What had to be assumed or left out.
    """

    job: Job
    talk: JobCommunication
    ranks: Mapping[int, RankPlan]
    diagnostics: tuple[Diagnostic, ...]


def capture_graph(
    job: Job,
    *,
    gaps: Gaps = Gaps.KEPT,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> CaptureGraph:
    """Returns the tasks of a recorded job and what they wait for.

    Args:
        job: The ranks that are open.
        gaps: What becomes of device time nothing explains.
        progress: Told the share of ranks done.
        cancel: Looked at between ranks.

    Raises:
        MissingDataError: No rank shows a device task.
        OperationCancelled: Cancelled.
    """
    return graph_of(job_plans(job, progress, cancel), gaps, cancel)


def job_plans(job: Job, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> JobPlans:
    """Returns what a job's graph is made of; raises as ``capture_graph`` does."""
    log = DiagnosticLog()
    known_steps = {entry.rank: steps(entry.trace) for entry in job.ranks}
    talk = communication(job, known_steps, cancel)
    plans: dict[int, RankPlan] = {}
    for done, entry in enumerate(job.ranks):
        cancel.check()
        progress(done / len(job.ranks), f"rank {entry.rank}: tasks and launches")
        plan = rank_plan(entry.trace, talk.collectives[entry.rank], known_steps[entry.rank], log)
        if plan is not None:
            plans[entry.rank] = plan
    if not plans:
        raise MissingDataError("device tasks", "record with device activities on")
    return JobPlans(job, talk, plans, (*talk.diagnostics, *log.diagnostics()))


def graph_of(plans: JobPlans, gaps: Gaps, cancel: CancelToken = NEVER_CANCELLED) -> CaptureGraph:
    """Returns the tasks of a job whose plans are made. Raises OperationCancelled."""
    log = DiagnosticLog()
    origin_ns = _origins(plans.job, plans.ranks)
    builder = GraphBuilder()
    builder.groups.extend(_groups(plans.talk))
    meetings = meetings_of(plans.talk, builder)
    position = {ABSENT: np.empty(0, dtype=np.int32)}
    # Twins before their shadows, which refer to them.
    for rank in sorted(plans.ranks, key=lambda rank: plans.ranks[rank].is_shadow):
        cancel.check()
        twin, waits = _twin(plans, rank)
        writer = RankWriter(builder, plans.ranks[rank], rank, origin_ns[rank], gaps)
        position[rank] = writer.write(meetings[rank], waits, position[twin])
    apart = _Apart.of(plans, position)
    graph = _without_circles(_without_faults(builder.build(), apart, log), apart, log, cancel)
    _note_assumptions(plans, graph, log)
    return CaptureGraph(
        job=plans.job,
        graph=graph,
        steps=_steps(plans.job, plans.ranks),
        host_source={rank: plan.host_source for rank, plan in plans.ranks.items()},
        latency_ns={rank: plan.dispatch.latency_ns for rank, plan in plans.ranks.items()},
        diagnostics=(*plans.diagnostics, *log.diagnostics()),
    )


def _note_assumptions(plans: JobPlans, graph: TaskGraph, log: DiagnosticLog) -> None:
    """Counts what the capture does not say and the graph takes for granted."""
    hidden = (graph.kind == TaskKind.GAP) & (graph.name == graph.strings.id_of(NOT_RECORDED))
    log.add(
        "work-not-recorded",
        Severity.NOTICE,
        "stretches inside launched graphs, or of ranks that show collectives only, keep their length",
        count=int(hidden.sum()),
    )
    log.add(
        "host-inferred",
        Severity.NOTICE,
        "ranks have no host rows; when their tasks were launched is inferred",
        count=sum(plan.host_source is not HostSource.LAUNCHES for plan in plans.ranks.values()),
    )
    unaligned = [entry for entry in plans.job.ranks if entry.alignment is Alignment.UNALIGNED]
    log.add(
        "ranks-without-common-clock",
        Severity.NOTICE,
        "ranks' clocks are not related; their collectives do not wait for each other",
        count=len(unaligned),
    )


def _twin(plans: JobPlans, rank: int) -> tuple[int, TwinWaits]:
    """Returns the rank a shadow follows (ABSENT for none) and its waits for that rank's tasks."""
    job, ranks = plans.job, plans.ranks
    shown = {
        entry.rank: not ranks[entry.rank].is_shadow
        for entry in job.ranks
        if entry.rank in ranks and entry.alignment is not Alignment.UNALIGNED
    }
    twin = twin_of(rank, plans.talk.stages, shown) if ranks[rank].is_shadow and rank in shown else None
    if twin is None:
        nothing = np.empty(0, dtype=np.int32)
        return ABSENT, TwinWaits(nothing, nothing, nothing.astype(np.int64))
    shift_ns = job.rank_trace(twin).offset_ns - job.rank_trace(rank).offset_ns
    return twin, twin_waits(ranks[rank].tasks, ranks[twin].tasks, ranks[twin].computes, shift_ns)


def _origins(job: Job, plans: Mapping[int, RankPlan]) -> dict[int, int]:
    """Returns the trace time of ns 0 of the run, by rank; ranks on one clock share it."""
    shared = [entry for entry in job.ranks if entry.rank in plans and entry.alignment is not Alignment.UNALIGNED]
    first_ns = min((plans[entry.rank].first_ns + entry.offset_ns for entry in shared), default=0)
    origins = {rank: plan.first_ns for rank, plan in plans.items()}
    return origins | {entry.rank: first_ns - entry.offset_ns for entry in shared}


def _groups(talk: JobCommunication) -> list[ParallelGroup]:
    """Returns every group whose members are known from collectives that met, by id."""
    known: dict[str, ParallelGroup] = {}
    for collectives in talk.collectives.values():
        for item in collectives:
            if item.members and item.group not in known:
                ranks = tuple(sorted({arrival.rank for arrival in item.members}))
                known[item.group] = ParallelGroup(item.group, item.group_name, ranks)
    return [known[identifier] for identifier in sorted(known)]


@dataclass(frozen=True, slots=True, eq=False)
class _Apart:
    """Takes meetings apart: members no longer wait for each other and last as long as recorded, waiting included.

    Attributes:
        task: int32, shape (device tasks of all ranks,): index in the graph.
        elapsed_ns: int64, shape (device tasks of all ranks,): recorded length.
    """

    task: Int32Array
    elapsed_ns: Int64Array

    @staticmethod
    def of(plans: JobPlans, position: Mapping[int, Int32Array]) -> "_Apart":
        parts = [(position[rank], plan.tasks.end_ns - plan.tasks.start_ns) for rank, plan in plans.ranks.items()]
        return _Apart(np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))

    def taken(self, graph: TaskGraph, chosen: BoolArray) -> TaskGraph:
        """Returns the graph with the chosen tasks (bool, shape (tasks,)) in no meeting."""
        own = chosen[self.task]
        duration_ns = graph.duration_ns.copy()
        duration_ns[self.task[own]] = self.elapsed_ns[own]
        return replace(graph, rendezvous=np.where(chosen, ABSENT, graph.rendezvous), duration_ns=duration_ns)


def _without_faults(graph: TaskGraph, apart: _Apart, log: DiagnosticLog) -> TaskGraph:
    """Returns the graph without meetings that could never take place (names or sizes of members differ)."""
    meetings = find_meetings(graph)
    wrong = np.flatnonzero(meetings.fault != MeetingFault.NONE)
    log.add(
        "collectives-do-not-fit",
        Severity.NOTICE,
        "members of one collective differ in name, size or number; each is replayed by itself",
        count=len(wrong),
    )
    return apart.taken(graph, np.isin(meetings.instance, wrong)) if len(wrong) else graph


def _without_circles(graph: TaskGraph, apart: _Apart, log: DiagnosticLog, cancel: CancelToken) -> TaskGraph:
    """Returns a graph whose ranks can meet: clocks that are off by more than the matching allows could forbid it."""
    if not np.any(graph.rendezvous >= 0) or schedule(graph, cancel=cancel).is_complete:
        return graph
    log.add(
        "ranks-wait-in-a-circle",
        Severity.NOTICE,
        "the ranks' recorded orders contradict each other; every collective is replayed by itself",
    )
    return apart.taken(graph, graph.rendezvous >= 0)


def _steps(job: Job, plans: Mapping[int, RankPlan]) -> RecordedSteps:
    """Returns the spans of each step's device tasks, and of all device tasks where no step is told."""
    columns: list[tuple[Int64Array, Int64Array, Int64Array, Int64Array]] = []
    for entry in job.ranks:
        plan = plans.get(entry.rank)
        if plan is None:
            continue
        number = plan.step if np.any(plan.step >= 0) else np.full(len(plan.step), ABSENT, dtype=np.int32)
        chosen = number >= 0 if np.any(number >= 0) else np.ones(len(number), dtype=np.bool_)
        numbers, index = np.unique(number[chosen], return_inverse=True)
        start_ns = np.full(len(numbers), np.iinfo(np.int64).max)
        end_ns = np.full(len(numbers), np.iinfo(np.int64).min)
        np.minimum.at(start_ns, index, plan.tasks.start_ns[chosen] + entry.offset_ns)
        np.maximum.at(end_ns, index, plan.tasks.end_ns[chosen] + entry.offset_ns)
        columns.append((np.full(len(numbers), entry.rank), numbers.astype(np.int64), start_ns, end_ns))
    rank, step, start_ns, end_ns = (np.concatenate(part) for part in zip(*columns, strict=True))
    return RecordedSteps(rank.astype(np.int32), step.astype(np.int32), start_ns, end_ns)
