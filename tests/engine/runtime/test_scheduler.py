import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import OperationCancelled
from engine.core.progress import CancelToken
from engine.graph.builder import GraphBuilder
from engine.graph.slicing import take_tasks
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.runtime.scheduler import Schedule, contention, memory_contention, schedule, uniform_slowdown
from tests.support.task_graphs import task_graphs


def collective(builder: GraphBuilder, rank: int, rendezvous: int, duration_ns: int, *before: int) -> int:
    return builder.add_task(
        "hcom_allReduce__1_0_1",
        TaskKind.COLLECTIVE,
        *before,
        rank=rank,
        stream=Stream.COMMUNICATION,
        duration_ns=duration_ns,
        rendezvous=rendezvous,
    )


def compute(builder: GraphBuilder, duration_ns: int, *before: int, rank: int = 0) -> int:
    return builder.add_task("MatMul", TaskKind.CUBE, *before, rank=rank, stream=Stream.COMPUTE, duration_ns=duration_ns)


def test_a_queue_runs_its_tasks_in_order_and_queues_run_beside_each_other() -> None:
    builder = GraphBuilder()
    launches = [builder.add_task("launch", TaskKind.HOST, duration_ns=10) for _ in range(3)]
    for launch in launches:
        compute(builder, 25, launch)
    result = schedule(builder.build())
    assert result.start_ns.tolist() == [0, 10, 20, 10, 35, 60]
    assert result.end_ns.tolist() == [10, 20, 30, 35, 60, 85]
    assert result.makespan_ns == 85


def test_the_transfer_starts_when_the_last_member_arrives() -> None:
    builder = GraphBuilder()
    slow = compute(builder, 100, rank=0)
    quick = compute(builder, 30, rank=1)
    meeting = builder.new_rendezvous()
    late = collective(builder, 0, meeting, 40, slow)
    early = collective(builder, 1, meeting, 40, quick)
    result = schedule(builder.build())
    assert result.start_ns[[late, early]].tolist() == [100, 30]
    assert result.transfer_ns[[late, early]].tolist() == [100, 100]
    assert result.end_ns[[late, early]].tolist() == [140, 140]


def test_the_slowest_members_part_decides_how_long_a_transfer_takes() -> None:
    builder = GraphBuilder()
    meeting = builder.new_rendezvous()
    collective(builder, 0, meeting, 40)
    collective(builder, 1, meeting, 70)
    assert schedule(builder.build()).end_ns.tolist() == [70, 70]


def test_a_synchronising_host_waits_for_the_device() -> None:
    builder = GraphBuilder()
    launch = builder.add_task("launch", TaskKind.HOST, duration_ns=10)
    kernel = compute(builder, 500, launch)
    builder.add_task("aclrtSynchronizeDevice", TaskKind.SYNCHRONIZE, kernel, duration_ns=5)
    builder.add_task("next", TaskKind.HOST, duration_ns=10)
    assert schedule(builder.build()).end_ns.tolist() == [10, 510, 515, 525]


def test_computing_is_slowed_for_exactly_as_long_as_its_rank_transfers() -> None:
    builder = GraphBuilder()
    compute(builder, 1_000)
    before = builder.add_task("copy", TaskKind.COPY, stream=Stream.COPY, duration_ns=200)
    meeting = builder.new_rendezvous()
    collective(builder, 0, meeting, 300, before)
    graph = builder.build()
    # 200 alone, then 300 at 1 ÷ 1.5 of the speed (200 done), then 600 alone.
    assert schedule(graph, uniform_slowdown(graph, 0.5)).end_ns[0] == 1_100
    assert schedule(graph).end_ns[0] == 1_000


def test_a_task_that_starts_beside_a_transfer_is_slowed_from_its_start() -> None:
    builder = GraphBuilder()
    collective(builder, 0, builder.new_rendezvous(), 900)
    compute(builder, 100)
    compute(builder, 1_000)
    graph = builder.build()
    # 100 take 150; in the 750 left of the transfer the second does 500 of its 1,000.
    assert schedule(graph, uniform_slowdown(graph, 0.5)).end_ns.tolist() == [900, 150, 1_400]


def test_waiting_for_members_slows_nothing() -> None:
    builder = GraphBuilder()
    meeting = builder.new_rendezvous()
    collective(builder, 0, meeting, 10)
    compute(builder, 100, rank=0)
    blocker = compute(builder, 5_000, rank=1)
    collective(builder, 1, meeting, 10, blocker)
    graph = builder.build()
    assert schedule(graph, uniform_slowdown(graph, 0.5)).end_ns[1] == 100


