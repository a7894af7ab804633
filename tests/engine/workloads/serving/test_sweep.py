"""Latency over the rate of requests."""

from pathlib import Path

import pytest

from engine.core.errors import ScenarioError
from engine.workloads.scenario_file import read_scenario
from engine.workloads.serving.sweep import RATE_SHARES, highest_rate_per_s, rate_sweep

BODY = """
name = "chat"
kind = "serving"
[model]
preset = "qwen2-0.5b"
[device]
preset = "910b2"
count = 1
[serving]
max_batch = 8
slo_ttft_ms = 300
requests = { count = 120, prompt_tokens = 300, output_tokens = 30 }
"""


def service(tmp_path: Path, body: str = BODY):
    path = tmp_path / "service.toml"
    path.write_text(body)
    return read_scenario(path)


def test_first_tokens_come_later_the_faster_requests_come(tmp_path):
    scenario = service(tmp_path)
    points = list(rate_sweep(scenario))
    highest = highest_rate_per_s(scenario)
    assert [point.rate_per_s for point in points] == pytest.approx([share * highest for share in RATE_SHARES])
    assert points[-1].analysis.ttft.p90_ns > 3 * points[0].analysis.ttft.p90_ns
    assert points[-1].analysis.tpot.mean_ns > points[0].analysis.tpot.mean_ns
    assert points[0].goodput_ratio == pytest.approx(1.0)
    assert points[-1].goodput_ratio < 0.7


def test_below_its_capacity_a_service_answers_as_fast_as_it_is_asked(tmp_path):
    point = next(rate_sweep(service(tmp_path), rates_per_s=(1.0,)))
    assert point.analysis.requests_per_s == pytest.approx(1.0, rel=0.25)


def test_recorded_requests_have_no_other_rate(tmp_path):
    (tmp_path / "r.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,1,1\n")
    body = BODY.replace("requests = {", 'file = "r.csv" #')
    with pytest.raises(ScenarioError, match="recorded requests"):
        next(rate_sweep(service(tmp_path, body)))
