"""How long a what-if on a recorded job takes beside one plain run of its tasks; the promise: 1 M tasks in 10 s."""

import time
from dataclasses import replace

import numpy as np
import pytest

from engine.core.registry import Registry
from engine.graph.slicing import take_tasks
from engine.graph.task_graph import Stream, TaskKind
from engine.optimizations.answers import applies
from engine.optimizations.interface import Bound, Group
from engine.optimizations.selection import Enabled
from engine.replay.capture_graph import CaptureGraph, HostSource, RecordedSteps
from engine.runtime.scheduler import schedule
from engine.trace.job import Job
from engine.whatif.run import what_if
from engine.whatif.subject import CaptureSubject
from tests.benchmarks.test_scheduling import training_step
from tests.support.sample_optimizations import sample_optimization

pytestmark = pytest.mark.benchmark
PROMISED_S = {100_000: 2.0, 1_000_000: 10.0}
MOST_RUNS = 15
"""A what-if of one toggle runs the tasks six times (as it is, expected, both ends, and twice without inferred waits);
fifteen leave more than as much again for what prepares these runs and sums them up."""


def faster(plan, parameters, bound):
    share = {Bound.LOW: 0.95, Bound.EXPECTED: 0.9, Bound.HIGH: 0.8}[bound]
    cube = plan.graph.kind == TaskKind.CUBE
    times = np.where(cube, np.rint(plan.graph.duration_ns * share), plan.graph.duration_ns)
    return replace(plan, graph=replace(plan.graph, duration_ns=times.astype(np.int64)))


TOGGLE = sample_optimization(
    "fusion.faster",
    Group.FUSION,
    check_capture=lambda plan, parameters: applies("there are kernels"),
    on_capture=faster,
)


@pytest.fixture(scope="module")
def graph():
    whole = training_step()
    waits = (whole.kind == TaskKind.COLLECTIVE) & (np.arange(len(whole)) % 3 == 0)
    events = np.arange(len(whole), dtype=np.int32)
    return replace(whole, inferred=waits.astype(np.uint8), origin_event=events)


def subject_of(graph, count):
    """A capture of about so many tasks: of as many whole groups of ranks as they fill."""
    ranks = max(round(count / (len(graph) / 32) / 4), 1) * 4
    part, _ = take_tasks(graph, graph.rank < ranks)
    if len(part) > 1.3 * count:
        part, _ = take_tasks(part, np.arange(len(part)) % (len(part) // len(np.unique(part.rank))) < count // ranks)
    numbers = np.arange(ranks, dtype=np.int32)
    nothing = np.zeros(ranks, dtype=np.int64)
    steps = RecordedSteps(numbers, np.full(ranks, -1, dtype=np.int32), nothing, nothing + 1_000_000_000)
    sources = dict.fromkeys(range(ranks), HostSource.LAUNCHES)
    capture = CaptureGraph(Job("", ()), part, steps, sources, dict.fromkeys(range(ranks), 0))
    return CaptureSubject(Job("made", ()), capture, None)


@pytest.mark.parametrize("count", list(PROMISED_S))
def test_a_what_if_takes_as_long_as_a_few_runs_of_its_tasks(graph, count):
    subject = subject_of(graph, count)
    tasks = subject.capture.graph
    assert 0.7 * count < len(tasks) < 1.5 * count
    assert int((tasks.stream == Stream.HOST).sum()) > 0
    chosen = [Enabled(TOGGLE, {})]
    what_if(subject, chosen, Registry((TOGGLE,)))
    schedule(tasks)
    began = time.thread_time()
    schedule(tasks)
    plain_s = time.thread_time() - began
    subject = CaptureSubject(subject.job, subject.capture, None)
    began = time.thread_time()
    result = what_if(subject, chosen, Registry((TOGGLE,)))
    taken_s = time.thread_time() - began
    told = f"{len(tasks):,} tasks: {taken_s:.2f} s, {taken_s / plain_s:.1f} plain runs of {plain_s:.2f} s"
    assert result.gain.expected_ns > 0
    assert taken_s < PROMISED_S[count], told
    assert taken_s / plain_s < MOST_RUNS, told
