from functools import cache

import numpy as np
import pytest

from engine.analyses.communication import communication
from engine.analyses.device import device_totals
from engine.analyses.launches import launch_events
from engine.analyses.memory import memory_analysis
from engine.analyses.steps import steps
from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.runtime.recorder import RecorderSettings, record_job, record_rank, with_profiling
from engine.runtime.recorder.group_ids import hccl_groups
from engine.runtime.recorder.pair_groups import with_pair_groups
from engine.runtime.scheduler import Schedule, schedule, uniform_slowdown
from engine.trace import Job, Origin, Trace, TrackKind
from engine.trace.intervals import difference, union
from engine.trace.strings import ABSENT
from engine.trace.trace import ParallelGroup
from tests.support.simulated_job import small_job, small_memory

RANKS = range(4)
KERNELS = (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX, TaskKind.AI_CPU)


@cache
def run() -> tuple[TaskGraph, Schedule]:
    graph = small_job()
    return graph, schedule(graph, uniform_slowdown(graph, 0.2))


@cache
def job(level: int = 1) -> Job:
    graph, result = run()
    memory = {rank: small_memory(graph, result, rank) for rank in RANKS}
    return record_job(graph, result, RecorderSettings(level=level), memory)


def spans(rank: int, *kinds: TaskKind) -> tuple[np.ndarray, np.ndarray]:
    graph, result = run()
    rows = (graph.rank == rank) & np.isin(graph.kind, kinds)
    return result.start_ns[rows], result.end_ns[rows]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("rank", RANKS)
def test_device_times_are_the_schedules(level: int, rank: int) -> None:
    totals = device_totals(job(level).rank_trace(rank).trace)
    computing, talking = union(*spans(rank, *KERNELS)), union(*spans(rank, TaskKind.COLLECTIVE))
    assert totals is not None
    assert totals.compute_ns == computing.total_ns
    assert totals.communication_ns == talking.total_ns
    assert totals.exposed_communication_ns == difference(talking, computing).total_ns
    assert totals.memory_ns == union(*spans(rank, TaskKind.COPY)).total_ns


def test_waiting_and_transfer_are_the_schedules() -> None:
    graph, result = run()
    found = communication(job())
    for rank in RANKS:
        members = np.flatnonzero((graph.rank == rank) & (graph.kind == TaskKind.COLLECTIVE))
        order = members[np.argsort(result.start_ns[members], kind="stable")]
        rows = sorted(found.collectives[rank], key=lambda item: item.start_ns)
        assert [item.wait_ns for item in rows] == (result.transfer_ns - result.start_ns)[order].tolist()
        assert [item.transfer_ns for item in rows] == (result.end_ns - result.transfer_ns)[order].tolist()
    assert found.slow_ranks[0].rank == 1


def test_the_profilers_split_of_collectives_is_the_schedules() -> None:
    graph, result = run()
    for rank in RANKS:
        table = job().rank_trace(rank).trace.collectives
        members = np.flatnonzero((graph.rank == rank) & (graph.kind == TaskKind.COLLECTIVE))
        assert table.vendor_wait_ns.sum() == (result.transfer_ns - result.start_ns)[members].sum()
        assert table.vendor_transit_ns.sum() == (result.end_ns - result.transfer_ns)[members].sum()


def test_every_step_is_found_with_the_times_of_its_own_tasks() -> None:
    graph, result = run()
    for rank in RANKS:
        found = steps(job().rank_trace(rank).trace)
        assert [step.step for step in found] == [0, 1]
        for step in found:
            rows = (graph.rank == rank) & (graph.step == step.step) & np.isin(graph.kind, KERNELS)
            assert step.computing_ns == union(result.start_ns[rows], result.end_ns[rows]).total_ns
        table = job().rank_trace(rank).trace.tables["step_trace_time"]
        assert table.numbers["Computing"].tolist() == [step.computing_ns / 1000 for step in found]


def test_receiving_from_another_stage_is_the_bubble() -> None:
    graph, result = run()
    receives = (graph.rank == 2) & (graph.name == graph.strings.id_of("hcom_receive_"))
    found = steps(job().rank_trace(2).trace)
    assert sum(step.bubble_ns or 0 for step in found) == (result.end_ns - result.start_ns)[receives].sum()


def test_peaks_of_memory_are_the_allocators() -> None:
    graph, result = run()
    for rank in RANKS:
        trace, memory = job().rank_trace(rank).trace, small_memory(graph, result, rank)
        found = memory_analysis(trace, steps(trace))
        assert found is not None
        assert found.peak_allocated_bytes == memory.curve_allocated_bytes.max()
        assert found.peak_reserved_bytes == memory.curve_reserved_bytes.max()
        assert trace.memory.allocations.size_bytes.sum() == memory.size_bytes.sum()
        named = trace.memory.allocations.event
        assert np.all(trace.events.name[named] == trace.memory.allocations.operator)


def test_every_device_task_leads_back_to_its_launch() -> None:
    trace = job().rank_trace(0).trace
    device = trace.events_of(TrackKind.DEVICE_STREAM, TrackKind.COMMUNICATION_GROUP)
    assert np.all(launch_events(trace)[device] != ABSENT)
    kinds = {trace.strings.text(kind) for kind in np.unique(trace.flows.kind)}
    assert kinds == {"async_npu", "HostToDevice"}
    assert np.all(trace.events.start_ns[trace.flows.source] <= trace.events.start_ns[trace.flows.target])


