import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.builder import GraphBuilder
from engine.graph.checks import topological_order
from engine.graph.task_graph import BufferTag, Stream, TaskGraph, TaskKind
from engine.optimizations.fusion.circles import on_circles
from engine.optimizations.fusion.rewriting import fuse_tasks
from engine.optimizations.fusion.task_groups import TaskGroups
from engine.runtime.scheduler import schedule
from engine.trace.trace import ParallelGroup
from tests.support.task_graphs import task_graphs

US = 1_000
DISPATCH_NS = 10 * US
NO_LIMIT = np.full(8, 1 << 40, dtype=np.int64)


def groups(*members: list[int], duration_ns: int = US, keeps_results: bool = False) -> TaskGroups:
    lengths = [len(tasks) for tasks in members]
    return TaskGroups(
        offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        tasks=np.array([task for tasks in members for task in tasks], dtype=np.int32),
        kernel=("Fused",) * len(members),
        kind=np.full(len(members), TaskKind.MIX, dtype=np.uint8),
        duration_ns=np.full(len(members), duration_ns, dtype=np.int64),
        bytes=np.full(len(members), 5.0),
        keeps_results=np.full(len(members), keeps_results),
    )


def launched(
    builder: GraphBuilder, name: str, *before: int, stream: int = Stream.COMPUTE, host_ns: int = DISPATCH_NS
) -> int:
    host = builder.add_task(f"aten::{name}", TaskKind.HOST, duration_ns=host_ns)
    return builder.add_task(name, TaskKind.VECTOR, host, *before, stream=stream, duration_ns=5 * US)


def chain(*names: str) -> tuple[TaskGraph, list[int]]:
    builder = GraphBuilder()
    tasks = [launched(builder, name) for name in names]
    return builder.build(), tasks


def names_of(graph: TaskGraph) -> list[str]:
    return [graph.operator(task) for task in range(len(graph))]


def test_a_group_becomes_one_kernel_with_one_launch() -> None:
    graph, tasks = chain("a", "b", "c", "d")
    result = fuse_tasks(graph, groups(tasks[1:3]), NO_LIMIT)
    assert names_of(result.graph) == ["aten::a", "a", "aten::b", "Fused", "aten::d", "d"]
    assert result.removed_host_ns == DISPATCH_NS
    fused = names_of(result.graph).index("Fused")
    assert result.graph.duration_ns[fused] == US
    assert result.graph.kind[fused] == TaskKind.MIX
    assert result.graph.predecessors_of(fused).tolist() == [2]
    assert schedule(graph).makespan_ns - schedule(result.graph).makespan_ns == DISPATCH_NS


def test_what_waited_for_a_member_waits_for_the_fused_kernel_and_it_for_what_they_waited_for() -> None:
    builder = GraphBuilder()
    copy = launched(builder, "copy", stream=Stream.COPY)
    first = launched(builder, "a")
    second = launched(builder, "b", copy)
    launched(builder, "after", second, stream=Stream.COPY)
    result = fuse_tasks(builder.build(), groups([first, second]), NO_LIMIT).graph
    names = names_of(result)
    fused, after = names.index("Fused"), names.index("after")
    assert [names[task] for task in result.predecessors_of(fused)] == ["aten::a", "copy"]
    assert [names[task] for task in result.predecessors_of(after)] == ["aten::after", "Fused"]


def test_what_a_launch_does_not_take_stays_as_host_time() -> None:
    builder = GraphBuilder()
    tasks = [launched(builder, "a"), launched(builder, "b", host_ns=700 * US)]
    result = fuse_tasks(builder.build(), groups(tasks), np.array([DISPATCH_NS]))
    assert result.graph.duration_ns.tolist() == [DISPATCH_NS, US, 690 * US]


def test_a_group_that_something_has_to_run_inside_stays_as_it_is() -> None:
    builder = GraphBuilder()
    first = launched(builder, "a")
    transfer = launched(builder, "transfer", first, stream=Stream.COMMUNICATION)
    second = launched(builder, "b", transfer)
    graph = builder.build()
    result = fuse_tasks(graph, groups([first, second]), NO_LIMIT)
    assert result.graph is graph
    assert result.done.tolist() == [False]


