import numpy as np

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskKind
from engine.optimizations.fusion.task_lookup import launch_limit_ns, tasks_of_events
from engine.optimizations.interface import Bound


def test_what_a_launch_takes_ignores_warming_up() -> None:
    builder = GraphBuilder()
    for duration_ns in [10, 20, 30, 40] * 5 + [1_000_000]:
        builder.add_task("op", TaskKind.HOST, rank=1, duration_ns=duration_ns)
    graph = builder.build()
    limits = [launch_limit_ns(graph, bound).tolist() for bound in Bound]
    assert limits == [[0, 20], [0, 40], [0, 70]]


def test_events_are_told_apart_by_rank_and_host_tasks_are_none_of_them() -> None:
    builder = GraphBuilder()
    builder.add_task("host", TaskKind.HOST, origin_event=3)
    for rank in (0, 1):
        builder.add_task("op", TaskKind.VECTOR, rank=rank, stream=Stream.COMPUTE, origin_event=7)
    graph = builder.build()
    events = np.array([3, 7, 9], dtype=np.int32)
    assert tasks_of_events(graph, 0, events).tolist() == [-1, 1, -1]
    assert tasks_of_events(graph, 1, events).tolist() == [-1, 2, -1]
    assert tasks_of_events(graph, 2, events).tolist() == [-1, -1, -1]
