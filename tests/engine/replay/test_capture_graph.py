"""What a capture's tasks keep to: the conventions optimizations build on."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.graph.task_graph import BufferTag, Stream, TaskGraph, TaskKind
from engine.replay.capture_graph import CaptureGraph, HostSource
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.replay.replayed_job import replayed_job
from engine.runtime.recorder import RecorderSettings, record_job
from engine.runtime.scheduler import schedule
from engine.trace.builder import take
from engine.trace.job import Alignment, Job, align
from engine.trace.trace import Origin
from tests.support.simulated_job import small_job

QWEN3 = "ascend/910b-qwen3-0.6b-pp2dp2"
CNN = "ascend/910b-cnn-ddp2-text/level1"
A100 = "pytorch/ns-resolution.json.gz"
GRAPHS = "pytorch/negative-queue-length-rank0.json.gz"
SAMPLES = (QWEN3, CNN, A100, GRAPHS, "pytorch/dlrm-v100-8ranks")


@cache
def graph_at(path: Path) -> CaptureGraph:
    return capture_graph(open_job([path], built_in_readers()))


def small_recording() -> Job:
    graph = small_job(steps=3, layers=6)
    return record_job(graph, schedule(graph), RecorderSettings())


def gap_targets(graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
    gaps = np.flatnonzero(graph.kind == TaskKind.GAP)
    return gaps, gaps + 1


@pytest.mark.parametrize("name", SAMPLES)
def test_the_first_predecessor_of_a_device_task_is_its_launch(captures: Path, name: str) -> None:
    capture = graph_at(captures / name)
    graph = capture.graph
    told = [rank for rank, source in capture.host_source.items() if source is not HostSource.GAPS]
    device = np.flatnonzero((graph.stream > 0) & np.isin(graph.rank, told) & (np.diff(graph.predecessor_offsets) > 0))
    first = graph.predecessors[graph.predecessor_offsets[device]]
    launched = graph.stream[first] == Stream.HOST
    assert launched.mean() > 0.8
    assert np.array_equal(graph.rank[first[launched]], graph.rank[device[launched]])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_gap_stands_before_its_task_and_waits_for_the_same(captures: Path, name: str) -> None:
    graph = graph_at(captures / name).graph
    gaps, targets = gap_targets(graph)
    assert len(gaps) > 0
    assert np.array_equal(graph.rank[gaps], graph.rank[targets])
    assert np.array_equal(graph.stream[gaps], graph.stream[targets])
    assert not np.any(graph.kind[targets] == TaskKind.GAP)
    assert np.all(graph.duration_ns[gaps] > 0)
    assert np.all(graph.origin_event[gaps] == -1)
    for gap, target in list(zip(gaps.tolist(), targets.tolist(), strict=True))[:500]:
        assert set(graph.predecessors_of(gap).tolist()) == set(graph.predecessors_of(target).tolist())
    names = {graph.operator(gap) for gap in gaps.tolist()}
    assert names <= {"gap: device_scheduling", "gap: unknown", "gap: not recorded"}


@pytest.mark.parametrize("name", SAMPLES)
def test_tasks_keep_the_link_to_the_recording(captures: Path, name: str) -> None:
    capture = graph_at(captures / name)
    graph = capture.graph
    for entry in capture.job.ranks:
        own = np.flatnonzero((graph.rank == entry.rank) & (graph.stream > 0) & (graph.origin_event >= 0))
        events = entry.trace.events
        assert len(np.unique(graph.origin_event[own])) == len(own)
        met = graph.rendezvous[own] >= 0
        # Of streams whose tasks are rounded apart, the first one ends where the next begins.
        off_ns = events.duration_ns[graph.origin_event[own]] - graph.duration_ns[own]
        assert np.all((off_ns[~met] >= 0) & (off_ns[~met] <= 2_000))
        assert np.all(off_ns[met] >= 0)


def test_ranks_with_collectives_only_follow_a_rank_of_their_stage(captures: Path) -> None:
    capture = graph_at(captures / QWEN3)
    graph = capture.graph
    assert capture.host_source[0] is HostSource.ALLOCATIONS
    assert capture.host_source[1] is HostSource.GAPS
    faster = np.isin(graph.kind, (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX))
    assert set(np.unique(graph.rank[faster]).tolist()) == {0, 2}
    halved = replace(graph, duration_ns=np.where(faster, graph.duration_ns // 2, graph.duration_ns))
    assert replay_time(capture, halved).step_ns[0] < 0.9 * replay_time(capture).step_ns[0]
    shadows = np.isin(graph.rank, (1, 3)) & (graph.kind == TaskKind.COLLECTIVE)
    assert graph.inferred[shadows].mean() > 0.9


def test_every_collective_of_the_four_ranks_meets(captures: Path) -> None:
    graph = graph_at(captures / QWEN3).graph
    sizes = {group.id: len(group.ranks) for group in graph.groups}
    talks = np.flatnonzero(graph.kind == TaskKind.COLLECTIVE)
    alone = [task for task in talks.tolist() if graph.rendezvous[task] < 0]
    assert all(sizes.get(graph.strings.text(int(graph.group[task])), 1) == 1 for task in alone)
    assert len(alone) == 12


def test_members_that_are_missing_leave_collectives_unsplit(captures: Path) -> None:
    graph = graph_at(captures / CNN).graph
    talks = graph.kind == TaskKind.COLLECTIVE
    assert np.all(graph.rendezvous[talks] == -1)
    assert graph.duration_ns[talks].max() > 60_000_000


@pytest.mark.parametrize("level", ["level0", "level1", "level2"])
def test_event_rows_order_gradients_and_their_exchange(captures: Path, level: str) -> None:
    graph = graph_at(captures / "ascend/910b-cnn-ddp2-text" / level).graph
    after = np.repeat(np.arange(len(graph)), np.diff(graph.predecessor_offsets))
    across = (graph.stream[graph.predecessors] != Stream.HOST) & (graph.stream[after] != Stream.HOST)
    across &= (graph.kind[after] != TaskKind.GAP) & (graph.rank[after] == 0)
    pairs = [
        (graph.operator(before).split("_")[0], graph.operator(task).split("_")[0], bool(graph.inferred[task]))
        for before, task in zip(graph.predecessors[across].tolist(), after[across].tolist(), strict=True)
    ]
    # The four buckets wait for the kernels that fill them, what reads them waits for the exchange.
    assert [pair[:2] for pair in pairs if pair[1] == "hcom"] == [("aclnnMuls", "hcom")] * 4
    readers = [pair for pair in pairs if pair[0] == "hcom"]
    assert [pair[1] for pair in readers] == ["MEMCPY", "MEMCPY", "MEMCPY", "aclnnInplaceCopy"]
    assert not any(inferred for _, _, inferred in readers)


def test_launches_that_found_the_queue_full_wait_for_the_device(captures: Path) -> None:
    capture = graph_at(captures / A100)
    graph = capture.graph
    held = (graph.kind == TaskKind.SYNCHRONIZE) & (graph.inferred == 1)
    assert held.sum() > 500
    # The device works nearly all the time, so the host cannot be what takes it.
    computing = np.isin(graph.kind, (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX))
    halved = replace(graph, duration_ns=np.where(computing, graph.duration_ns // 2, graph.duration_ns))
    ratio = replay_time(capture, halved).step_ns.mean() / replay_time(capture).step_ns.mean()
    assert ratio < 0.6


def test_copies_to_the_host_wait_for_the_device(captures: Path) -> None:
    graph = graph_at(captures / GRAPHS).graph
    waits = np.flatnonzero(graph.kind == TaskKind.SYNCHRONIZE)
    names = {graph.operator(task) for task in waits.tolist()}
    assert "cudaMemcpyAsync" in names
    assert all(len(graph.predecessors_of(task)) > 0 for task in waits.tolist())
    assert graph.duration_ns[waits].max() < 10_000_000


def test_host_operators_phases_and_work_are_told(captures: Path) -> None:
    graph = graph_at(captures / QWEN3).graph
    phases = set(graph.strings.texts(np.unique(graph.phase)))
    assert {"forward", "backward", "optimizer"} <= phases
    assert graph.layer.max() >= 10
    matmuls = np.flatnonzero((graph.kind == TaskKind.CUBE) & (graph.flops > 0))
    assert graph.flops.sum() == pytest.approx(37e12, rel=0.01)
    assert np.all(graph.bytes[matmuls] > 0)
    cnn = graph_at(captures / CNN).graph
    host = np.flatnonzero((cnn.stream == Stream.HOST) & (cnn.kind == TaskKind.HOST))
    assert {"aclnnMm", "Conv2D", "HcclAllreduce"} <= {cnn.operator(task) for task in host.tolist()}


def test_blocks_belong_to_host_tasks(captures: Path) -> None:
    graph = graph_at(captures / QWEN3).graph
    buffers = graph.buffers
    assert len(buffers) == 6_329
    assert np.all(graph.stream[buffers.allocated_by] == Stream.HOST)
    freed = buffers.freed_by >= 0
    assert np.all(buffers.freed_by[freed] >= buffers.allocated_by[freed])
    assert np.all(buffers.tag[~freed] == BufferTag.PERSISTENT)
    kept = buffers.tag == BufferTag.STEP
    assert np.all(graph.phase[buffers.allocated_by[kept]] != graph.phase[buffers.freed_by[kept]])


def test_the_replay_becomes_traces_of_every_rank(captures: Path) -> None:
    capture = graph_at(captures / QWEN3)
    result = replay_time(capture).schedule
    job = replayed_job(capture, capture.graph, result)
    assert [entry.rank for entry in job.ranks] == [0, 1, 2, 3]
    assert {entry.trace.origin for entry in job.ranks} == {Origin.SIMULATED}
    recorded = capture.job.ranks[0].trace
    assert len(job.ranks[0].trace.kernels) == len(recorded.kernels)


def test_clocks_that_are_joined_with_an_error_cost_little() -> None:
    job = small_recording()
    for shifts_ns in ((0, 9_000, -7_000, 4_000), (5_000, -5_000, 5_000, -5_000)):
        traces = [
            replace(entry.trace, metadata=replace(entry.trace.metadata, epoch_ns=entry.trace.metadata.epoch_ns + shift))
            for entry, shift in zip(job.ranks, shifts_ns, strict=True)
        ]
        replayed = replay_time(capture_graph(align("", traces)))
        assert replayed.schedule.is_complete
        assert replayed.error_ratio == pytest.approx(0.0, abs=0.03)


def test_members_that_say_different_sizes_are_replayed_apart() -> None:
    job = small_recording()
    first = job.ranks[0].trace
    wrong = replace(first, collectives=replace(first.collectives, bytes=first.collectives.bytes + 2))
    capture = capture_graph(replace(job, ranks=(replace(job.ranks[0], trace=wrong), *job.ranks[1:])))
    assert "collectives-do-not-fit" in {item.code for item in capture.diagnostics}
    replayed = replay_time(capture)
    assert replayed.schedule.is_complete
    assert replayed.error_ratio == pytest.approx(0.0, abs=0.001)


@pytest.mark.parametrize("ranks", [(0,), (1,), (0, 2), (1, 3), (0, 1, 2)])
def test_any_ranks_of_a_job_are_replayed(captures: Path, ranks: tuple[int, ...]) -> None:
    job = graph_at(captures / QWEN3).job
    part = replace(job, ranks=tuple(entry for entry in job.ranks if entry.rank in ranks))
    replayed = replay_time(capture_graph(part))
    assert replayed.schedule.is_complete
    assert replayed.error_ratio == pytest.approx(0.0, abs=0.001)


def test_collectives_of_a_table_alone_are_replayed(captures: Path) -> None:
    job = graph_at(captures / QWEN3).job
    entry = job.rank_trace(1)
    nothing = take(entry.trace.events, np.empty(0, dtype=np.int64))
    nowhere = np.full(len(entry.trace.collectives), -1, dtype=np.int32)
    bare = replace(entry.trace, events=nothing, collectives=replace(entry.trace.collectives, event=nowhere))
    capture = capture_graph(replace(job, ranks=(replace(entry, trace=bare),)))
    assert np.count_nonzero(capture.graph.kind == TaskKind.COLLECTIVE) == len(entry.trace.collectives)
    assert replay_time(capture).error_ratio == pytest.approx(0.0, abs=0.001)


def test_ranks_on_unrelated_clocks_do_not_wait_for_each_other(captures: Path) -> None:
    job = graph_at(captures / QWEN3).job
    apart = tuple(replace(entry, alignment=Alignment.UNALIGNED, offset_ns=0) for entry in job.ranks)
    capture = capture_graph(replace(job, ranks=apart))
    assert np.all(capture.graph.rendezvous == -1)
    assert "ranks-without-common-clock" in {item.code for item in capture.diagnostics}
    assert replay_time(capture).error_ratio == pytest.approx(0.0, abs=0.001)
