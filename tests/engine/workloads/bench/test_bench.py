import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from engine.cli.app import build_cli, run
from engine.core.errors import ScenarioError
from engine.workloads.bench.baseline import compared, read_baseline, write_baseline
from engine.workloads.bench.history import HistoryEntry, append_history, read_history
from engine.workloads.bench.measure import Measurement

TRAINING = """
name = "small job"
[model]
preset = "qwen2-0.5b"
[device]
preset = "910b2"
count = 1
[batch]
sequence_length = 512
"""
SERVING = """
name = "small service"
kind = "serving"
[model]
preset = "qwen2-0.5b"
[device]
preset = "910b2"
[serving]
requests = { arrival = "at_once", count = 60, prompt_tokens = 200, output_tokens = { mean = 40, sigma = 0.1 } }
"""
GOOD = Measurement(1_000.0, 1.0, 1 << 30, "done")


@pytest.fixture
def bench(tmp_path, capsys):
    (tmp_path / "job.toml").write_text(TRAINING)
    (tmp_path / "service.toml").write_text(SERVING)

    def call(*arguments, scenarios=("job.toml", "service.toml")):
        paths = [str(tmp_path / name) for name in scenarios]
        common = ["--history", str(tmp_path / "history.sqlite"), "--json"]
        code = run(build_cli(), ["bench", *paths, *map(str, arguments), *common])
        text = capsys.readouterr()
        return code, json.loads(text.out) if text.out else text.err

    return call


def test_a_baseline_is_recorded_and_the_same_numbers_pass(bench, tmp_path):
    code, document = bench("--record", tmp_path / "base.json")
    assert code == 0
    assert [item["name"] for item in document["scenarios"]] == ["small job", "small service"]
    assert all(item["tokens_per_s"] > 0 and item["peak_memory_bytes"] > 0 for item in document["scenarios"])
    code, document = bench("--against", tmp_path / "base.json")
    assert (code, document["passed"]) == (0, True)
    assert [item["change_ratio"] for item in document["scenarios"]] == [0.0, 0.0]


def test_ten_percent_worse_fails_and_another_seed_does_not(bench, tmp_path):
    path = tmp_path / "base.json"
    bench("--record", path)
    code, _ = bench("--against", path, "--set", "seed=7")
    assert code == 0
    document = json.loads(path.read_text())
    document["scenarios"]["small job"]["tokens_per_s"] *= 1 / 0.9
    path.write_text(json.dumps(document))
    code, answer = bench("--against", path)
    assert (code, answer["passed"]) == (1, False)
    assert [item["passed"] for item in answer["scenarios"]] == [False, True]
    assert answer["scenarios"][0]["change_ratio"] == pytest.approx(0.1)
    assert bench("--against", path, "--tolerance", "15%")[0] == 0


def test_every_run_is_kept_with_its_verdict(bench, tmp_path):
    bench("--record", tmp_path / "base.json", "--label", "first")
    bench("--against", tmp_path / "base.json", "--label", "second")
    entries = read_history(tmp_path / "history.sqlite")
    assert [(entry.name, entry.label) for entry in entries] == [
        ("small job", "first"),
        ("small service", "first"),
        ("small job", "second"),
        ("small service", "second"),
    ]
    assert all(entry.passed for entry in entries)


@pytest.mark.parametrize(
    ("now", "passed"),
    [
        (GOOD, True),
        (replace(GOOD, tokens_per_s=960.0), True),
        (replace(GOOD, tokens_per_s=940.0), False),
        (replace(GOOD, ms_per_token=1.06), False),
        (replace(GOOD, peak_memory_bytes=2 << 30), False),
        (replace(GOOD, tokens_per_s=2_000.0, ms_per_token=0.5), True),
        (replace(GOOD, status="oom"), False),
    ],
)
def test_the_worst_of_three_numbers_decides(now, passed):
    assert compared("job", now, GOOD, 0.05).passed is passed


def test_a_scenario_the_baseline_does_not_know_passes():
    answer = compared("new", GOOD, None, 0.05)
    assert (answer.passed, answer.change_ratio) == (True, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "is no baseline"),
        ('{"schema": "cannscope.baseline/1"}', "scenarios is missing"),
        ('{"schema": "cannscope.baseline/1", "scenarios": {"a": {}}}', "'a' lacks"),
    ],
)
def test_a_broken_baseline_is_one_clear_error(tmp_path, text, words):
    path = tmp_path / "base.json"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=words):
        read_baseline(path)


def test_a_baseline_reads_back_as_written(tmp_path):
    write_baseline(tmp_path / "base.json", {"a": GOOD}, {})
    assert read_baseline(tmp_path / "base.json") == {"a": GOOD}


def test_a_history_reads_back_as_written_and_refuses_what_is_none(tmp_path):
    entry = HistoryEntry(datetime(2026, 1, 2, tzinfo=UTC), "a", "00", "1", "x", GOOD, None, passed=True)
    append_history(tmp_path / "history.sqlite", [entry])
    append_history(tmp_path / "history.sqlite", [])
    assert read_history(tmp_path / "history.sqlite") == (entry,)
    (tmp_path / "text").write_text("no database at all, but long enough to be looked at" * 50)
    with pytest.raises(ScenarioError, match="no history"):
        read_history(tmp_path / "text")
    with pytest.raises(ScenarioError, match="there is no history"):
        read_history(tmp_path / "nothing")


def test_a_tolerance_that_is_none_is_an_error(bench):
    assert bench("--tolerance", "many")[0] == 2