def test_two_ranks_that_meet_between_members_are_no_chain_either() -> None:
    builder = GraphBuilder()
    meeting = builder.new_rendezvous()
    ends = {}
    for rank in (0, 1):
        first = builder.add_task("a", TaskKind.VECTOR, rank=rank, stream=Stream.COMPUTE, duration_ns=US)
        given_to = builder.add_task(
            "t", TaskKind.COLLECTIVE, first, rank=rank, stream=Stream.COMMUNICATION, rendezvous=meeting
        )
        ends[rank] = (first, given_to)
    # Rank 0 waits for what rank 1's member of the meeting gave it.
    second = builder.add_task("b", TaskKind.VECTOR, ends[1][1], rank=0, stream=Stream.COMPUTE, duration_ns=US)
    result = fuse_tasks(builder.build(), groups([ends[0][0], second]), NO_LIMIT)
    assert result.done.tolist() == [False]


def test_what_runs_between_members_runs_before_the_fused_kernel() -> None:
    graph, tasks = chain("silu", "matmul", "mul")
    result = fuse_tasks(graph, groups([tasks[0], tasks[2]]), NO_LIMIT)
    assert names_of(result.graph) == ["aten::matmul", "matmul", "aten::mul", "Fused"]


def test_blocks_of_intermediates_vanish_and_the_result_moves_to_the_launch_that_stays() -> None:
    builder = GraphBuilder()
    tasks = [launched(builder, name) for name in ("a", "b", "c")]
    common = {"stream": Stream.COMPUTE, "name": 0, "operator": 0, "tag": BufferTag.TEMPORARY}
    builder.add_buffers(3, size_bytes=[10, 20, 30], allocated_by=[0, 2, 4], freed_by=[4, 4, -1], **common)
    graph = builder.build()
    fused = fuse_tasks(graph, groups(tasks[:2]), NO_LIMIT).graph.buffers
    assert fused.size_bytes.tolist() == [20, 30]
    assert fused.allocated_by.tolist() == [0, 2]
    assert fused.freed_by.tolist() == [2, -1]
    kept = fuse_tasks(graph, groups(tasks[:2], keeps_results=True), NO_LIMIT).graph.buffers
    assert kept.size_bytes.tolist() == [10, 20, 30]


@pytest.mark.parametrize("edges", [[], [(0, 1), (1, 2)], [(0, 1), (1, 0), (1, 2)], [(0, 1), (1, 2), (2, 0), (3, 0)]])
def test_circles_are_found_where_there_are_any(edges: list[tuple[int, int]]) -> None:
    before, after = (np.array([edge[side] for edge in edges], dtype=np.int32) for side in (0, 1))
    on = set(np.flatnonzero(on_circles(before, after, 4)).tolist())
    assert on == ({0, 1, 2} if (2, 0) in edges else {0, 1} if (1, 0) in edges else set())


@st.composite
def graphs_with_groups(draw: st.DrawFn) -> tuple[TaskGraph, TaskGroups]:
    graph = draw(task_graphs())
    device = [task for task in range(len(graph)) if graph.stream[task] == Stream.COMPUTE]
    parts: list[list[int]] = []
    for rank in sorted(set(graph.rank[device].tolist())):
        own = [task for task in device if graph.rank[task] == rank]
        while len(own) > 1:
            size = draw(st.integers(1, len(own)))
            if size > 1:
                parts.append(own[:size])
            own = own[size:]
    return graph, groups(*parts, duration_ns=0)


@given(graphs_with_groups())
def test_fusing_keeps_the_graph_in_order_and_never_lengthens_the_run(case: tuple[TaskGraph, TaskGroups]) -> None:
    graph, chosen = case
    result = fuse_tasks(graph, chosen, NO_LIMIT)
    assert len(topological_order(result.graph)) == len(result.graph)
    before, after = schedule(graph), schedule(result.graph)
    assert after.is_complete
    if not np.any(result.done):
        assert result.graph is graph
    assert len(result.graph) <= len(graph)
    assert int(after.makespan_ns) <= int(before.makespan_ns) + _joined_wait_ns(graph, before.end_ns, chosen)


