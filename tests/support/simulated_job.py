"""A small training job as a task graph: two pipeline stages of two data-parallel ranks, with everything in it."""

import numpy as np

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.runtime.recorder import RankMemory
from engine.runtime.scheduler import Schedule
from engine.trace.trace import ParallelGroup

GROUPS = (
    ParallelGroup("11111111111111111111", "dp", (0, 1)),
    ParallelGroup("22222222222222222222", "dp", (2, 3)),
    ParallelGroup("33333333333333333333", "pp", (0, 2)),
    ParallelGroup("44444444444444444444", "pp", (1, 3)),
)


def small_job(steps: int = 2, layers: int = 3) -> TaskGraph:
    """Returns a job in which rank 1 is slow, communication overlaps computing, and stages wait for each other."""
    builder = GraphBuilder()
    builder.groups.extend(GROUPS)
    rng = np.random.default_rng(7)
    for step in range(steps):
        forward = {pair: builder.new_rendezvous() for pair in ((0, 2), (1, 3))}
        gradients = {rank: builder.new_rendezvous(layers) for rank in (0, 2)}
        for rank in range(4):
            _step(builder, rank, step, layers, forward, gradients, rng)
    return builder.build()


def _step(
    builder: GraphBuilder,
    rank: int,
    step: int,
    layers: int,
    forward: dict[tuple[int, int], int],
    gradients: dict[int, int],
    rng: np.random.Generator,
) -> None:
    common = {"rank": rank, "step": step}
    copy = _launch(builder, "aten::copy_", "MEMCPY_ASYNC", TaskKind.COPY, Stream.COPY, 7_003, common)
    pair, first = ((rank, rank + 2), True) if rank < 2 else ((rank - 2, rank), False)
    dependency = copy
    group = builder.strings.intern(GROUPS[2 + rank % 2].id)
    send = {"rendezvous": forward[pair], "group": group, "bytes": 1e6}
    if not first:
        dependency = _launch(
            builder, "c10d::recv_", "hcom_receive_", TaskKind.COLLECTIVE, Stream.POINT_TO_POINT, 50_011, common | send
        )
    ends = [copy, dependency]
    for layer in range(layers):
        duration = int(rng.integers(20_000, 60_000)) * (2 if rank == 1 else 1)
        shape = builder.strings.intern("4096,512;512,512")
        kind = (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX)[layer % 3]
        kernel = _launch(
            builder,
            "aten::mm",
            ("MatMulV3", "Add", "FlashAttentionScore")[layer % 3],
            kind,
            Stream.COMPUTE,
            duration,
            common | {"shape": shape},
            dependency,
        )
        dependency = kernel
        reduced = _launch(
            builder,
            "c10d::allreduce_",
            "hcom_allReduce_",
            TaskKind.COLLECTIVE,
            Stream.COMMUNICATION,
            30_007,
            common
            | {
                "rendezvous": gradients[rank // 2 * 2] + layer,
                "group": builder.strings.intern(GROUPS[rank // 2].id),
                "bytes": 2e6,
            },
            kernel,
        )
        ends += [kernel, reduced]
    if first:
        dependency = _launch(
            builder,
            "c10d::send",
            "hcom_send_",
            TaskKind.COLLECTIVE,
            Stream.POINT_TO_POINT,
            50_011,
            common | send,
            dependency,
        )
    builder.add_task("aclrtSynchronizeDevice", TaskKind.SYNCHRONIZE, dependency, *ends, duration_ns=2_001, **common)


def _launch(
    builder: GraphBuilder,
    operator: str,
    name: str,
    kind: TaskKind,
    stream: Stream,
    duration_ns: int,
    columns: dict[str, object],
    *before: int,
) -> int:
    """Adds a host operator and the device task it launches; returns the latter."""
    common = {key: columns[key] for key in ("rank", "step")}
    host = builder.add_task(operator, TaskKind.HOST, duration_ns=9_017, **common)
    return builder.add_task(name, kind, host, *before, stream=stream, duration_ns=duration_ns, **columns)


def small_memory(graph: TaskGraph, schedule: Schedule, rank: int) -> RankMemory:
    """Returns a block per framework operator of the rank, freed when the next but one begins, a few never."""
    host = np.flatnonzero((graph.rank == rank) & (graph.kind == TaskKind.HOST))
    size = 512 * (1 + np.arange(len(host), dtype=np.int64) * 37 % 4096)
    born = schedule.start_ns[host] + 100
    freed = np.append(born[2:], [-1, -1])
    moments = np.sort(np.concatenate((born, freed[freed >= 0])))
    held = np.array([size[(born <= moment) & ((freed > moment) | (freed < 0))].sum() for moment in moments])
    return RankMemory(
        address=np.cumsum(size) - size + (1 << 40),
        size_bytes=size,
        requested_bytes=size - 7,
        allocated_at_ns=born,
        freed_at_ns=freed,
        released_at_ns=freed,
        operator=graph.name[host],
        stream=np.full(len(host), 1, dtype=np.int32),
        curve_time_ns=moments,
        curve_allocated_bytes=held.astype(np.int64),
        curve_reserved_bytes=np.full(len(moments), 20 << 20, dtype=np.int64),
        curve_active_bytes=held.astype(np.int64),
    )
