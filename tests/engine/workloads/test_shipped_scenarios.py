"""The scenarios that ship: all can be run, none says anything about time."""

from importlib import resources
from pathlib import Path

import pytest

from engine.workloads.results import RunStatus
from engine.workloads.scenario_file import read_scenario
from engine.workloads.scenarios import shipped_scenarios
from engine.workloads.simulate import simulate


@pytest.mark.parametrize("name", shipped_scenarios())
def test_a_shipped_scenario_is_valid(name: str) -> None:
    with resources.as_file(shipped_scenarios()[name]) as path:
        scenario = read_scenario(Path(path))
    assert scenario.name.replace(" ", "_").replace("-", "_").startswith(name[:7])


def test_the_articles_job_runs_on_32_devices() -> None:
    with resources.as_file(shipped_scenarios()["gpt_oss_20b"]) as path:
        scenario = read_scenario(Path(path))
    result = simulate(scenario)
    assert result.status is RunStatus.DONE
    assert scenario.parallel.world_size == 32
