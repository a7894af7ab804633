"""Fitting a device to a capture: on a table written here, and on the Qwen3 training job."""

import csv
import json

import pytest

from engine.cli.app import build_cli, run
from engine.cli.opening import open_capture
from engine.core.errors import MissingDataError
from engine.core.progress import no_progress
from engine.workloads.calibration.calibrate import calibrate

COLUMNS = (
    "Step Id", "Device_id", "Task ID", "Stream ID", "Name", "Type", "Accelerator Core", "Start Time(us)",
    "Duration(us)", "Wait Time(us)", "Block Dim", "Input Shapes", "Input Data Types", "Output Shapes",
    "Output Data Types", "aicore_time(us)", "aic_total_cycles", "aiv_time(us)", "aiv_total_cycles",
)  # fmt: skip


@pytest.fixture
def capture(tmp_path):
    """A profiler directory with matmuls of a device of 20 cores at 1.5 GHz that reach 200 TFLOPS and take 5 µs more."""
    output = tmp_path / "host_1_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output.parent / "profiler_info_0.json").write_text(json.dumps({"config": {}, "rank_id": 0}))
    start_us, rows = 1_700_000_000_000_000.0, []
    for index, m in enumerate((512, 1024, 2048, 3072, 4096, 8192)):
        duration_us = 2 * m * 2048 * 2048 / 200e6 + 5
        rows.append(
            dict(
                zip(
                    COLUMNS,
                    (1, 0, index, 2, f"matmul_{index}", "MatMulV3", "AI_CORE", f"{start_us:.3f}", f"{duration_us:.3f}",
                     0, 20, f'"{m},2048;2048,2048"', "DT_BF16;DT_BF16", f'"{m},2048"', "DT_BF16", duration_us,
                     round(duration_us * 1500 * 20), 0, 0),
                    strict=True,
                )
            )
        )  # fmt: skip
        start_us += duration_us + 10
    rows.append({**rows[-1], "Type": "BrandNewOp", "Start Time(us)": f"{start_us:.3f}"})
    with (output / "kernel_details.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return output.parent


def test_a_device_is_found_by_its_cores_and_clock(capture):
    found = calibrate(open_capture([capture], no_progress), "made here")
    assert found.device.cube_core_count == 20
    assert found.device.clock_hz == pytest.approx(1.5e9, rel=0.001)
    assert found.device.constants["clock_hz"].kind == "measured"
    assert not found.named


def test_kernels_the_fit_did_not_see_are_predicted_and_the_rest_is_counted(capture):
    found = calibrate(open_capture([capture], no_progress), "made here")
    assert found.seen_ratio < 0.1
    assert found.unseen_ratio < 0.2
    assert found.total_time_ratio == pytest.approx(1, abs=0.1)
    assert found.unpriced == {"BrandNewOp": 1}
    assert 0 < found.unpriced_share_ratio < 0.5
    (family,) = found.families
    assert (family.family, family.kernels_count, family.share_ratio) == ("matmul", 6, 1.0)
    assert found.parameters.families["matmul"].source == "fitted to 6 rows: made here"


def test_the_command_says_how_well_it_fits_and_writes_the_device(capture, tmp_path, capsys):
    target = tmp_path / "fitted.json"
    arguments = ["devices", "910b4", "--calibrate", str(capture), "-o", str(target), "--json"]
    assert run(build_cli(), arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(target.read_text(encoding="utf-8"))
    assert (document["schema"], document["nearest"], document["named"]) == ("cannscope.calibration/1", "910b4", True)
    assert document["unseen"]["median_ratio"] is not None
    assert document["device"]["constants"]["clock_hz"]["source"].startswith("cycle counters of")
    assert run(build_cli(), ["devices", "--calibrate", str(capture)]) == 0
    assert "on kernels it did not see" in capsys.readouterr().out


def test_a_capture_without_kernels_says_what_to_record(tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]')
    with pytest.raises(MissingDataError, match="profiler level 1 or 2"):
        calibrate(open_capture([trace], no_progress), "x")


@pytest.mark.slow
def test_a_training_job_is_reproduced(captures):
    job = open_capture([captures / "ascend" / "910b-qwen3-0.6b-pp2dp2"], no_progress)
    found = calibrate(job, "Qwen3")
    assert (found.nearest, found.kernels_count > 4_800) == ("910b4", True)
    assert found.device.clock_hz == pytest.approx(1.65e9, rel=0.001)
    assert found.seen_ratio < 0.08
    assert found.unseen_ratio < 0.20
    assert found.total_time_ratio == pytest.approx(1, abs=0.02)
    assert found.unseen_time_ratio == pytest.approx(1, abs=0.08)
    assert found.unpriced_share_ratio < 0.01
