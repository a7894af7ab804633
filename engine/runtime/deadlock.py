"""Why a schedule could not finish: which ranks wait for each other, in which operators, and what must be put right.

Each queue is stopped at one task. That task waits for a predecessor or for members of its collective that have not
arrived; those stand in queues that are stopped too. So either a collective cannot take place at all (a member is
missing, or members do different things), or the waits close a circle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from engine.core.arrays import Int64Array
from engine.graph.task_graph import TaskGraph
from engine.runtime.scheduler.meetings import MeetingFault
from engine.runtime.scheduler.schedule import Schedule

PIPELINE_GROUPS = ("pp", "pipeline", "pipeline_parallel", "pipeline_model_parallel")
"""What frameworks call the groups whose n-th member is the n-th pipeline stage."""


class DeadlockCause(StrEnum):
    """What kind of mistake stopped the run."""

    MISSING_MEMBERS = "missing_members"
    DIFFERENT_OPERATORS = "different_operators"
    DIFFERENT_SIZES = "different_sizes"
    COLLECTIVE_ORDER = "collective_order"
    """Ranks enter collectives in different orders."""
    STAGE_DEPENDENCY = "stage_dependency"
    """Pipeline stages wait for each other in a circle."""
    DEPENDENCY = "dependency"
    """Tasks wait for each other in a circle."""


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A run that stopped for ever.

    Attributes:
        cause: The kind of mistake.
        ranks: Ranks involved, ascending.
        operators: What they are stopped in, one per wait, each name once.
        cycle: One sentence per wait, in order; the last leads back to the first unless a collective cannot take place.
        stage_dependency: The waits as pipeline stages (``"stage 0 → stage 1 → stage 0"``), "" where none are involved.
        stopped_at_ns: When the last task that ended did.
        waiting_task_count: Tasks that never ended.
        message: One sentence for people, with what to do.
    """

    cause: DeadlockCause
    ranks: tuple[int, ...]
    operators: tuple[str, ...]
    cycle: tuple[str, ...]
    stage_dependency: str
    stopped_at_ns: int
    waiting_task_count: int
    message: str


@dataclass(frozen=True, slots=True)
class _Wait:
    """A stopped task, and what it waits for; ``blocker`` is −1 where nothing of the kind exists."""

    task: int
    blocker: int
    is_meeting: bool


def find_deadlock(graph: TaskGraph, schedule: Schedule) -> Deadlock | None:
    """Returns why ``schedule`` is not complete, None where it is."""
    if schedule.is_complete:
        return None
    faulty = _first_faulty_meeting(schedule)
    if faulty is not None:
        return _impossible_meeting(graph, schedule, faulty)
    return _circle(graph, schedule)


def _first_faulty_meeting(schedule: Schedule) -> int | None:
    """Returns the impossible collective that was entered first, None where no rank got to one."""
    meetings = schedule.meetings
    arrivals = [
        (int(arrived.min()), instance)
        for instance in np.flatnonzero(meetings.fault).tolist()
        if len(arrived := _arrivals(schedule, instance))
    ]
    return min(arrivals)[1] if arrivals else None


def _arrivals(schedule: Schedule, instance: int) -> Int64Array:
    start_ns = schedule.start_ns[schedule.meetings.members(instance)]
    return start_ns[start_ns >= 0]


def _impossible_meeting(graph: TaskGraph, schedule: Schedule, instance: int) -> Deadlock:
    members = schedule.meetings.members(instance).tolist()
    fault = MeetingFault(int(schedule.meetings.fault[instance]))
    group = graph.strings.text(int(graph.group[members[0]]))
    present = [int(graph.rank[member]) for member in members]
    named = next((item.ranks for item in graph.groups if item.id == group), ())
    missing = [rank for rank in named if rank not in present]
    arrived = [member for member in members if schedule.start_ns[member] >= 0]
    waits = [f"rank {int(graph.rank[member])} waits in {_described(graph, member, fault)}" for member in arrived]
    operators = tuple(dict.fromkeys(graph.operator(member) for member in members))
    if fault is MeetingFault.MISSING_MEMBERS:
        cause = DeadlockCause.MISSING_MEMBERS
        pairwise = len(present) == 1 and schedule.meetings.expected_count[instance] == 2
        whom = "ranks " + ", ".join(map(str, missing)) if missing and not pairwise else "its peer"
        advice = (
            f"{operators[0]} of group {group or '?'} waits for {whom}, which never calls it: call it on every member"
        )
        waits.append(f"{whom} never call{'s' if whom == 'its peer' else ''} {operators[0]}")
    elif fault is MeetingFault.DIFFERENT_SIZES:
        cause = DeadlockCause.DIFFERENT_SIZES
        advice = f"members of {operators[0]} of group {group or '?'} pass different numbers of bytes: give all the same"
    else:
        cause = DeadlockCause.DIFFERENT_OPERATORS
        advice = (
            f"members of group {group or '?'} call {', '.join(operators)} where they should call one: mend the order"
        )
    ranks = tuple(sorted({*present, *missing}))
    return _deadlock(schedule, cause, ranks, operators, tuple(waits), "", advice)