def _joined_wait_ns(graph: TaskGraph, end_ns: np.ndarray, chosen: TaskGroups) -> int:
    """A member's early result now waits for the inputs of the others; the run may be longer by that much at most."""
    return int(end_ns.max(initial=0)) if len(chosen) else 0


def with_gap(builder: GraphBuilder, name: str, gap_ns: int, *before: int) -> int:
    host = builder.add_task(f"aten::{name}", TaskKind.HOST, duration_ns=DISPATCH_NS)
    builder.add_task("gap", TaskKind.GAP, host, *before, stream=Stream.COMPUTE, duration_ns=gap_ns)
    return builder.add_task(name, TaskKind.VECTOR, host, *before, stream=Stream.COMPUTE, duration_ns=5 * US)


def test_the_gap_in_front_of_a_vanishing_kernel_goes_as_far_as_a_launch_explains_it() -> None:
    builder = GraphBuilder()
    tasks = [launched(builder, "a"), with_gap(builder, "b", DISPATCH_NS), with_gap(builder, "c", 700 * US)]
    result = fuse_tasks(builder.build(), groups(tasks), np.array([DISPATCH_NS])).graph
    assert names_of(result) == ["aten::a", "Fused", "gap"]
    assert result.duration_ns.tolist() == [DISPATCH_NS, US, 690 * US]


def test_the_gap_in_front_of_a_fused_kernel_waits_for_the_same_tasks() -> None:
    builder = GraphBuilder()
    copy = launched(builder, "copy", stream=Stream.COPY)
    tasks = [with_gap(builder, "a", US), launched(builder, "b", copy)]
    result = fuse_tasks(builder.build(), groups(tasks), NO_LIMIT).graph
    names = names_of(result)
    for task in ("gap", "Fused"):
        waits = [names[before] for before in result.predecessors_of(names.index(task))]
        assert waits == ["aten::a", "copy"]


def test_a_collective_of_one_rank_between_members_exchanges_nothing() -> None:
    builder = GraphBuilder(groups=[ParallelGroup("alone", "tp", (0,))])
    first = launched(builder, "a")
    lonely = builder.add_task(
        "hcom_allReduce_",
        TaskKind.COLLECTIVE,
        first,
        stream=Stream.COMMUNICATION,
        group=builder.strings.intern("alone"),
    )
    second = launched(builder, "b", lonely)
    result = fuse_tasks(builder.build(), groups([first, second]), NO_LIMIT)
    assert result.done.tolist() == [True]
    names = names_of(result.graph)
    assert [names[task] for task in result.graph.predecessors_of(names.index("hcom_allReduce_"))] == ["Fused"]


@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)), min_size=2, max_size=30),
    st.data(),
)
def test_removing_work_from_a_stream_never_lengthens_the_run(times: list[tuple[int, int]], data: st.DataObject) -> None:
    builder = GraphBuilder()
    tasks = []
    for number, (host_ns, device_ns) in enumerate(times):
        host = builder.add_task(f"aten::op{number}", TaskKind.HOST, duration_ns=host_ns)
        tasks.append(
            builder.add_task(f"op{number}", TaskKind.VECTOR, host, stream=Stream.COMPUTE, duration_ns=device_ns)
        )
    first = data.draw(st.integers(0, len(tasks) - 2))
    last = data.draw(st.integers(first + 2, len(tasks)))
    graph = builder.build()
    busy_ns = int(graph.duration_ns[tasks[first:last]].sum())
    fused = groups(tasks[first:last], duration_ns=data.draw(st.integers(0, busy_ns)))
    limit = np.array([data.draw(st.integers(0, 1_000))])
    result = fuse_tasks(graph, fused, limit)
    assert result.done.tolist() == [True]
    before, after = schedule(graph).makespan_ns, schedule(result.graph).makespan_ns
    # The fused kernel is launched with the first one; of a kernel that only waited for its launch nothing is lost.
    assert after <= before
