"""Blocks as one task: they end when the operators themselves would, slowed by what is transferred beside them."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskKind
from engine.runtime.scheduler import schedule
from engine.workloads.block_times import chain_end

OPERATORS = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(0, 100), st.booleans(), st.integers(-1, 1), st.sampled_from([0.0, 0.25, 1.0])
    ),
    min_size=1,
    max_size=25,
)
OPERATOR = tuple[int, int, bool, int, float]


def operator_by_operator_ns(operators: list[OPERATOR], host_ns: int, computing_ns: int, transfers_ns: int) -> int:
    """Returns when the last operator ends on the scheduler, every operator a task of its own."""
    builder = GraphBuilder()
    ratios = [0.0, 0.0, 0.0]
    builder.add_task("earlier", TaskKind.HOST, duration_ns=host_ns, stream=Stream.HOST)
    computing = builder.add_task("earlier", TaskKind.MIX, duration_ns=computing_ns, stream=Stream.COMPUTE)
    # No collective: it would slow what runs beside it.
    builder.add_task("earlier", TaskKind.COPY, duration_ns=transfers_ns, stream=Stream.COMMUNICATION)
    transfers = [computing, computing]
    for dispatch, duration, is_collective, awaits, ratio in operators:
        host = builder.add_task("dispatch", TaskKind.HOST, duration_ns=dispatch, stream=Stream.HOST)
        where = {"duration_ns": duration}
        ratios.append(0.0)
        if is_collective:
            meeting = builder.new_rendezvous()
            where |= {"stream": Stream.COMMUNICATION, "rendezvous": meeting}
            transfers.append(builder.add_task("hcom_allReduce_", TaskKind.COLLECTIVE, host, computing, **where))
            ratios.append(0.0)
        else:
            before = {-1: computing, 0: transfers[-1], 1: transfers[-2]}[awaits]
            computing = builder.add_task("kernel", TaskKind.MIX, host, before, stream=Stream.COMPUTE, **where)
            ratios.append(ratio)
    result = schedule(builder.build(), np.array(ratios))
    return int(max(result.end_ns[computing], result.end_ns[transfers[-1]]))


# A transfer of no length behind one that still runs: it slows nothing, and the earlier one is no collective's.
@example([(0, 0, True, -1, 0.0), (0, 20, False, -1, 1.0)], 0, 0, 15)
@given(OPERATORS, st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_a_chain_ends_when_its_operators_do(
    operators: list[OPERATOR], host_ns: int, computing_ns: int, transfers_ns: int
) -> None:
    chain = tuple(np.array(column) for column in zip(*operators, strict=True))
    ended, _ = chain_end(*chain, host_ns, computing_ns, transfers_ns, False)
    assert abs(ended - operator_by_operator_ns(operators, host_ns, computing_ns, transfers_ns)) <= len(operators)


@given(OPERATORS)
def test_more_transfers_beside_it_never_make_a_chain_faster(operators: list[OPERATOR]) -> None:
    host, device, collective, awaits, ratio = (np.array(column) for column in zip(*operators, strict=True))
    alone, worked = chain_end(host, device, collective, awaits, 0.0 * ratio, 0, 0, 0, False)
    own, slowed = chain_end(host, device, collective, awaits, ratio, 0, 0, 0, False)
    always, most = chain_end(host, device, collective, awaits, ratio, 0, 0, 0, True)
    assert alone <= own <= always + len(operators)
    assert worked <= slowed <= most + len(operators)
    assert worked == device[~collective].sum()


@given(OPERATORS, st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_without_slowing_a_chain_is_linear_in_what_it_waits_for(
    operators: list[OPERATOR], host_ns: int, computing_ns: int, transfers_ns: int
) -> None:
    host, device, collective, awaits, ratio = (np.array(column) for column in zip(*operators, strict=True))
    chain = (host, device, collective, awaits, 0.0 * ratio)
    far = np.int64(-(1 << 60))
    done = chain_end(*chain, np.int64(0), far, far, False)[0] + host_ns
    busy = chain_end(*chain, far, np.int64(0), far, False)[0] + computing_ns
    behind = chain_end(*chain, far, far, np.int64(0), False)[0] + transfers_ns
    expected = chain_end(*chain, host_ns, computing_ns, transfers_ns, False)[0]
    assert max(done, busy, behind) == expected
