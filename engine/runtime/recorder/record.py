"""A schedule as traces: what the profiler would have written of the run."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.runtime.recorder.communication import add_communication
from engine.runtime.recorder.group_ids import hccl_groups
from engine.runtime.recorder.memory import RankMemory, add_memory
from engine.runtime.recorder.pair_groups import with_pair_groups
from engine.runtime.recorder.rank_tasks import RankTasks, tasks_of_rank
from engine.runtime.recorder.settings import RecorderSettings, metadata_of
from engine.runtime.recorder.statistics import with_statistics
from engine.runtime.recorder.timeline import (
    TASK_TYPES,
    Recording,
    add_device,
    add_host,
    add_overlap,
    connection_ids,
)
from engine.runtime.scheduler.schedule import Schedule
from engine.trace.builder import TraceBuilder, take
from engine.trace.job import Job, align
from engine.trace.strings import ABSENT
from engine.trace.tables import KernelTable
from engine.trace.trace import Origin, Source, Trace

FORMAT = "simulated"
COMMUNICATION_CORE = "COMMUNICATION"


def record_job(
    graph: TaskGraph,
    schedule: Schedule,
    settings: RecorderSettings,
    memory: dict[int, RankMemory] | None = None,
    ranks: tuple[int, ...] | None = None,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Job:
    """Returns the traces of ``ranks`` (all of the graph where None) on the run's clock.

    Args:
        graph: What ran.
        schedule: When.
        settings: How it is recorded.
        memory: What each rank's allocator did, by rank; ranks without an entry have no memory log.
        ranks: Which ranks.
        progress: Told the share of ranks done.
        cancel: Looked at between ranks.

    Raises:
        OperationCancelled: Cancelled.
    """
    wanted = tuple(np.unique(graph.rank).tolist()) if ranks is None else ranks
    traces = []
    for done, rank in enumerate(wanted):
        cancel.check()
        progress(done / len(wanted), f"recording rank {rank}")
        traces.append(record_rank(graph, schedule, rank, settings, (memory or {}).get(rank)))
    return align("", traces)


def record_rank(
    graph: TaskGraph, schedule: Schedule, rank: int, settings: RecorderSettings, memory: RankMemory | None = None
) -> Trace:
    """Returns the trace of one rank: what ended of it, at the profiler level and for the steps of ``settings``."""
    builder = TraceBuilder()
    graph, group_of_pair = with_pair_groups(graph)
    links = settings.link_of_group
    # A pair talks over the link of the group it is of.
    pair_links = {pair: links[group] for pair, group in group_of_pair.items() if group in links}
    settings = replace(settings, link_of_group={**links, **pair_links})
    words = np.append(builder.strings.intern_all(graph.strings), np.int32(ABSENT))
    tasks = tasks_of_rank(graph, schedule, rank, settings.steps)
    nowhere = np.full(len(graph), ABSENT, dtype=np.int64)
    groups = hccl_groups(graph)
    begin_ns = _begins_ns(graph, schedule, tasks)
    recording = Recording(graph, schedule, tasks, settings, builder, words, groups, nowhere, nowhere.copy(), begin_ns)
    connection = connection_ids(recording)
    add_host(recording, connection)
    add_device(recording, connection)
    add_communication(recording, connection)
    add_overlap(recording)
    _add_flows(recording)
    _add_kernels(recording)
    if memory is not None:
        add_memory(builder, memory, graph.strings, recording.device, settings.epoch_ns, _window(schedule, tasks))
        _link_blocks(recording)
    trace = builder.build(
        origin=Origin.SIMULATED,
        source=Source("", FORMAT),
        metadata=metadata_of(graph, rank, settings, groups),
        clock_is_unix=True,
    )
    return with_statistics(trace, settings.level)


def _begins_ns(graph: TaskGraph, schedule: Schedule, tasks: RankTasks) -> Int64Array:
    """Returns when each task began, int64, shape (tasks of the graph,).

    A schedule starts a wait when what it waits for has ended. A profiler sees the call from the moment the host makes
    it, which is when its call before has ended.
    """
    host = tasks.host
    begin_ns = schedule.start_ns.copy()
    later = host[1:]
    waits = graph.kind[later] == TaskKind.SYNCHRONIZE
    begin_ns[later[waits]] = schedule.end_ns[host[:-1][waits]]
    return begin_ns


def _window(schedule: Schedule, tasks: RankTasks) -> tuple[int, int]:
    """Returns the first start and the last end of what is shown, run ns."""
    shown = np.concatenate((tasks.host, tasks.device, tasks.collectives))
    if len(shown) == 0:
        return 0, 0
    return int(schedule.start_ns[shown].min()), int(schedule.end_ns[shown].max()) + 1


def _add_flows(recording: Recording) -> None:
    """Adds the arrows from operators and launches to what they launched."""
    tasks = recording.tasks
    launched = tasks.launched
    launcher, target = tasks.launcher[launched], recording.event_of_task[launched]
    operator = np.isin(launcher, tasks.operators)
    recording.builder.add_flows(recording.event_of_task[launcher[operator]], target[operator], "async_npu")
    if recording.settings.level > 0:
        recording.builder.add_flows(recording.call_of_task[launcher], target, "HostToDevice")


def _add_kernels(recording: Recording) -> None:
    """Adds the kernel table: one row per kernel and per collective, by start; copies are not in it."""
    graph, builder = recording.graph, recording.builder
    kernels = recording.tasks.device[graph.kind[recording.tasks.device] != TaskKind.COPY]
    tasks = np.concatenate((kernels, recording.tasks.collectives))
    described = recording.settings.level > 0
    cores = np.full(max(TaskKind) + 1, ABSENT, dtype=np.int32)
    for kind, word in (*TASK_TYPES.items(), (TaskKind.COLLECTIVE, COMMUNICATION_CORE)):
        cores[kind] = builder.strings.intern(word)
    absent = np.full(len(tasks), ABSENT, dtype=np.int32)
    table = KernelTable(
        event=recording.event_of_task[tasks].astype(np.int32),
        op_type=recording.text(graph.name[tasks]) if described else absent,
        core_type=cores[graph.kind[tasks]] if described else absent,
        input_shapes=recording.text(graph.shape[tasks]) if described else absent,
        input_types=recording.text(graph.types[tasks]) if described else absent,
        output_shapes=absent,
        output_types=absent,
        block_count=absent,
        step=graph.step[tasks],
    )
    builder.kernels = take(table, np.argsort(recording.schedule.start_ns[tasks], kind="stable"))


def _link_blocks(recording: Recording) -> None:
    """Names the operator event around each allocation, where one of the block's name is running."""
    builder, operators = recording.builder, recording.tasks.operators
    blocks = builder.allocations
    if blocks is None or len(operators) == 0:
        return
    start_ns = recording.start_ns(operators)
    place = np.searchsorted(start_ns, blocks.allocated_at_ns, side="right") - 1
    around = operators[np.maximum(place, 0)]
    named = recording.text(recording.graph.name[around]) == blocks.operator
    inside = blocks.allocated_at_ns < recording.start_ns(around) + recording.duration_ns(around)
    known = (place >= 0) & inside & named
    event: Int32Array = np.where(known, recording.event_of_task[around], ABSENT).astype(np.int32)
    builder.allocations = replace(blocks, event=event)