def _described(graph: TaskGraph, task: int, fault: MeetingFault) -> str:
    size = f" ({int(graph.bytes[task])} bytes)" if fault is MeetingFault.DIFFERENT_SIZES else ""
    return f"{graph.operator(task)}{size}"


def _deadlock(
    schedule: Schedule,
    cause: DeadlockCause,
    ranks: tuple[int, ...],
    operators: tuple[str, ...],
    cycle: tuple[str, ...],
    stages: str,
    advice: str,
) -> Deadlock:
    stuck_count = int(np.count_nonzero(~schedule.ended))
    message = f"the run stops for ever after {schedule.makespan_ns / 1e6:.3f} ms: {advice}"
    return Deadlock(cause, ranks, operators, cycle, stages, schedule.makespan_ns, stuck_count, message)


def _circle(graph: TaskGraph, schedule: Schedule) -> Deadlock:
    stuck = np.flatnonzero(~schedule.ended)
    queues, first = np.unique(schedule.chains.queue[stuck], return_index=True)
    heads = dict(zip(queues.tolist(), stuck[first].tolist(), strict=True))
    waits = _one_circle(graph, schedule, heads)
    ranks = tuple(sorted({int(graph.rank[wait.task]) for wait in waits}))
    operators = tuple(dict.fromkeys(graph.operator(wait.task) for wait in waits))
    stages = _stages(graph, waits)
    if stages:
        cause, advice = DeadlockCause.STAGE_DEPENDENCY, f"pipeline stages wait for each other, {stages}"
    elif all(wait.is_meeting for wait in waits):
        cause, advice = DeadlockCause.COLLECTIVE_ORDER, f"ranks enter {', '.join(operators)} in different orders"
    else:
        cause, advice = DeadlockCause.DEPENDENCY, f"{', '.join(operators)} wait for each other"
    sentences = tuple(_sentence(graph, wait, heads[int(schedule.chains.queue[wait.blocker])]) for wait in waits)
    advice += f" (ranks {', '.join(map(str, ranks))}): give all the same order"
    return _deadlock(schedule, cause, ranks, operators, sentences, stages, advice)


def _one_circle(graph: TaskGraph, schedule: Schedule, heads: Mapping[int, int]) -> list[_Wait]:
    """Returns the waits along one circle of stopped queues, found by following the first wait of each."""
    queue = min(heads)
    path: dict[int, _Wait] = {}
    while queue not in path:
        wait = _wait_of(graph, schedule, heads[queue])
        path[queue] = wait
        queue = int(schedule.chains.queue[wait.blocker])
    keys = [*path]
    return [path[key] for key in keys[keys.index(queue) :]]


def _wait_of(graph: TaskGraph, schedule: Schedule, task: int) -> _Wait:
    """Returns what the first task of a stopped queue waits for: an unfinished predecessor, else an absent member."""
    ended = schedule.ended
    for before in graph.predecessors_of(task).tolist():
        if not ended[before]:
            return _Wait(task, before, is_meeting=False)
    members = schedule.meetings.members(int(schedule.meetings.instance[task])).tolist()
    absent = next(member for member in members if schedule.start_ns[member] < 0)
    return _Wait(task, absent, is_meeting=True)


def _sentence(graph: TaskGraph, wait: _Wait, head: int) -> str:
    """Says one wait: who waits in what for whom, and what that one is stopped at."""
    rank, other = int(graph.rank[wait.task]), int(graph.rank[wait.blocker])
    what = graph.operator(wait.task)
    whom = f"rank {other} to join" if wait.is_meeting else f"{graph.operator(wait.blocker)} of rank {other}"
    behind = f", which stands behind {graph.operator(head)}" if head != wait.blocker else ""
    return f"rank {rank} waits in {what} for {whom}{behind}"


def _stages(graph: TaskGraph, waits: list[_Wait]) -> str:
    """Returns the circle as pipeline stages, "" where it does not leave a stage or the graph names none."""
    stage_of_rank: dict[int, int] = {}
    for group in graph.groups:
        if group.name.casefold() in PIPELINE_GROUPS:
            for stage, rank in enumerate(group.ranks):
                stage_of_rank.setdefault(rank, stage)
    walk = [stage_of_rank.get(int(graph.rank[wait.task])) for wait in waits]
    if None in walk or len(set(walk)) < 2:
        return ""
    walk = [stage for index, stage in enumerate(walk) if index == 0 or stage != walk[index - 1]]
    if walk[0] != walk[-1]:
        walk.append(walk[0])
    return " → ".join(f"stage {stage}" for stage in walk)
