"""A recorded simulated job replays in the time it was simulated with."""

from pathlib import Path

import pytest

from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.workloads.scenario_file import read_scenario
from engine.workloads.scenarios import shipped_scenarios
from tests.support.closed_loop import recorded, written_and_read

SIMULATED_RATIO = 0.01
SCENARIOS = ("exposed_communication", "pipeline_bubbles", "unfused_attention")


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_recorded_simulated_job_replays_in_its_own_step_time(name: str) -> None:
    recording = recorded(read_scenario(Path(str(shipped_scenarios()[name]))))
    replayed = replay_time(capture_graph(recording.job))
    assert replayed.schedule.is_complete
    assert replayed.step_ns.mean() == pytest.approx(recording.step_ns, rel=SIMULATED_RATIO)


def test_profiler_directories_of_it_replay_alike(tmp_path: Path) -> None:
    recording = written_and_read(read_scenario(Path(str(shipped_scenarios()["pipeline_bubbles"]))), tmp_path)
    replayed = replay_time(capture_graph(recording.job))
    assert replayed.step_ns.mean() == pytest.approx(recording.step_ns, rel=SIMULATED_RATIO)
