"""A simulated job as one side of a what-if."""

from collections import Counter
from collections.abc import Callable, Mapping

from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.trace.job import Job
from engine.whatif.operator_totals import operator_totals
from engine.whatif.results import Side
from engine.workloads.recording import record_run
from engine.workloads.results import ClassMemory, RunResult
from engine.workloads.scenario import Scenario
from engine.workloads.simulate import simulate
from engine.workloads.step_detail import step_detail
from engine.workloads.step_graph import StepGraphWriter

LEVEL = 1
"""Profiler level of the timelines of a simulated side."""


def scenario_side(scenario: Scenario, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> Side:
    """Returns what a simulated job came to.

    Raises:
        ScenarioError: The job cannot run.
        OperationCancelled: Cancelled.
    """
    result = simulate(scenario, progress, cancel)

    def record(progress: Progress, cancel: CancelToken) -> Job:
        return record_run(result.profiled, result.histories, LEVEL, progress, cancel)

    tokens = result.tokens_per_s
    return Side(
        status=result.status,
        step_ns=result.step_ns,
        tokens_per_s=tokens or None,
        device_count=scenario.device_count,
        peak_allocated_bytes=_by_rank(result, lambda memory: int(memory.peak_allocated_bytes.max(initial=0))),
        peak_reserved_bytes=_by_rank(result, lambda memory: int(memory.peak_reserved_bytes.max(initial=0))),
        stranded_bytes=_by_rank(result, lambda memory: int(memory.stranded_bytes.max(initial=0))),
        operator_ns=_operator_ns(result),
        communication_share_ratio=result.communication_share_ratio,
        bubble_ratio=result.bubble_ratio,
        record=record,
        run=result,
    )


def _by_rank(result: RunResult, value: Callable[[ClassMemory], int]) -> dict[int, int]:
    return {rank: value(memory) for memory in result.memory for rank in memory.ranks}


def _operator_ns(result: RunResult) -> Mapping[str, int]:
    """Returns the device time of each operator in the profiled steps, all ranks together, as priced."""
    run = result.profiled
    if not run.steps:
        return {}
    one_of_each = tuple((ranks, members[:1]) for ranks, members in run.classes)
    detail = step_detail(
        [step.step for step in run.steps],
        run.state.scenario.parallel,
        StepGraphWriter(run.state.machine, run.state.transfer_bytes),
        one_of_each,
        [step.executed for step in run.steps],
    )
    member_count = {members[0]: len(members) for _, members in run.classes}
    totals: Counter[str] = Counter()
    for rank, count in member_count.items():
        for name, duration_ns in operator_totals(detail.graph, detail.graph.rank == rank).items():
            totals[name] += duration_ns * count
    return totals
