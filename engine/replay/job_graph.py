"""Turns a recorded job into the tasks a replay runs; see ``CaptureGraph``."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.analyses.communication import JobCommunication, communication
from engine.core.arrays import Int64Array
from engine.core.errors import MissingDataError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import TaskGraph
from engine.replay.capture_graph import CaptureGraph, Gaps, RecordedSteps
from engine.replay.meetings import meetings_of
from engine.replay.rank_graph import RankWriter
from engine.replay.rank_plan import RankPlan, rank_plan
from engine.runtime.scheduler.meetings import MeetingFault, find_meetings
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.job import Alignment, Job
from engine.trace.strings import ABSENT
from engine.trace.trace import ParallelGroup


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
    log = DiagnosticLog()
    talk = communication(job, cancel=cancel)
    plans: dict[int, RankPlan] = {}
    for done, entry in enumerate(job.ranks):
        cancel.check()
        progress(done / len(job.ranks), f"rank {entry.rank}: tasks and launches")
        plan = rank_plan(entry.trace, talk.collectives[entry.rank], log)
        if plan is not None:
            plans[entry.rank] = plan
    if not plans:
        raise MissingDataError("device tasks", "record with device activities on")
    origin_ns = _origins(job, plans)
    builder = GraphBuilder()
    builder.groups.extend(_groups(talk))
    meetings = meetings_of(talk, builder)
    for rank, plan in plans.items():
        writer = RankWriter(builder, plan, rank, origin_ns[rank], gaps)
        writer.write(meetings[rank])
    graph = _without_faults(builder.build(), log)
    return CaptureGraph(
        job=job,
        graph=graph,
        steps=_steps(job, plans),
        host_source={rank: plan.host_source for rank, plan in plans.items()},
        latency_ns={rank: plan.dispatch.latency_ns for rank, plan in plans.items()},
        diagnostics=(*talk.diagnostics, *log.diagnostics()),
    )


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


def _without_faults(graph: TaskGraph, log: DiagnosticLog) -> TaskGraph:
    """Returns the graph without meetings that could never take place (names or sizes of members differ)."""
    meetings = find_meetings(graph)
    wrong = np.flatnonzero(meetings.fault != MeetingFault.NONE)
    if len(wrong) == 0:
        return graph
    log.add(
        "collectives-do-not-fit",
        Severity.NOTICE,
        "members of one collective differ in name, size or number; each is replayed by itself",
        count=len(wrong),
    )
    rendezvous = graph.rendezvous.copy()
    rendezvous[np.isin(meetings.instance, wrong)] = ABSENT
    return replace(graph, rendezvous=rendezvous)


def _steps(job: Job, plans: Mapping[int, RankPlan]) -> RecordedSteps:
    """Returns the spans of each step's device tasks, and of all device tasks where no step is told."""
    columns: list[tuple[Int64Array, Int64Array, Int64Array, Int64Array]] = []
    for entry in job.ranks:
        plan = plans.get(entry.rank)
        if plan is None:
            continue
        number = plan.step if np.any(plan.step >= 0) else np.full(len(plan.step), ABSENT, dtype=np.int32)
        chosen = number >= 0 if np.any(number >= 0) else np.ones(len(number), dtype=np.bool_)
        steps, index = np.unique(number[chosen], return_inverse=True)
        start_ns = np.full(len(steps), np.iinfo(np.int64).max)
        end_ns = np.full(len(steps), np.iinfo(np.int64).min)
        np.minimum.at(start_ns, index, plan.tasks.start_ns[chosen] + entry.offset_ns)
        np.maximum.at(end_ns, index, plan.tasks.end_ns[chosen] + entry.offset_ns)
        columns.append((np.full(len(steps), entry.rank), steps.astype(np.int64), start_ns, end_ns))
    rank, step, start_ns, end_ns = (np.concatenate(part) for part in zip(*columns, strict=True))
    return RecordedSteps(rank.astype(np.int32), step.astype(np.int32), start_ns, end_ns)
