"""A baseline in a JSON file, and whether new numbers are as good."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.core.errors import ExportError, ScenarioError
from engine.workloads.bench.measure import Measurement

SCHEMA = "cannscope.baseline/1"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A scenario against its baseline.

    Attributes:
        name: Of the scenario.
        now: Its numbers.
        baseline: What they are compared with; None where the baseline does not know the scenario.
        change_ratio: Worst of the three, as a share of the baseline, positive where it got worse; None without one.
        passed: Whether nothing got worse by more than the tolerance and the run ended. A scenario the baseline does
            not know passes: there is nothing to be worse than.
    """

    name: str
    now: Measurement
    baseline: Measurement | None
    change_ratio: float | None
    passed: bool


def compared(name: str, now: Measurement, baseline: Measurement | None, tolerance_ratio: float) -> Comparison:
    """Returns a scenario's numbers against its baseline."""
    if baseline is None:
        return Comparison(name, now, None, None, now.status == "done")
    worse = [
        1.0 - now.tokens_per_s / baseline.tokens_per_s if baseline.tokens_per_s else 0.0,
        now.peak_memory_bytes / baseline.peak_memory_bytes - 1.0 if baseline.peak_memory_bytes else 0.0,
    ]
    if now.ms_per_token is not None and baseline.ms_per_token:
        worse.append(now.ms_per_token / baseline.ms_per_token - 1.0)
    change = max(worse)
    return Comparison(name, now, baseline, change, now.status == "done" and change <= tolerance_ratio)


def write_baseline(path: Path, measured: Mapping[str, Measurement], provenance: Mapping[str, Any]) -> None:
    """Writes a baseline. Raises ExportError."""
    document = {
        "schema": SCHEMA,
        "scenarios": {name: asdict(item) for name, item in measured.items()},
        "provenance": dict(provenance),
    }
    try:
        path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; choose another place with --record") from error


def read_baseline(path: Path) -> dict[str, Measurement]:
    """Returns the scenarios of a baseline by name. Raises ScenarioError."""
    hint = "record one with: cannscope bench SCENARIO --record FILE"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}; {hint}") from error
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: no JSON: {error}; {hint}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ScenarioError(f"{path}: is no baseline ({SCHEMA}); {hint}")
    scenarios = document.get("scenarios")
    if not isinstance(scenarios, dict):
        raise ScenarioError(f"{path}: scenarios is missing; {hint}")
    return {str(name): _measurement(path, str(name), entry) for name, entry in scenarios.items()}


def _measurement(path: Path, name: str, entry: Any) -> Measurement:
    try:
        per_token = entry["ms_per_token"]
        return Measurement(
            tokens_per_s=float(entry["tokens_per_s"]),
            ms_per_token=None if per_token is None else float(per_token),
            peak_memory_bytes=int(entry["peak_memory_bytes"]),
            status=str(entry["status"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ScenarioError(f"{path}: scenario {name!r} lacks a number ({error}); record it again") from error
