"""Captures of simulated runs: the analyses must find in them what the run was."""

import filecmp
from dataclasses import replace
from pathlib import Path

import pytest

from engine.analyses.step_history import step_history
from engine.cli.app import build_cli, run
from engine.cli.opening import open_capture
from engine.core.errors import ScenarioError
from engine.core.progress import no_progress
from engine.trace.trace import Origin
from engine.workloads.items import ItemKind
from engine.workloads.recording import ProfiledRun, record_run
from engine.workloads.results import RunResult
from engine.workloads.scenario_file import read_scenario
from engine.workloads.simulate import simulate

SCENARIO = """
name = "small"
seed = 3
[model]
layers = 4
hidden = 512
ffn = 2048
heads = 8
vocab = 8000
[device]
preset = "910b2"
count = 4
[parallel]
tensor = 2
pipeline = 2
[batch]
global = 4
sequence_length = 1024
[run]
steps = 3
profile_steps = [1, 2]
"""


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(name="result")
def _result(path: Path) -> RunResult:
    return simulate(read_scenario(path))


def test_every_rank_is_recorded_with_the_history_of_the_run(result: RunResult) -> None:
    job = record_run(result.profiled, result.histories, 1)
    assert [item.trace.metadata.rank for item in job.ranks] == [0, 1, 2, 3]
    trace = job.ranks[0].trace
    assert trace.origin is Origin.SIMULATED
    assert len(trace.kernels) > 0
    history = step_history(trace)
    assert history is not None
    assert history.step_ns.tolist() == result.step_ns.tolist()


def test_recorded_memory_reaches_the_peaks_of_the_run(result: RunResult) -> None:
    job = record_run(result.profiled, result.histories, 1)
    memory = result.memory[0]
    curve = job.ranks[0].trace.memory.curves[0]
    assert int(curve.allocated_bytes.max()) == int(memory.peak_allocated_bytes[1:].max())
    assert int(curve.reserved_bytes.max()) == int(memory.peak_reserved_bytes[1:].max())


def test_steps_that_stop_for_ever_are_refused_rather_than_recorded_short(result: RunResult) -> None:
    run = result.profiled
    sender, *others = run.steps[0].executed
    send = next(index for index, part in enumerate(sender) if part.item.kind is ItemKind.SEND)
    unsent = replace(run.steps[0], executed=([*sender[:send], *sender[send + 1 :]], *others))
    with pytest.raises(ScenarioError, match=r"scenario small cannot be recorded: the run stops for ever"):
        record_run(ProfiledRun(run.state, run.classes, [unsent]), result.histories, 1)


def test_the_command_writes_a_directory_per_rank_that_reads_back(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(build_cli(), ["simulate", str(path), "-o", str(out), "-q"]) == 0
    assert len(list(out.glob("*_ascend_pt"))) == 4
    job = open_capture([out], no_progress)
    assert [item.trace.metadata.rank for item in job.ranks] == [0, 1, 2, 3]


def test_the_same_scenario_writes_the_same_bytes(path: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        assert run(build_cli(), ["simulate", str(path), "-o", str(folder), "-q"]) == 0
    names = [
        sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()) for folder in folders
    ]
    assert names[0] == names[1]
    assert filecmp.cmpfiles(*folders, names[0], shallow=False)[0] == names[0]


def test_a_run_without_profiled_steps_has_nothing_to_write(path: Path, tmp_path: Path) -> None:
    arguments = ["simulate", str(path), "--set", "run.profile_steps=[]", "-o", str(tmp_path / "out"), "-q"]
    assert run(build_cli(), arguments) == 2
