from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from engine.core.errors import CyclicTaskGraphError, ScenarioError
from engine.graph.builder import GraphBuilder
from engine.graph.checks import topological_order
from engine.graph.collective_kinds import CollectiveKind, collective_kind
from engine.graph.slicing import rank_slice
from engine.graph.streams import stream_chains
from engine.graph.task_graph import BufferTag, Stream, TaskGraph, TaskKind
from tests.support.task_graphs import task_graphs


def test_batches_become_columns_and_rows_of_predecessors() -> None:
    builder = GraphBuilder()
    first = builder.add_tasks(3, name=builder.strings.intern_all(["a", "b", "c"]), duration_ns=[1, 2, 3])
    second = builder.add_tasks(2, [[0, 2], [-1, 1]], name=builder.strings.intern("d"), kind=TaskKind.CUBE, rank=1)
    graph = builder.build()
    assert (first, second, len(graph)) == (0, 3, 5)
    assert [graph.predecessors_of(task).tolist() for task in range(5)] == [[], [], [], [0, 2], [1]]
    assert [graph.operator(task) for task in range(5)] == ["a", "b", "c", "d", "d"]
    assert graph.kind.tolist() == [TaskKind.HOST] * 3 + [TaskKind.CUBE] * 2
    assert not graph.duration_ns.flags.writeable


def test_edges_keep_the_order_they_were_given_in() -> None:
    builder = GraphBuilder()
    builder.add_tasks(4, name=builder.strings.intern("a"))
    builder.add_edges([2, 0], [3, 3])
    builder.add_edges([1, -1], [3, 3])
    assert builder.build().predecessors_of(3).tolist() == [2, 0, 1]


def test_an_edge_to_a_task_that_does_not_exist_is_refused() -> None:
    builder = GraphBuilder()
    builder.add_task("a", TaskKind.HOST, 7)
    with pytest.raises(ValueError, match="beyond the 1"):
        builder.build()


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        GraphBuilder().add_tasks(1, name=0, colour=1)


def test_columns_of_different_lengths_are_refused() -> None:
    builder = GraphBuilder()
    builder.add_task("a", TaskKind.HOST)
    with pytest.raises(ValueError, match="rank"):
        replace(builder.build(), rank=np.zeros(2, dtype=np.int32))


def test_an_empty_graph_has_no_queues_and_an_empty_order() -> None:
    graph = GraphBuilder().build()
    assert len(stream_chains(graph)) == 0
    assert len(topological_order(graph)) == 0


def test_queues_hold_their_tasks_in_program_order() -> None:
    builder = GraphBuilder()
    for rank, stream in [(1, 0), (0, 1), (1, 0), (0, 1), (0, 0), (1, 0)]:
        builder.add_task("a", TaskKind.HOST, rank=rank, stream=stream)
    chains = stream_chains(builder.build())
    assert list(zip(chains.rank.tolist(), chains.stream.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0)]
    assert chains.first_task.tolist() == [4, 1, 0]
    assert chains.next_task.tolist() == [2, 3, 5, -1, -1, -1]


@given(task_graphs())
def test_the_order_keeps_predecessors_and_streams(graph: TaskGraph) -> None:
    order = topological_order(graph)
    position = np.empty(len(graph), dtype=np.int64)
    position[order] = np.arange(len(graph))
    for task in range(len(graph)):
        assert all(position[before] < position[task] for before in graph.predecessors_of(task))
    chains = stream_chains(graph)
    followed = chains.next_task >= 0
    assert np.all(position[followed] < position[chains.next_task[followed]])


def test_a_circle_names_its_operators() -> None:
    builder = GraphBuilder()
    builder.add_task("load", TaskKind.HOST)
    builder.add_task("forward", TaskKind.CUBE, 2, stream=Stream.COMPUTE)
    builder.add_task("copy", TaskKind.COPY, 3, stream=Stream.COPY)
    builder.add_task("backward", TaskKind.CUBE, stream=Stream.COMPUTE)
    with pytest.raises(CyclicTaskGraphError, match=r"copy \(rank 0\)") as caught:
        topological_order(builder.build())
    assert {name.split()[0] for name in caught.value.operators} == {"forward", "backward", "copy"}
    assert isinstance(caught.value, ScenarioError)


def test_a_long_circle_is_cut_in_the_middle() -> None:
    builder = GraphBuilder()
    builder.add_tasks(100, [[99], *([-1],) * 99], name=builder.strings.intern("a"))
    with pytest.raises(CyclicTaskGraphError, match="88 more"):
        topological_order(builder.build())


@given(task_graphs())
def test_the_slices_of_all_ranks_hold_every_task_once(graph: TaskGraph) -> None:
    seen = []
    for rank in range(int(graph.rank.max()) + 1):
        part, tasks = rank_slice(graph, rank)
        seen += tasks.tolist()
        assert np.all(part.rank == rank)
        for position, task in enumerate(tasks.tolist()):
            local = [int(tasks[before]) for before in part.predecessors_of(position)]
            assert local == [before for before in graph.predecessors_of(task) if graph.rank[before] == rank]
    assert sorted(seen) == list(range(len(graph)))


def test_a_slice_keeps_the_buffers_its_tasks_allocate() -> None:
    builder = GraphBuilder()
    for rank in (0, 1, 0):
        builder.add_task("a", TaskKind.HOST, rank=rank)
    word = builder.strings.intern("weight")
    columns = {"stream": 1, "name": word, "operator": word, "tag": BufferTag.STEP}
    builder.add_buffers(3, size_bytes=[10, 20, 30], allocated_by=[0, 1, 2], freed_by=[2, -1, -1], **columns)
    part, tasks = rank_slice(builder.build(), 0)
    assert tasks.tolist() == [0, 2]
    assert part.buffers.size_bytes.tolist() == [10, 30]
    assert part.buffers.allocated_by.tolist() == [0, 1]
    assert part.buffers.freed_by.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("hcom_allReduce__271_0_1", CollectiveKind.ALL_REDUCE),
        ("hcom_reduceScatter__1_0_1", CollectiveKind.REDUCE_SCATTER),
        ("ncclDevKernel_AllGather_RING_LL", CollectiveKind.ALL_GATHER),
        ("hcom_alltoallv_", CollectiveKind.ALL_TO_ALL),
        ("hcom_batchSendRecv__128_3_1", CollectiveKind.SEND_RECEIVE),
        ("hcom_receive__1_0_1", CollectiveKind.RECEIVE),
        ("hcom_send__1_0_1", CollectiveKind.SEND),
        ("broadcast", CollectiveKind.BROADCAST),
        ("hcom_reduce__1_0_1", CollectiveKind.REDUCE),
        ("MatMul", CollectiveKind.UNKNOWN),
    ],
)
def test_a_name_says_what_a_collective_does(name: str, kind: CollectiveKind) -> None:
    assert collective_kind(name) is kind
