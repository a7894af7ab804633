"""``verify`` as scripts use it: a prediction, the capture made afterwards, and the log of scores."""

import json

import pytest

JOB = """
name = "small"
[model]
layers = 2
hidden = 2048
ffn = 5632
heads = 16
vocab = 8000
[device]
preset = "910b2"
[batch]
micro = 1
sequence_length = 2048
[run]
steps = 3
"""


@pytest.fixture
def predicted(cannscope, job, tmp_path):
    code, _, err = cannscope("whatif", job, "--enable", "fusion.attention", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    return tmp_path / "out"


def test_the_predicted_capture_itself_is_in_range(cannscope, predicted, tmp_path):
    log = tmp_path / "log" / "calibration.jsonl"

    code, out, err = cannscope("verify", predicted / "prediction.json", predicted / "candidate", "--log", log, "--json")
    document = json.loads(out)

    assert (code, err, document["schema"]) == (0, "", "cannscope.verify/1")
    assert document["in_range"]
    assert document["step_error_ratio"] == pytest.approx(0, abs=0.02)
    assert document["gain_error_ratio"] == pytest.approx(0, abs=0.05)
    assert document["log"] == str(log)
    assert document["calibration"]["count"] == 1


def test_a_capture_in_which_nothing_was_done_is_out_of_range(cannscope, predicted, tmp_path):
    log = tmp_path / "calibration.jsonl"

    code, out, _ = cannscope("verify", predicted / "prediction.json", predicted / "baseline", "--log", log)

    assert code == 1
    assert "out of range" in out


def test_scores_are_kept_and_summed_up_whatever_else_is_in_the_log(cannscope, predicted, tmp_path):
    log = tmp_path / "calibration.jsonl"
    log.write_text("not a score\n", encoding="utf-8")
    for side in ("candidate", "baseline"):
        _, out, _ = cannscope("verify", predicted / "prediction.json", predicted / side, "--log", log, "--json")

    document = json.loads(out)
    assert document["calibration"]["count"] == 2
    assert document["calibration"]["in_range_ratio"] == 0.5
    assert document["diagnostics"][0]["code"] == "unreadable-score"
    lines = log.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[1])["enabled"] == ["fusion.attention"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "cannscope.prediction/1"}'])
def test_what_is_no_prediction_is_one_line(cannscope, predicted, tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8")

    code, out, err = cannscope("verify", path, predicted / "candidate")

    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "whatif -o DIR" in err


@pytest.mark.parametrize("identifier", ["fusion.attention", "fusion.swiglu"])
def test_a_prediction_from_a_capture_holds_on_the_capture_of_the_job_with_it(cannscope, tmp_path, identifier):
    path = tmp_path / "job.toml"
    path.write_text(JOB, encoding="utf-8")
    assert cannscope("simulate", path, "-o", tmp_path / "before")[0] == 0
    assert cannscope("simulate", path, "--enable", identifier, "-o", tmp_path / "after")[0] == 0

    code, _, err = cannscope("whatif", tmp_path / "before", "--enable", identifier, "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    prediction = tmp_path / "out" / "prediction.json"
    code, out, _ = cannscope("verify", prediction, tmp_path / "after", "--log", tmp_path / "log", "--json")

    assert code == 0, out
    assert abs(json.loads(out)["step_error_ratio"]) < 0.05
    assert json.loads(prediction.read_text(encoding="utf-8"))["provenance"]["files_sha256"]
