"""Blocks as chains: three tasks must end when the operators themselves would."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskKind
from engine.runtime.scheduler import schedule
from engine.workloads.templates import chain_end, chain_times

OPERATORS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 100), st.booleans(), st.integers(-1, 1)), min_size=1, max_size=25
)


def operator_by_operator_ns(operators: list[tuple[int, int, bool, int]], host_ns: int, device_ns: int) -> int:
    """Returns when the last operator ends on the scheduler, every operator a task of its own."""
    builder = GraphBuilder()
    builder.add_task("earlier", TaskKind.HOST, duration_ns=host_ns, stream=Stream.HOST)
    computing = builder.add_task("earlier", TaskKind.MIX, duration_ns=device_ns, stream=Stream.COMPUTE)
    transfers = [computing, computing]
    for dispatch, duration, is_collective, awaits in operators:
        host = builder.add_task("dispatch", TaskKind.HOST, duration_ns=dispatch, stream=Stream.HOST)
        if is_collective:
            task = builder.add_task(
                "hcom_allReduce_", TaskKind.COPY, host, computing, duration_ns=duration, stream=Stream.COMMUNICATION
            )
            transfers.append(task)
        else:
            before = {-1: computing, 0: transfers[-1], 1: transfers[-2]}[awaits]
            computing = builder.add_task(
                "kernel", TaskKind.MIX, host, before, duration_ns=duration, stream=Stream.COMPUTE
            )
    result = schedule(builder.build())
    return int(max(result.end_ns[computing], result.end_ns[transfers[-1]]))


@given(OPERATORS, st.integers(0, 500), st.integers(0, 500))
def test_a_chain_ends_when_its_operators_do(
    operators: list[tuple[int, int, bool, int]], host_ns: int, device_ns: int
) -> None:
    host, device, collective, awaits = (np.array(column) for column in zip(*operators, strict=True))
    busy, done = chain_times(host, device[:, None], collective, awaits)
    as_one = max(host_ns + int(done[0]), device_ns + int(busy[0]))
    expected = operator_by_operator_ns(operators, host_ns, device_ns)
    assert chain_end(host, device, collective, awaits, host_ns, device_ns) == expected
    assert as_one == expected


@given(OPERATORS)
def test_the_device_is_never_done_before_its_own_work(operators: list[tuple[int, int, bool, int]]) -> None:
    host, device, collective, awaits = (np.array(column) for column in zip(*operators, strict=True))
    busy, done = chain_times(host, device[:, None], collective, awaits)
    assert done[0] >= busy[0] >= device[~collective].sum()
