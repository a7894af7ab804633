"""What holds of every replay: recorded jobs come back, less work never takes longer, nothing is left to chance."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.core.arrays import Int64Array
from engine.core.errors import MissingDataError
from engine.graph.checks import topological_order
from engine.graph.streams import stream_chains
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.replay.capture_graph import CaptureGraph, Gaps
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.runtime.recorder import RecorderSettings, record_job
from engine.runtime.scheduler import schedule
from engine.trace.job import Job
from tests.support.task_graphs import task_graphs

MANY = settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


@dataclass(frozen=True, repr=False)
class Recording:
    """What a profiler saw of a random job; shown as the tasks that ran."""

    graph: TaskGraph
    job: Job

    def __repr__(self) -> str:
        graph = self.graph
        rows = zip(graph.rank, graph.stream, graph.kind, graph.duration_ns, strict=True)
        tasks = [(*map(int, row), graph.predecessors_of(task).tolist()) for task, row in enumerate(rows)]
        return f"Recording({tasks})"


@st.composite
def recordings(draw: st.DrawFn, max_ranks: int = 3) -> Recording:
    """Draws a random job and records it."""
    graph = draw(task_graphs(max_ranks=max_ranks))
    times = schedule(graph)
    assume(times.is_complete)
    assume(np.any(~np.isin(graph.kind, (TaskKind.HOST, TaskKind.SYNCHRONIZE)) & (graph.duration_ns > 0)))
    return Recording(graph, record_job(graph, times, RecorderSettings()))


def made(recording: Recording, gaps: Gaps = Gaps.KEPT) -> CaptureGraph:
    try:
        return capture_graph(recording.job, gaps=gaps)
    except MissingDataError:
        assume(False)
        raise


def longest_path_ns(graph: TaskGraph) -> int:
    """Returns the longest chain of tasks that wait for each other; meetings are left out."""
    chains = stream_chains(graph)
    before = np.full(len(graph), -1)
    followed = np.flatnonzero(chains.next_task >= 0)
    before[chains.next_task[followed]] = followed
    end_ns = np.zeros(len(graph) + 1, dtype=np.int64)
    for task in topological_order(graph).tolist():
        waits = [int(before[task]), *graph.predecessors_of(task).tolist()]
        end_ns[task] = max(int(end_ns[item]) for item in waits) + int(graph.duration_ns[task])
    return int(end_ns.max())


def shortened(graph: TaskGraph, which: Int64Array) -> TaskGraph:
    duration_ns = graph.duration_ns.copy()
    duration_ns[which] = 0
    return replace(graph, duration_ns=duration_ns)


@MANY
@given(recordings())
def test_a_recorded_job_replays_as_it_ran(recording: Recording) -> None:
    replayed = replay_time(made(recording))
    assert replayed.schedule.is_complete
    assert replayed.step_ns.tolist() == replayed.recorded_step_ns.tolist()


@MANY
@given(recordings(), st.sampled_from(Gaps))
def test_no_run_is_shorter_than_its_longest_path(recording: Recording, gaps: Gaps) -> None:
    capture = made(recording, gaps)
    assert replay_time(capture).schedule.makespan_ns >= longest_path_ns(capture.graph)


@MANY
@given(recordings(max_ranks=1), st.data())
def test_less_work_never_takes_longer(recording: Recording, data: st.DataObject) -> None:
    capture = made(recording)
    count = len(capture.graph)
    removed = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=count)), dtype=np.int64)
    shorter = replay_time(capture, shortened(capture.graph, removed))
    assert shorter.schedule.is_complete
    assert shorter.schedule.makespan_ns <= replay_time(capture).schedule.makespan_ns


@MANY
@given(recordings())
def test_equal_recordings_give_equal_replays(recording: Recording) -> None:
    one, other = (replay_time(made(recording)) for _ in range(2))
    assert one.schedule.start_ns.tolist() == other.schedule.start_ns.tolist()
    assert one.schedule.end_ns.tolist() == other.schedule.end_ns.tolist()
