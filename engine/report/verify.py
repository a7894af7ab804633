"""The score of a prediction, and the log of all scores (``cannscope.verify/1``)."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.errors import ExportError
from engine.core.number_format import format_bytes, format_duration_ns
from engine.core.units import NS_PER_US
from engine.report.diagnostics import diagnostic_lines, diagnostic_rows
from engine.trace.diagnostics import Diagnostic, DiagnosticLog, Severity
from engine.whatif.prediction import prediction_document
from engine.whatif.verification import TOLERANCE_RATIO, Calibration, Score, calibration

SCHEMA = "cannscope.verify/1"


@dataclass(frozen=True, slots=True)
class CalibrationLog:
    """The scores of one log file.

    Attributes:
        summary: Of all, None where there is none.
        diagnostics: Lines that could not be used.
    """

    summary: Calibration | None
    diagnostics: tuple[Diagnostic, ...]


def verify_document(score: Score, log: Path, known: CalibrationLog, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a score; durations in µs, sizes in bytes."""
    return {
        "schema": SCHEMA,
        "prediction": prediction_document(score.prediction),
        "achieved": {"step_time_us": score.step_ns / NS_PER_US, "peak_reserved_bytes": score.reserved_bytes},
        **_score_document(score),
        "replay_error_ratio": score.replay_error_ratio,
        "log": str(log),
        "calibration": None if known.summary is None else asdict(known.summary),
        "diagnostics": diagnostic_rows(known.diagnostics),
        "provenance": provenance,
    }


def _score_document(score: Score) -> dict[str, Any]:
    return {
        "in_range": score.is_in_range,
        "tolerance_ratio": TOLERANCE_RATIO,
        "step_error_ratio": score.step_error_ratio,
        "achieved_gain_us": score.achieved_gain_ns / NS_PER_US,
        "gain_error_ratio": score.gain_error_ratio,
        "reserved_error_ratio": score.reserved_error_ratio,
    }


def noted(score: Score, path: Path, moment: str, provenance: dict[str, Any]) -> CalibrationLog:
    """Appends a score to a log of JSON lines and returns what the log holds now.

    Args:
        score: To be added.
        path: The log; it is made where it does not exist.
        moment: When, as ISO 8601.
        provenance: Versions and files.

    Raises:
        ExportError: The log cannot be written.
    """
    prediction = score.prediction
    line = {
        "schema": SCHEMA,
        "moment": moment,
        "name": prediction.name,
        "enabled": list(prediction.enabled),
        "expected_step_us": prediction.step_ns[1] / NS_PER_US,
        "achieved_step_us": score.step_ns / NS_PER_US,
        **_score_document(score),
        "weak": prediction.weak,
        "provenance": provenance,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as opened:
            opened.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        return _read(path)
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; choose another place with --log") from error


def _read(path: Path) -> CalibrationLog:
    log = DiagnosticLog()
    errors: list[float] = []
    in_range: list[bool] = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
            error, inside = float(line["step_error_ratio"]), bool(line["in_range"])
        except (ValueError, KeyError, TypeError):
            log.add("unreadable-score", Severity.NOTICE, "lines of the calibration log are no scores", count=1)
            continue
        errors.append(error)
        in_range.append(inside)
    return CalibrationLog(calibration(errors, in_range), log.diagnostics())


def verify_text(score: Score, log: Path, known: CalibrationLog) -> RenderableType:
    """Returns a score for people."""
    prediction = score.prediction
    shortest, expected, longest = (format_duration_ns(value) for value in prediction.step_ns)
    verdict = "in range" if score.is_in_range else "out of range"
    headline = (
        f"{prediction.name}: {verdict}: step {format_duration_ns(score.step_ns)}, predicted {expected} "
        f"({shortest} … {longest}, ±{TOLERANCE_RATIO:.0%}), off by {score.step_error_ratio:+.1%}"
    )
    table = Table("", "before", "predicted", "achieved", box=None)
    step = (format_duration_ns(prediction.baseline_step_ns), expected, format_duration_ns(score.step_ns))
    table.add_row("step", *step)
    gains = (format_duration_ns(prediction.gain.expected_ns), format_duration_ns(score.achieved_gain_ns))
    table.add_row("gain", "", *gains)
    sizes = (prediction.baseline_reserved_bytes, prediction.reserved_bytes, score.reserved_bytes)
    if any(size is not None for size in sizes):
        table.add_row("reserved", *(format_bytes(size) if size is not None else "–" for size in sizes))
    lines = [f"switched on: {', '.join(prediction.enabled)}"]
    if prediction.weak:
        lines.append(f"it was a weak prediction: {prediction.weak}")
    summary = known.summary
    if summary is not None:
        lines.append(
            f"{log}: {summary.count} scored, {summary.in_range_ratio:.0%} in range, median error "
            f"{summary.median_absolute_error_ratio:.1%}, bias {summary.bias_ratio:+.1%}"
        )
    lines += diagnostic_lines(known.diagnostics)
    return Group(Text(headline, style="bold"), table, Text("\n".join(lines)))
