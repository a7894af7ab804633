from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskKind
from engine.runtime.deadlock import Deadlock, DeadlockCause, find_deadlock
from engine.runtime.scheduler import schedule
from engine.trace.trace import ParallelGroup
from tests.support.swapped_collectives import swapped_collectives


def job(rank_count: int = 2, name: str = "dp") -> GraphBuilder:
    builder = GraphBuilder()
    builder.groups.append(ParallelGroup("7", name, tuple(range(rank_count))))
    return builder


def call(builder: GraphBuilder, name: str, rank: int, rendezvous: int, size: float = 1e6, stream: int = 2) -> int:
    return builder.add_task(
        name,
        TaskKind.COLLECTIVE,
        rank=rank,
        stream=stream,
        duration_ns=1_000,
        rendezvous=rendezvous,
        group=builder.strings.intern("7"),
        bytes=size,
    )


def report(builder: GraphBuilder) -> Deadlock:
    graph = builder.build()
    found = find_deadlock(graph, schedule(graph))
    assert found is not None
    return found


def test_a_run_that_finishes_has_none() -> None:
    builder = job()
    meeting = builder.new_rendezvous()
    for rank in (0, 1):
        call(builder, "hcom_allReduce__7_0_1", rank, meeting)
    graph = builder.build()
    assert find_deadlock(graph, schedule(graph)) is None


def test_collectives_entered_in_different_orders_name_ranks_and_operators() -> None:
    builder = job()
    reduce, gather = builder.new_rendezvous(2), 1
    call(builder, "hcom_allReduce__7_0_1", 0, reduce)
    call(builder, "hcom_allGather__7_1_1", 0, gather)
    call(builder, "hcom_allGather__7_1_1", 1, gather)
    call(builder, "hcom_allReduce__7_0_1", 1, reduce)
    found = report(builder)
    assert found.cause is DeadlockCause.COLLECTIVE_ORDER
    assert found.ranks == (0, 1)
    assert set(found.operators) == {"hcom_allReduce__7_0_1", "hcom_allGather__7_1_1"}
    assert found.cycle == (
        "rank 0 waits in hcom_allReduce__7_0_1 for rank 1 to join, which stands behind hcom_allGather__7_1_1",
        "rank 1 waits in hcom_allGather__7_1_1 for rank 0 to join, which stands behind hcom_allReduce__7_0_1",
    )
    assert found.waiting_task_count == 4


def test_members_that_call_different_operators_never_start() -> None:
    builder = job()
    meeting = builder.new_rendezvous()
    call(builder, "hcom_allReduce__7_0_1", 0, meeting)
    call(builder, "hcom_allGather__7_0_1", 1, meeting)
    found = report(builder)
    assert found.cause is DeadlockCause.DIFFERENT_OPERATORS
    assert found.operators == ("hcom_allReduce__7_0_1", "hcom_allGather__7_0_1")


def test_members_that_pass_different_sizes_never_start() -> None:
    builder = job()
    meeting = builder.new_rendezvous()
    call(builder, "hcom_allReduce__7_0_1", 0, meeting, 1_000)
    call(builder, "hcom_allReduce__7_0_1", 1, meeting, 2_000)
    found = report(builder)
    assert found.cause is DeadlockCause.DIFFERENT_SIZES
    assert found.cycle[1] == "rank 1 waits in hcom_allReduce__7_0_1 (2000 bytes)"


def test_all_to_all_may_pass_different_sizes() -> None:
    builder = job()
    meeting = builder.new_rendezvous()
    call(builder, "hcom_alltoallv__7_0_1", 0, meeting, 1_000)
    call(builder, "hcom_alltoallv__7_0_1", 1, meeting, 2_000)
    assert schedule(builder.build()).is_complete


def test_a_member_that_never_calls_is_named() -> None:
    builder = job(4)
    meeting = builder.new_rendezvous()
    for rank in (0, 1, 3):
        call(builder, "hcom_allReduce__7_0_1", rank, meeting)
    found = report(builder)
    assert found.cause is DeadlockCause.MISSING_MEMBERS
    assert found.ranks == (0, 1, 2, 3)
    assert "waits for ranks 2" in found.message


def test_a_receive_without_a_send_waits_for_its_peer() -> None:
    builder = job(4, "pp")
    call(builder, "hcom_receive__7_0_1", 1, builder.new_rendezvous())
    found = report(builder)
    assert found.cause is DeadlockCause.MISSING_MEMBERS
    assert "its peer" in found.message


def test_stages_that_wait_for_each_other_are_told_as_stages() -> None:
    """Both stages send first; a send completes only when the other side receives."""
    builder = job(2, "pp")
    forward, backward = builder.new_rendezvous(2), 1
    stream = Stream.POINT_TO_POINT
    call(builder, "hcom_send__7_0_1", 0, forward, stream=stream)
    call(builder, "hcom_receive__7_1_1", 0, backward, stream=stream)
    call(builder, "hcom_send__7_1_1", 1, backward, stream=stream)
    call(builder, "hcom_receive__7_0_1", 1, forward, stream=stream)
    found = report(builder)
    assert found.cause is DeadlockCause.STAGE_DEPENDENCY
    assert found.stage_dependency == "stage 0 → stage 1 → stage 0"
    assert found.ranks == (0, 1)
    assert found.operators == ("hcom_send__7_0_1", "hcom_send__7_1_1")


def test_a_circle_of_waits_is_reported_not_hung_on() -> None:
    builder = GraphBuilder()
    builder.add_task("forward", TaskKind.CUBE, 1, stream=Stream.COMPUTE)
    builder.add_task("copy", TaskKind.COPY, 0, stream=Stream.COPY)
    found = report(builder)
    assert found.cause is DeadlockCause.DEPENDENCY
    assert found.operators == ("forward", "copy")


def test_a_large_job_with_one_mistake_is_explained() -> None:
    graph = swapped_collectives(rank_count=64, call_count=4_000, wrong_rank=37, wrong_call=3_000)
    found = find_deadlock(graph, schedule(graph))
    assert found is not None
    assert 37 in found.ranks
