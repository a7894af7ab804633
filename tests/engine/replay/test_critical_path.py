"""The critical path: gapless, as long as the run, and along what tasks really waited for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.replay.critical_path import CriticalPath, critical_path
from engine.runtime.scheduler import schedule
from tests.support.simulated_job import small_job


def path_of(graph: TaskGraph) -> CriticalPath:
    return critical_path(graph, schedule(graph))


def names(graph: TaskGraph, path: CriticalPath) -> list[str]:
    return [graph.operator(task) for task in path.task.tolist()]


def test_it_follows_the_longer_of_two_branches() -> None:
    builder = GraphBuilder()
    launch = builder.add_task("launch", TaskKind.HOST, rank=0, duration_ns=5)
    builder.add_task("short", TaskKind.CUBE, launch, rank=0, stream=Stream.COMPUTE, duration_ns=10)
    long = builder.add_task("long", TaskKind.COPY, launch, rank=0, stream=Stream.COPY, duration_ns=30)
    builder.add_task("last", TaskKind.VECTOR, long, rank=0, stream=Stream.COMPUTE, duration_ns=7)
    graph = builder.build()
    path = path_of(graph)
    assert names(graph, path) == ["launch", "long", "last"]
    assert path.by_kind(graph) == {TaskKind.COPY: 30, TaskKind.VECTOR: 7, TaskKind.HOST: 5}


def test_a_collective_leads_to_the_member_that_came_last() -> None:
    builder = GraphBuilder()
    meeting = builder.new_rendezvous()
    for rank, work in ((0, 10), (1, 40)):
        own = builder.add_task(f"work {rank}", TaskKind.CUBE, rank=rank, stream=Stream.COMPUTE, duration_ns=work)
        builder.add_task(
            "allreduce",
            TaskKind.COLLECTIVE,
            own,
            rank=rank,
            stream=Stream.COMMUNICATION,
            duration_ns=6,
            rendezvous=meeting,
        )
    graph = builder.build()
    path = path_of(graph)
    assert names(graph, path) == ["work 1", "allreduce"]
    assert path.length_ns == 46
    assert path.by_rank(graph)[1] >= 40


def test_the_path_of_a_whole_job_is_as_long_as_the_job_and_has_no_gap() -> None:
    graph = small_job()
    ran = schedule(graph)
    path = critical_path(graph, ran)
    assert path.length_ns == ran.makespan_ns
    assert np.array_equal(path.start_ns[1:], path.end_ns[:-1])
    assert path.start_ns[0] == 0


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=40))
def test_no_run_is_shorter_than_its_critical_path(tasks: list[tuple[int, int, int]]) -> None:
    builder = GraphBuilder()
    for index, (stream, duration, back) in enumerate(tasks):
        needs = [index - 1 - back] if index - 1 - back >= 0 else []
        builder.add_task(f"t{index}", TaskKind.VECTOR, *needs, rank=0, stream=stream, duration_ns=duration)
    graph = builder.build()
    ran = schedule(graph)
    path = critical_path(graph, ran)
    assert path.length_ns == ran.makespan_ns
    assert int(graph.duration_ns[path.task].sum()) == ran.makespan_ns


def test_nothing_has_no_critical_path() -> None:
    assert len(path_of(GraphBuilder().build())) == 0
