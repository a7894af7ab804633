"""A simulated job as one side of a what-if."""

from collections.abc import Callable

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.trace.job import Job
from engine.whatif.operator_totals import operator_totals
from engine.whatif.results import Shares, Side
from engine.whatif.served_side import served_side
from engine.workloads.recording import record_run
from engine.workloads.results import ClassMemory, RunResult
from engine.workloads.scenario import Scenario, WorkloadKind
from engine.workloads.simulate import simulate
from engine.workloads.step_detail import step_detail
from engine.workloads.step_graph import StepGraphWriter

LEVEL = 1
"""Profiler level of the timelines of a simulated side."""


def scenario_side(scenario: Scenario, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> Side:
    """Returns what a simulated job came to: its steps, or of a service its requests.

    Raises:
        ScenarioError: The job cannot run.
        OperationCancelled: Cancelled.
    """
    if scenario.kind is WorkloadKind.SERVING:
        return served_side(scenario, progress, cancel)
    result = simulate(scenario, progress, cancel)

    def record(progress: Progress, cancel: CancelToken) -> Job:
        return record_run(result.profiled, result.histories, LEVEL, progress, cancel)

    tokens = result.tokens_per_s
    tasks = _profiled_tasks(result)
    return Side(
        status=result.status,
        step_ns=result.step_ns,
        tokens_per_s=tokens or None,
        device_count=scenario.device_count,
        peak_allocated_bytes=_by_rank(result, lambda memory: int(memory.peak_allocated_bytes.max(initial=0))),
        peak_reserved_bytes=_by_rank(result, lambda memory: int(memory.peak_reserved_bytes.max(initial=0))),
        stranded_bytes=_by_rank(result, lambda memory: int(memory.stranded_bytes.max(initial=0))),
        operator_ns=operator_totals(*tasks) if tasks else {},
        communication_share_ratio=result.communication_share_ratio,
        bubble_ratio=result.bubble_ratio,
        record=record,
        run=result,
        shares=_shares(result, *tasks) if tasks and len(result.step_ns) else None,
    )


def _by_rank(result: RunResult, value: Callable[[ClassMemory], int]) -> dict[int, int]:
    return {rank: value(memory) for memory in result.memory for rank in memory.ranks}


def _profiled_tasks(result: RunResult) -> tuple[TaskGraph, Int64Array] | None:
    """Returns the profiled steps operator by operator, one rank of each class, and the ranks each task stands for."""
    run = result.profiled
    if not run.steps:
        return None
    one_of_each = tuple((ranks, members[:1]) for ranks, members in run.classes)
    detail = step_detail(
        [step.step for step in run.steps],
        run.state.scenario.parallel,
        StepGraphWriter(run.state.machine, run.state.transfer_bytes),
        one_of_each,
        [step.executed for step in run.steps],
    )
    weight = np.zeros(int(detail.graph.rank.max(initial=0)) + 1, dtype=np.int64)
    for _, members in run.classes:
        weight[members[0]] = len(members)
    return detail.graph, weight[detail.graph.rank]


def _shares(result: RunResult, graph: TaskGraph, weight: Int64Array) -> Shares:
    """Returns where the profiled steps go, mean over ranks; computing as priced, without what transfers slow it by."""
    scenario = result.scenario
    profiled = [step.step for step in result.profiled.steps]
    step_ns = int(result.step_ns[profiled].sum())
    whole_ns = step_ns * scenario.device_count

    def part(kinds: tuple[TaskKind, ...]) -> float:
        chosen = np.isin(graph.kind, kinds)
        return float((graph.duration_ns[chosen] * weight[chosen]).sum()) / whole_ns if whole_ns else 0.0

    cube, vector = part((TaskKind.CUBE, TaskKind.MIX)), part((TaskKind.VECTOR, TaskKind.AI_CPU))
    warm = slice(1 if len(result.step_ns) > 1 else 0, len(result.step_ns))
    stall_ns = max((int(item.stall_ns[warm].sum()) for item in result.memory), default=0)
    allocator = min(stall_ns / max(int(result.step_ns[warm].sum()), 1), 1.0)
    known = cube + vector + result.communication_share_ratio + result.bubble_ratio + allocator
    return Shares(
        cube_ratio=cube,
        vector_ratio=vector,
        communication_ratio=result.communication_share_ratio,
        bubble_ratio=result.bubble_ratio,
        waiting_ratio=0.0,
        allocator_ratio=allocator,
        host_ratio=max(1.0 - known, 0.0),
    )