def test_only_tasks_bound_by_memory_notice_what_a_transfer_takes_of_it() -> None:
    builder = GraphBuilder()
    for moved in (0.0, 500.0, 900.0, 1_000.0, 5_000.0):
        builder.add_task("op", TaskKind.VECTOR, stream=Stream.COMPUTE, duration_ns=1_000, bytes=moved)
    builder.add_task("host", TaskKind.HOST, duration_ns=1_000, bytes=1_000.0)
    builder.add_task("nothing", TaskKind.VECTOR, stream=Stream.COMPUTE, bytes=1_000.0)
    ratios = memory_contention(builder.build(), memory_bytes_per_s=1e9, contention_ratio=0.2)
    np.testing.assert_allclose(ratios, [0, 0.0164, 0.1426, 0.2, 0.2, 0, 0], atol=1e-3)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_who_moves_more_is_slowed_more(one: float, other: float, ratio: float) -> None:
    less, more = contention([1_000, 1_000], sorted([1_000 * one, 1_000 * other]), 1e9, ratio)
    assert -1e-12 <= less <= more <= ratio + 1e-9


def test_an_empty_graph_is_done_at_once() -> None:
    result = schedule(GraphBuilder().build())
    assert result.is_complete
    assert result.makespan_ns == 0


def test_scheduling_can_be_cancelled() -> None:
    builder = GraphBuilder()
    builder.add_tasks(300_000, name=builder.strings.intern("a"), duration_ns=1)
    with pytest.raises(OperationCancelled):
        schedule(builder.build(), cancel=CancelToken(lambda: True))


def longest_path_ns(graph: TaskGraph, result: Schedule) -> list[int]:
    """Ends by raising them until every rule holds: what the event loop must agree with where nothing is slowed."""
    waits = [graph.predecessors_of(task).tolist() for task in range(len(graph))]
    for task, after in enumerate(result.chains.next_task.tolist()):
        if after >= 0:
            waits[after].append(task)
    instances = result.meetings.instance.tolist()
    members = [
        result.meetings.members(instance).tolist() if instance >= 0 else [task]
        for task, instance in enumerate(instances)
    ]
    end = [0] * len(graph)
    while True:
        start = [max((end[wait] for wait in waits[task]), default=0) for task in range(len(graph))]
        raised = [
            max(start[member] for member in met) + max(int(graph.duration_ns[member]) for member in met)
            for met in members
        ]
        if raised == end:
            return end
        end = raised


@given(task_graphs())
def test_without_interference_every_end_is_the_longest_path_to_it(graph: TaskGraph) -> None:
    result = schedule(graph)
    assert result.is_complete
    assert result.end_ns.tolist() == longest_path_ns(graph, result)


@given(task_graphs(), st.floats(0, 2))
def test_rules_hold_whatever_is_slowed(graph: TaskGraph, ratio: float) -> None:
    result = schedule(graph, uniform_slowdown(graph, ratio))
    assert result.is_complete
    assert np.all(result.end_ns - result.transfer_ns >= graph.duration_ns)
    assert np.all(result.transfer_ns >= result.start_ns)
    for task in range(len(graph)):
        assert all(result.end_ns[before] <= result.start_ns[task] for before in graph.predecessors_of(task))
    followed = result.chains.next_task >= 0
    assert np.all(result.end_ns[followed] <= result.start_ns[result.chains.next_task[followed]])
    busiest = np.bincount(result.chains.queue, weights=graph.duration_ns).max()
    assert result.makespan_ns >= busiest
    unslowed = schedule(graph)
    assert result.makespan_ns >= unslowed.makespan_ns
    assert result.makespan_ns <= unslowed.makespan_ns * (1 + ratio) + len(graph)


@given(task_graphs(), st.randoms(use_true_random=False))
def test_removing_work_never_lengthens_a_schedule(graph: TaskGraph, random) -> None:
    alone = graph.rendezvous < 0
    chosen = np.array([not lonely or random.random() < 0.7 for lonely in alone])
    part, _ = take_tasks(graph, chosen)
    assert schedule(part).makespan_ns <= schedule(graph).makespan_ns


@given(task_graphs(), st.floats(0, 2))
def test_equal_graphs_give_equal_schedules(graph: TaskGraph, ratio: float) -> None:
    one, other = (schedule(graph, uniform_slowdown(graph, ratio)) for _ in range(2))
    for name in ("start_ns", "transfer_ns", "end_ns"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
