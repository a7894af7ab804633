"""Services for tests of the window: small enough to be served in milliseconds."""

import tomllib
from pathlib import Path
from typing import Any

from engine.report.serving import analysis_of, report_of
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.serving.prevention import JitterReport
from engine.workloads.serving.simulate import simulate_serving
from profiler_gui.session.serving_runs import Served

CHAT = """
name = "chat"
kind = "serving"
[model]
preset = "qwen2-0.5b"
[device]
preset = "910b2"
count = 1
[serving]
max_batch = 4
slo_ttft_ms = 500
batching = "{batching}"
[serving.requests]
arrival = "at_once"
count = 24
shared_prefixes = 1
shared_tokens = 6000
prompt_tokens = 6400
output_tokens = {{ mean = 40, sigma = 0.7 }}
"""
"""Prompts that begin alike and take long to compute: more requests than places, so that late ones wait for a place."""


def service_text(batching: str = "continuous") -> str:
    """Returns a serving scenario as TOML."""
    return CHAT.format(batching=batching)


def service_document(batching: str = "continuous") -> dict[str, Any]:
    """Returns a serving scenario as the parsed file."""
    return tomllib.loads(service_text(batching))


def served(document: dict[str, Any]) -> tuple[Served, JitterReport | None]:
    """Returns what comes of a service, as the worker hands it over, with who was late."""
    result = simulate_serving(scenario_from_document(document, Path()))
    return Served({}, result.settings, result.run, analysis_of(result), result.peak_memory_bytes), report_of(result)
