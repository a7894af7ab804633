"""A device in a file: what a calibration wrote, named by a scenario."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cli.app import build_cli, run
from engine.cli.opening import open_capture
from engine.core.errors import EngineError, ScenarioError
from engine.core.progress import no_progress
from engine.devices.catalogue import device_ids, load_device
from engine.devices.device_file import read_device
from engine.report.calibration import calibration_document
from engine.runtime.cost import operator_durations
from engine.runtime.cost.fitting import MeasuredKernels
from engine.workloads.calibration.calibrate import calibrate, capture_rows
from engine.workloads.scenario_file import read_scenario
from engine.workloads.simulate import simulate

FAMILY = {
    "fixed_ns": 5000.0, "block_cycles": 0.0, "row_cycles": 0.0, "memory_ratio": 0.5, "cube_ratio": 0.25,
    "traffic_ratio": 1.0, "unaligned_cycles": 0.0, "rows_whole": False, "kind": "measured", "source": "a capture",
}  # fmt: skip
CLOCK = {"value": 1.2e9, "unit": "Hz", "kind": "measured", "source": "a capture"}


def calibration(**changed: Any) -> dict[str, Any]:
    document = {
        "schema": "cannscope.calibration/1",
        "capture": "somewhere/job_ascend_pt",
        "nearest": "910b2",
        "device": {"id": "910b2", "constants": {"clock_hz": CLOCK}},
        "efficiency": {"families": {"matmul": FAMILY}},
    }
    return {**document, **changed}


def written(folder: Path, document: Any, name: str = "mine.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


SCENARIO = """
[model]
layers = 2
hidden = 1024
ffn = 4096
heads = 8
vocab = 2000
[batch]
micro = 2
sequence_length = 2048
[device]
"""


def scenario_in(folder: Path, device: str) -> Path:
    path = folder / "job.toml"
    path.write_text(SCENARIO + device, encoding="utf-8")
    return path


def test_a_calibrated_device_has_what_was_fitted_over_the_nearest_of_the_catalogue(tmp_path: Path) -> None:
    device, base = read_device(written(tmp_path, calibration())), load_device("910b2")
    assert device.clock_hz == 1.2e9
    assert device.hbm_bytes == base.hbm_bytes
    assert device.families["matmul"].cube_ratio == 0.25
    assert device.title == f"{base.title}, calibrated to job_ascend_pt"


def test_a_scenario_names_it_relative_to_itself_and_its_jobs_take_its_prices(tmp_path: Path) -> None:
    (tmp_path / "devices").mkdir()
    written(tmp_path / "devices", calibration())
    own = read_scenario(scenario_in(tmp_path, 'file = "devices/mine.json"\ncount = 1\nhost_dispatch_us = 1'))
    usual = read_scenario(scenario_in(tmp_path, 'preset = "910b2"\nhost_dispatch_us = 1'))
    assert own.device.id == usual.device.id
    assert simulate(own).step_ns[2] > 1.5 * simulate(usual).step_ns[2]


def test_every_device_of_the_catalogue_is_read_from_its_own_data_file(tmp_path: Path) -> None:
    for name in device_ids():
        text = files("engine.devices").joinpath("data", "devices", f"{name}.json").read_text(encoding="utf-8")
        path = tmp_path / f"{name}.json"
        path.write_text(text, encoding="utf-8")
        assert read_device(path) == load_device(name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no JSON"),
        ("[]", "holds no JSON object"),
        ('{"schema": "cannscope.report/1"}', "is no device"),
        (json.dumps(calibration(nearest="910b9")), "nearest: 910b"),
        (json.dumps(calibration(efficiency={})), "bad entry: KeyError"),
        (json.dumps(calibration(device={"constants": {"clock_hz": {**CLOCK, "value": -1}}})), "clock_hz is -1"),
        (json.dumps(calibration(device={"constants": {"clock_hz": {**CLOCK, "value": "fast"}}})), "bad entry"),
        (
            json.dumps(calibration(efficiency={"families": {"add": {**FAMILY, "fixed_ns": float("inf")}}})),
            "family add has a constant",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_to_give(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "mine.json").write_text(content, encoding="utf-8")
    with pytest.raises(ScenarioError, match=message) as raised:
        read_scenario(scenario_in(tmp_path, 'file = "mine.json"'))
    assert "mine.json" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ('file = "absent.json"', "cannot be read"),
        ('file = "absent.json"\npreset = "910b2"', "keep one"),
        ("count = 1", "preset is missing"),
    ],
)
def test_a_scenario_names_exactly_one_device(tmp_path: Path, device: str, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        read_scenario(scenario_in(tmp_path, device))


@pytest.mark.slow
def test_a_device_calibrated_to_a_training_job_predicts_its_kernels_again(captures: Path, tmp_path: Path) -> None:
    capture = captures / "ascend" / "910b-qwen3-0.6b-pp2dp2"
    target = tmp_path / "mine.json"
    assert run(build_cli(), ["devices", "--calibrate", str(capture), "-o", str(target), "--quiet"]) == 0
    job = open_capture([capture], no_progress)
    _, rows = capture_rows(job, "job")
    assert isinstance(rows, MeasuredKernels)
    predicted = operator_durations(read_device(target), rows.kernels)
    assert float(np.median(np.abs(predicted / rows.measured_ns - 1))) < 0.10
    found = calibrate(job, capture.name)
    assert json.loads(target.read_text(encoding="utf-8")) == json.loads(
        json.dumps(calibration_document(found, str(capture)))
    )
