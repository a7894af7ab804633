"""A recorded simulated job replays in the time it was simulated with."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.graph.task_graph import TaskKind
from engine.replay.capture_graph import HostSource
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.trace.job import Job
from engine.workloads.scenario import RunSettings
from engine.workloads.scenario_file import read_scenario
from engine.workloads.scenarios import shipped_scenarios
from tests.support.closed_loop import recorded, without_host_rows, written_and_read

SIMULATED_RATIO = 0.01
INFERRED_RATIO = 0.05
SCENARIOS = ("exposed_communication", "pipeline_bubbles", "unfused_attention")


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_recorded_simulated_job_replays_in_its_own_step_time(name: str) -> None:
    recording = recorded(read_scenario(Path(str(shipped_scenarios()[name]))))
    replayed = replay_time(capture_graph(recording.job))
    assert replayed.schedule.is_complete
    assert replayed.step_ns.mean() == pytest.approx(recording.step_ns, rel=SIMULATED_RATIO)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_several_profiled_steps_replay_one_by_one(level: int) -> None:
    run = RunSettings(steps=4, profile_steps=(2, 3))
    recording = recorded(read_scenario(Path(str(shipped_scenarios()["pipeline_bubbles"]))), run, level)
    replayed = replay_time(capture_graph(recording.job))
    assert replayed.step.tolist() == [2, 3]
    assert replayed.step_ns.mean() == pytest.approx(recording.step_ns, rel=SIMULATED_RATIO)


def test_profiler_directories_of_it_replay_alike(tmp_path: Path) -> None:
    recording = written_and_read(read_scenario(Path(str(shipped_scenarios()["pipeline_bubbles"]))), tmp_path)
    replayed = replay_time(capture_graph(recording.job))
    assert replayed.step_ns.mean() == pytest.approx(recording.step_ns, rel=SIMULATED_RATIO)


HOST_BOUND = """
name = "host bound"
[model]
layers = 6
hidden = 256
ffn = 1024
heads = 4
vocab = 2000
[device]
preset = "910b2"
[batch]
global = 2
sequence_length = 512
"""


def scaled_step_ns(job: Job, kinds: tuple[TaskKind, ...], ratio: float) -> float:
    capture = capture_graph(job)
    chosen = np.isin(capture.graph.kind, kinds)
    duration_ns = np.where(chosen, capture.graph.duration_ns * ratio, capture.graph.duration_ns).astype(np.int64)
    return float(replay_time(capture, replace(capture.graph, duration_ns=duration_ns)).step_ns.mean())


@pytest.mark.parametrize("name", [*SCENARIOS, "host bound"])
def test_without_host_rows_the_same_questions_get_the_same_answers(name: str, tmp_path: Path) -> None:
    path = tmp_path / "host_bound.toml"
    path.write_text(HOST_BOUND)
    given = path if name == "host bound" else Path(str(shipped_scenarios()[name]))
    job = recorded(read_scenario(given)).job
    blind = without_host_rows(job)
    assert set(capture_graph(blind).host_source.values()) == {HostSource.ALLOCATIONS}
    for kinds in ((TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX), (TaskKind.HOST,)):
        told, inferred = scaled_step_ns(job, kinds, 0.5), scaled_step_ns(blind, kinds, 0.5)
        assert inferred == pytest.approx(told, rel=INFERRED_RATIO)