def test_level_0_knows_kernels_and_whole_collectives_only() -> None:
    trace = job(0).rank_trace(0).trace
    kinds = {track.kind for track in trace.tracks}
    assert TrackKind.CANN_THREAD not in kinds
    assert TrackKind.COMMUNICATION_PLANE not in kinds
    assert np.all(trace.kernels.op_type == ABSENT)
    assert np.all(trace.collectives.bytes == ABSENT)
    assert len(trace.links) == 0
    assert set(trace.tables) == {"step_trace_time"}


def test_only_the_profiled_steps_are_recorded() -> None:
    graph, result = run()
    trace = record_rank(graph, result, 0, RecorderSettings(steps=(1,)), small_memory(graph, result, 0))
    assert [step.step for step in steps(trace)] == [1]
    rows = (graph.rank == 0) & (graph.step == 1) & np.isin(graph.kind, (*KERNELS, TaskKind.COPY))
    assert len(trace.events_of(TrackKind.DEVICE_STREAM)) == np.count_nonzero(rows)
    assert trace.memory.allocations.allocated_at_ns.min() >= 0


def test_names_of_one_collective_are_equal_on_all_its_members() -> None:
    names = [
        set(job().rank_trace(rank).trace.strings.texts(job().rank_trace(rank).trace.collectives.name)) for rank in RANKS
    ]
    reduces = [{name for name in found if "allReduce" in name} for found in names]
    assert reduces[0] == reduces[1]
    assert reduces[2] == reduces[3]
    assert not reduces[0] & reduces[2]


def test_a_run_is_recorded_the_same_way_every_time_and_says_what_it_is() -> None:
    def columns(trace: Trace) -> list[list[int]]:
        return [trace.events.start_ns.tolist(), trace.events.name.tolist(), trace.flows.target.tolist()]

    graph, result = run()
    one, other = (record_rank(graph, result, 3, RecorderSettings(seed=5)) for _ in range(2))
    assert columns(one) == columns(other)
    assert one.origin is Origin.SIMULATED
    assert one.metadata.software["cann_version"] == "cannscope simulated"
    assert one.metadata.rank == 3
    assert one.metadata.world_size == 4


def test_a_rank_that_did_nothing_gives_an_empty_trace() -> None:
    graph, result = run()
    trace = record_rank(graph, result, 0, RecorderSettings(steps=(99,)))
    assert len(trace.events) == 0
    assert trace.tables == {}


def test_recording_costs_the_host_of_profiled_steps_only() -> None:
    graph, _ = run()
    profiled = with_profiling(graph, 1_000, steps=(1,))
    added = profiled.duration_ns - graph.duration_ns
    host = np.isin(graph.kind, (TaskKind.HOST, TaskKind.SYNCHRONIZE))
    assert np.all(added[host & (graph.step == 1)] == 1_000)
    assert np.all(added[~host | (graph.step == 0)] == 0)
    assert schedule(profiled).makespan_ns > schedule(graph).makespan_ns
    assert np.array_equal(with_profiling(graph, 0).duration_ns, graph.duration_ns)


def test_groups_have_decimal_hashes_whose_last_digits_tell_them_apart() -> None:
    builder = GraphBuilder()
    names = [f"tp_{4 * number}_{4 * number + 3}" for number in range(200)]
    builder.groups.extend(ParallelGroup(name, "tp", (0, 1)) for name in [*names, "17522688603477080586"])
    groups = hccl_groups(builder.build())
    assert groups["17522688603477080586"].id == "17522688603477080586"
    assert all(group.id.isdecimal() and group.id.endswith(group.digits) for name, group in groups.items() if name)
    assert len({group.digits for name, group in groups.items() if name}) == 201
    assert groups == hccl_groups(builder.build())


def test_analyses_know_the_group_of_every_collective() -> None:
    found = communication(job())
    assert {item.group_name for rows in found.collectives.values() for item in rows} == {"dp", "pp"}
    assert not found.diagnostics


def test_every_pair_that_sends_has_a_communicator_of_its_own() -> None:
    builder = GraphBuilder()
    builder.groups.append(ParallelGroup("pp_0_3", "pp", (0, 1, 2, 3)))
    group = builder.strings.intern("pp_0_3")
    for meeting, (sender, receiver) in enumerate(((0, 1), (1, 2), (2, 1), (3, 0))):
        for rank, name in ((sender, "hcom_send_"), (receiver, "hcom_receive_")):
            builder.add_tasks(
                1,
                rank=rank,
                group=group,
                rendezvous=meeting,
                kind=int(TaskKind.COLLECTIVE),
                name=builder.strings.intern(name),
            )
    builder.add_tasks(1, rank=0, group=group, kind=int(TaskKind.COLLECTIVE), name=builder.strings.intern("hcom_send_"))
    graph, parents = with_pair_groups(builder.build())
    assert [item.ranks for item in graph.groups] == [(0, 1, 2, 3), (0, 1), (0, 3), (1, 2)]
    ranks = {item.id: item.ranks for item in graph.groups}
    named = [ranks[text] for text in graph.strings.texts(graph.group)]
    assert named == [(0, 1)] * 2 + [(1, 2)] * 4 + [(0, 3)] * 2 + [(0, 1, 2, 3)]
    assert set(parents.values()) == {"pp_0_3"}
