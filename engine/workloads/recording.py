"""Traces of the profiled steps of a run: what the simulated profiler keeps of every rank."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.analyses.step_history import HISTORY_TABLE, StepHistory, history_table
from engine.core.arrays import Int64Array
from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.devices.topology import LinkKind
from engine.graph.task_graph import TaskGraph
from engine.runtime.addresses.table import ADDRESS_TABLE, address_table
from engine.runtime.allocators.interface import RequestKind
from engine.runtime.deadlock import find_deadlock
from engine.runtime.recorder import RankMemory, RecorderSettings, record_rank
from engine.runtime.scheduler import Schedule, schedule
from engine.trace.job import Job, align
from engine.trace.strings import ABSENT
from engine.trace.tables import RecordedTable
from engine.trace.trace import ParallelGroup
from engine.workloads.executed import Executed
from engine.workloads.job_memory import JobMemory, ServedStretch
from engine.workloads.run_state import RunState
from engine.workloads.scenario import Scenario
from engine.workloads.step_detail import StepDetail, step_detail
from engine.workloads.step_graph import RankClass, StepGraphWriter

_LINK_WORDS = {LinkKind.ROCE: "RDMA", LinkKind.INFINIBAND: "RDMA"}
"""How the profiler calls the links whose technology has another name."""


@dataclass(frozen=True, slots=True, eq=False)
class ProfiledStep:
    """A step to be recorded.

    Attributes:
        step: Its number.
        executed: What every class of ranks ran.
        served: By class: requests and answers of its allocator, with the executed item they begin at.
    """

    step: int
    executed: tuple[Sequence[Executed], ...]
    served: tuple[Sequence[tuple[int, ServedStretch]], ...]


@dataclass(eq=False)
class ProfiledRun:
    """The profiled steps of a run and what is needed to record them.

    Attributes:
        state: The run.
        classes: Classes of ranks with the ranks they stand for.
        steps: In order.
    """

    state: RunState
    classes: tuple[tuple[RankClass, tuple[int, ...]], ...]
    steps: list[ProfiledStep] = field(default_factory=list)


def record_run(
    run: ProfiledRun,
    histories: Sequence[StepHistory],
    level: int,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Job:
    """Returns the traces of all ranks; profiled steps stand one after another, whatever lay between them.

    Args:
        run: The profiled steps.
        histories: By class of ranks: what happened in every step of the run.
        level: Profiler level 0 to 2.
        progress: Told the share of ranks done.
        cancel: Looked at between ranks.

    Raises:
        ScenarioError: With all ranks apart the steps stop for ever; what ended of them would look like short steps.
        OperationCancelled: Cancelled.
    """
    state = run.state
    writer = StepGraphWriter(state.machine, state.transfer_bytes)
    executed = [step.executed for step in run.steps]
    detail = step_detail([step.step for step in run.steps], state.scenario.parallel, writer, run.classes, executed)
    result = schedule(detail.graph, detail.slowdown_ratio, cancel=cancel)
    deadlock = find_deadlock(detail.graph, result)
    if deadlock is not None:
        raise ScenarioError(
            f"the profiled steps of scenario {state.scenario.name} cannot be recorded: {deadlock.message}"
        )
    settings = _settings(state, detail.graph, level)
    traces = []
    tables = [_run_tables(history, memory) for history, memory in zip(histories, state.memories, strict=True)]
    members = [(rank, number) for number, (_, ranks) in enumerate(run.classes) for rank in ranks]
    for done, (rank, number) in enumerate(sorted(members)):
        cancel.check()
        progress(done / len(members), f"recording rank {rank}")
        memory = _rank_memory(run, detail, result, rank, number)
        trace = record_rank(detail.graph, result, rank, settings, memory)
        traces.append(replace(trace, tables={**trace.tables, **tables[number]}))
    return align("", traces)


def _run_tables(history: StepHistory, memory: JobMemory) -> dict[str, RecordedTable]:
    """Returns what a class of ranks keeps beside its timeline: every step, and addresses in the last profiled one."""
    tables = {HISTORY_TABLE: history_table(history)}
    if memory.kept is not None and memory.kept.served:
        tables[ADDRESS_TABLE] = address_table(memory.kept.address_map(memory.plan))
    return tables


def _settings(state: RunState, graph: TaskGraph, level: int) -> RecorderSettings:
    scenario = state.scenario
    parallel = scenario.parallel
    device = scenario.device
    return RecorderSettings(
        level=level,
        seed=scenario.seed,
        devices_per_node=scenario.devices_per_node,
        device=device.soc_names[0] if device.soc_names else device.title,
        world_size=parallel.world_size,
        # What the job may reserve is its capacity: headroom up to the silicon's would be room it does not have.
        device_memory_bytes=scenario.memory.limit_bytes or device.hbm_usable_bytes,
        parallel_sizes={
            "tensor_model_parallel_size": parallel.tensor,
            "pipeline_model_parallel_size": parallel.pipeline,
            "data_parallel_size": parallel.data,
            "context_parallel_size": parallel.context,
            "expert_model_parallel_size": parallel.expert,
        },
        environment=_environment(scenario),
        link_of_group={group.id: _link(state, group) for group in graph.groups if len(group.ranks) > 1},
        details={"scenario": scenario.name, "model": scenario.model.id},
    )


def _environment(scenario: Scenario) -> dict[str, str]:
    expandable = scenario.memory.allocator in ("expandable", "amc") or scenario.enabled("memory.expandable_segments")
    return {"PYTORCH_NPU_ALLOC_CONF": f"expandable_segments:{expandable}"}


def _link(state: RunState, group: ParallelGroup) -> str:
    link, _ = state.machine.network.link_between(group.ranks)
    return _LINK_WORDS.get(link.kind, link.kind.value.upper())


def _rank_memory(run: ProfiledRun, detail: StepDetail, result: Schedule, rank: int, number: int) -> RankMemory | None:
    """Returns what a rank's allocator did in the profiled steps, on the run's clock."""
    first, host_task = detail.first_task[rank], detail.host_task[number]
    shift = 0
    logs: list[_TimedLog] = []
    for step in run.steps:
        for offset, stretch in step.served[number]:
            logs.append(_timed(stretch, host_task, offset + shift, first, result))
        shift += len(step.executed[number])
    if not logs:
        return None
    return _joined(logs, detail.graph)


@dataclass(frozen=True, slots=True, eq=False)
class _TimedLog:
    """Requests with the moment of each and the task that made it."""

    time_ns: Int64Array
    task: Int64Array
    stretch: ServedStretch


def _timed(
    stretch: ServedStretch, host_task: Sequence[Int64Array], offset: int, first: int, result: Schedule
) -> _TimedLog:
    served = stretch.run.served
    item, operator = stretch.placed.item[:served] + offset, stretch.placed.operator[:served]
    counts = np.array([len(tasks) for tasks in host_task])
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    flat = np.concatenate(list(host_task))
    task = first + flat[starts[item] + np.minimum(operator, counts[item] - 1)]
    task = np.minimum(task, len(result.start_ns) - 1)
    allocates = stretch.placed.log.kind[:served] == RequestKind.ALLOCATE
    moment = np.where(allocates, result.start_ns[task], result.end_ns[task])
    return _TimedLog(np.maximum.accumulate(moment), task, stretch)


def _joined(logs: Sequence[_TimedLog], graph: TaskGraph) -> RankMemory:
    """Returns the blocks born in the logs, with the frees that match them, and the totals after every request."""
    time_ns = np.maximum.accumulate(np.concatenate([log.time_ns for log in logs]))
    columns = [log.stretch.placed.log for log in logs]
    served = [log.stretch.run.served for log in logs]
    kind = np.concatenate([log.kind[:count] for log, count in zip(columns, served, strict=True)])
    block = np.concatenate([log.block[:count] for log, count in zip(columns, served, strict=True)])
    requested = np.concatenate([log.size_bytes[:count] for log, count in zip(columns, served, strict=True)])
    allocated = np.concatenate([log.stretch.run.allocated_bytes for log in logs])
    reserved = np.concatenate([log.stretch.run.reserved_bytes for log in logs])
    address = np.concatenate([log.stretch.run.address for log in logs])
    task = np.concatenate([log.task for log in logs])
    born = np.flatnonzero((kind == RequestKind.ALLOCATE) & (address >= 0))
    freed = _ends(block, born)
    size = np.diff(allocated, prepend=allocated[:1])[born]
    known = np.where(size > 0, size, requested[born])
    freed_at = np.where(freed >= 0, time_ns[np.maximum(freed, 0)], ABSENT)
    return RankMemory(
        address=address[born],
        size_bytes=known,
        requested_bytes=requested[born],
        allocated_at_ns=time_ns[born],
        freed_at_ns=freed_at,
        released_at_ns=freed_at,
        operator=graph.name[task[born]],
        stream=np.zeros(len(born), np.int32),
        curve_time_ns=time_ns,
        curve_allocated_bytes=allocated,
        curve_reserved_bytes=reserved,
        curve_active_bytes=allocated,
    )


def _ends(block: Int64Array, born: Int64Array) -> Int64Array:
    """Returns the request that ends each block, −1 where it lives on.

    That is the next free of its id, or the next allocation: what a failed attempt held was freed in between.
    """
    order = np.argsort(block, kind="stable")
    following = np.full(len(block), ABSENT, np.int64)
    same = block[order[1:]] == block[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    ends: Int64Array = following[born]
    return ends
