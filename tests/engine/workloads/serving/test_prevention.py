"""Which limit would have kept requests on time, found by serving them again."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.analyses.serving.jitter_parts import Cause
from engine.report.serving import late_lines, report_of, served_document
from engine.workloads.scenario_file import read_scenario
from engine.workloads.serving.prevention import jitter_report
from engine.workloads.serving.simulate import simulate_serving

HEAD = """
name = "chat"
kind = "serving"
[model]
preset = "qwen2-0.5b"
[device]
preset = "910b2"
count = 1
[serving]
"""


@pytest.fixture
def served(tmp_path: Path):
    def run(body: str):
        path = tmp_path / "service.toml"
        path.write_text(HEAD + body)
        return simulate_serving(read_scenario(path))

    return run


CROWDED = "max_batch = 1\nrequests = { arrival = 'at_once', count = 8, prompt_tokens = 100, output_tokens = 40 }\n"


def test_places_would_have_kept_requests_on_time(served):
    report = jitter_report(served(CROWDED + "slo_ttft_ms = 500\n"))
    assert next(iter(report.jitter.causes)) is Cause.PLACES
    best = report.preventions[0]
    assert (best.setting, best.before, best.after) == ("max_batch", "1", "4")
    assert best.late_after < best.late_before
    assert any("max_batch = 4 instead of 1" in line for line in late_lines(report))


def test_smaller_iterations_would_have_kept_answers_going(served):
    asked = "{ rate_per_s = 4.0, count = 60, prompt_tokens = { mean = 2000, sigma = 1.6, max = 40000 } }"
    report = jitter_report(served(f"max_batched_tokens = 32768\nrequests = {asked}\n"))
    found = next(item for item in report.preventions if item.cause is Cause.PROMPT)
    assert found.setting == "max_batched_tokens"
    assert int(found.after) < 32768
    assert found.late_after < found.late_before


def test_a_run_too_long_to_be_repeated_says_so(served, monkeypatch):
    result = served(CROWDED)
    monkeypatch.setattr("engine.workloads.serving.prevention._MOST_ITERATIONS", 10)
    report = jitter_report(replace(result))
    assert report.preventions == ()
    assert all("not tried" in text for text in report.unprevented)


def test_the_document_of_a_run_tells_who_was_late(served):
    result = served(CROWDED + "slo_ttft_ms = 500\n")
    found = served_document(result, {}, report_of(result))["serving"]["jitter"]
    assert found["late_first_token"] == len(found["requests"])
    assert found["requests"][0]["cause"] == Cause.PLACES.value
    assert sum(found["requests"][0]["parts_ms"].values()) == pytest.approx(found["requests"][0]["taken_ms"])
    assert found["limits_ms"] == {"first_token": 500.0, "gap": None, "time_per_token": None}
