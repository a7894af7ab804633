"""Task graphs for tests: random ones, and small training jobs with pipeline stages."""

from hypothesis import strategies as st

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.trace.trace import ParallelGroup

KINDS = {
    Stream.HOST: TaskKind.HOST,
    Stream.COMPUTE: TaskKind.CUBE,
    Stream.COMMUNICATION: TaskKind.COLLECTIVE,
    Stream.POINT_TO_POINT: TaskKind.COLLECTIVE,
    Stream.COPY: TaskKind.COPY,
}


@st.composite
def task_graphs(draw: st.DrawFn, max_tasks: int = 40, max_ranks: int = 3) -> TaskGraph:
    """Draws a graph without circles: tasks wait for earlier ones; some steps are collectives of all ranks."""
    builder = GraphBuilder()
    rank_count = draw(st.integers(1, max_ranks))
    builder.groups.append(ParallelGroup("world", "world", tuple(range(rank_count))))
    group = builder.strings.intern("world")
    for number in range(draw(st.integers(1, max_tasks))):
        duration_ns = draw(st.integers(0, 1_000))
        before = draw(st.lists(st.integers(-1, builder.task_count - 1), max_size=3))
        if draw(st.integers(0, 4)) == 0:
            rendezvous = builder.new_rendezvous()
            for rank in range(rank_count):
                waits = [task for task in before if task < builder.task_count - rank]
                builder.add_task(
                    f"hcom_allReduce__1_{number}_1",
                    TaskKind.COLLECTIVE,
                    *waits,
                    rank=rank,
                    stream=Stream.COMMUNICATION,
                    duration_ns=duration_ns,
                    rendezvous=rendezvous,
                    group=group,
                )
        else:
            stream = draw(st.sampled_from([Stream.HOST, Stream.COMPUTE, Stream.COPY]))
            rank = draw(st.integers(0, rank_count - 1))
            builder.add_task(f"op{number}", KINDS[stream], *before, rank=rank, stream=stream, duration_ns=duration_ns)
    return builder.build()
