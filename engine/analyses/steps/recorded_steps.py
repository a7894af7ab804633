"""The step times a capture brings along (``step_trace_time.csv``)."""

import math
from collections.abc import Mapping

from engine.core.units import MAX_DURATION_NS, NS_PER_US
from engine.trace.tables import RecordedTable
from engine.trace.trace import Trace

TABLE = "step_trace_time"

_COLUMNS = {
    "computing": "Computing",
    "communication": "Communication",
    "communication_not_overlapped": "Communication(Not Overlapped)",
    "overlapped": "Overlapped",
    "free": "Free",
    "stage": "Stage",
    "bubble": "Bubble",
    "preparing": "Preparing",
}
"""Value (JSON key without its unit) → column title; the file is in µs without saying so."""

_LIMIT_US = MAX_DURATION_NS / NS_PER_US

RecordedStep = Mapping[str, int]
"""Value → ns; values the file does not have are absent."""


def recorded_steps(trace: Trace) -> dict[int | None, RecordedStep]:
    """Returns the rows of the capture's own table by step number (None where the step cell is blank).

    A cell that is no duration (text, below zero, longer than any trace) counts as one the file does not have.
    """
    table = trace.tables.get(TABLE)
    if table is None:
        return {}
    rows: dict[int | None, RecordedStep] = {}
    # One row per step.
    for row in range(len(table)):
        values_us = {key: _number(trace, table, title, row) for key, title in _COLUMNS.items()}
        number = _number(trace, table, "Step", row)
        rows[None if number is None else int(number)] = {
            key: round(value_us * NS_PER_US)
            for key, value_us in values_us.items()
            if value_us is not None and 0 <= value_us < _LIMIT_US
        }
    return rows


def _number(trace: Trace, table: RecordedTable, title: str, row: int) -> float | None:
    """Returns a cell as a finite number, or None."""
    if title in table.numbers:
        value = float(table.numbers[title][row])
    elif title in table.texts:
        try:
            value = float(trace.strings.text(int(table.texts[title][row])))
        except ValueError:
            return None
    else:
        return None
    return value if math.isfinite(value) else None
