"""How long a recorded job takes to become tasks and to be run again, against one plain run of the same tasks.

Two seconds for a what-if on 100,000 tasks and ten on a million leave room for a graph, a baseline and a candidate, when
a plain run does some three million tasks a second.
"""

import time
from collections.abc import Callable

import numpy as np
import pytest

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.runtime.recorder import RecorderSettings, record_job
from engine.runtime.scheduler import schedule
from engine.trace.trace import ParallelGroup

pytestmark = pytest.mark.benchmark
RANKS, GROUP, OPERATORS, REPEATS = 8, 4, 30, 3
TASKS_PER_LAYER = RANKS * (2 * OPERATORS + 2)
REPLAY_RATIO = 2.0
"""A replay is a plain run and the search of each step's first and last task."""
GRAPH_RATIO = 30.0
"""Making the graph reads the whole trace: activities, launches, collectives, phases, layers, shapes."""


def training_steps(task_count: int) -> TaskGraph:
    """Returns a job of eight ranks with two collectives per layer of thirty operators, in steps of eight layers."""
    layers = task_count // TASKS_PER_LAYER
    builder, random = GraphBuilder(), np.random.default_rng(0)
    names = builder.strings.intern_all([f"op{number}" for number in range(OPERATORS)])
    reduce = builder.strings.intern("hcom_allReduce_")
    meetings = builder.new_rendezvous(2 * layers * RANKS // GROUP)
    count = layers * OPERATORS
    for rank in range(RANKS):
        number = rank // GROUP
        if rank % GROUP == 0:
            builder.groups.append(ParallelGroup(f"tp{number}", "tp", tuple(range(rank, rank + GROUP))))
        columns = {"name": np.tile(names, layers), "rank": rank, "step": np.arange(count) // (8 * OPERATORS)}
        host = builder.add_tasks(count, duration_ns=random.integers(5_000, 15_000, count), **columns)
        kernels = builder.add_tasks(
            count,
            host + np.arange(count),
            kind=TaskKind.CUBE,
            stream=Stream.COMPUTE,
            duration_ns=random.integers(5_000, 60_000, count),
            **columns,
        )
        before = np.arange(OPERATORS // 2 - 1, count, OPERATORS // 2)
        builder.add_tasks(
            len(before),
            np.stack((host + before, kernels + before), axis=1),
            name=reduce,
            kind=TaskKind.COLLECTIVE,
            rank=rank,
            step=columns["step"][before],
            stream=Stream.COMMUNICATION,
            duration_ns=50_000,
            rendezvous=meetings + number * 2 * layers + np.arange(len(before)),
            group=builder.strings.intern(f"tp{number}"),
            bytes=1e6,
        )
    return builder.build()


def seconds(run: Callable[[], object]) -> float:
    best = np.inf
    for _ in range(REPEATS):
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return float(best)


@pytest.mark.parametrize("task_count", [100_000, 1_000_000])
def test_graph_and_replay_stay_within_their_share_of_a_what_if(task_count: int) -> None:
    graph = training_steps(task_count)
    job = record_job(graph, schedule(graph), RecorderSettings())
    capture = capture_graph(job)
    plain = seconds(lambda: schedule(capture.graph))
    replay = seconds(lambda: replay_time(capture))
    made = seconds(lambda: capture_graph(job))
    assert replay <= REPLAY_RATIO * plain
    assert made <= GRAPH_RATIO * plain
