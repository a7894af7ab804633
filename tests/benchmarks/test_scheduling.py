"""How fast the device model runs tasks: the promise is three million a second on one core after compilation."""

import time

import numpy as np
import pytest

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.runtime.scheduler import schedule, uniform_slowdown
from engine.trace.trace import ParallelGroup

pytestmark = pytest.mark.benchmark
PROMISED_TASKS_PER_S = 3e6
RANKS, LAYERS, OPERATORS, GROUP = 32, 768, 30, 4
REPEATS = 5


def training_step() -> TaskGraph:
    """Returns 1.5 million tasks: launches, kernels, and two collectives of four ranks in each layer."""
    builder, random = GraphBuilder(), np.random.default_rng(0)
    names = builder.strings.intern_all([f"op{number}" for number in range(OPERATORS)])
    reduce = builder.strings.intern("hcom_allReduce_")
    meetings = builder.new_rendezvous(2 * LAYERS * RANKS // GROUP)
    count = LAYERS * OPERATORS
    for rank in range(RANKS):
        number = rank // GROUP
        if rank % GROUP == 0:
            members = tuple(range(rank, rank + GROUP))
            builder.groups.append(ParallelGroup(f"tp{number}", "tp", members))
        group = builder.strings.intern(f"tp{number}")
        times = random.integers(5_000, 15_000, count)
        host = builder.add_tasks(count, name=np.tile(names, LAYERS), rank=rank, duration_ns=times)
        kernels = builder.add_tasks(
            count,
            host + np.arange(count),
            name=np.tile(names, LAYERS),
            kind=TaskKind.CUBE,
            rank=rank,
            stream=Stream.COMPUTE,
            duration_ns=random.integers(5_000, 60_000, count),
        )
        before = kernels + np.arange(OPERATORS // 2 - 1, count, OPERATORS // 2)
        talking = builder.add_tasks(
            len(before),
            before,
            name=reduce,
            kind=TaskKind.COLLECTIVE,
            rank=rank,
            stream=Stream.COMMUNICATION,
            duration_ns=50_000,
            rendezvous=meetings + number * 2 * LAYERS + np.arange(len(before)),
            group=group,
            bytes=1e6,
        )
        after = before + 3
        builder.add_edges((talking + np.arange(len(before)))[after < kernels + count], after[after < kernels + count])
    return builder.build()


def test_three_million_tasks_a_second() -> None:
    graph = training_step()
    slowdown = uniform_slowdown(graph, 0.2)
    schedule(graph, slowdown)
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        assert schedule(graph, slowdown).is_complete
        seconds.append(time.process_time() - started)
    assert len(graph) / min(seconds) >= PROMISED_TASKS_PER_S
