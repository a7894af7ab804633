"""Requests recorded elsewhere: a CSV or JSONL file with arrival, lengths and session."""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import ScenarioError
from engine.core.units import NS_PER_S
from engine.trace.strings import ABSENT
from engine.workloads.serving.request_stream import RequestStream

_NAMES = {
    "arrival_s": ("arrival_s", "arrival", "arrived_at", "timestamp"),
    "prompt_tokens": ("prompt_tokens", "input_toks", "input_tokens", "num_prefill_tokens"),
    "output_tokens": ("output_tokens", "output_toks", "num_decode_tokens"),
}
"""Columns by the names different recorders give them."""
_MAX_TOKENS = 1 << 31


def recorded_requests(path: Path) -> RequestStream:
    """Returns the requests of a file, by arrival; times count from the first one.

    A column ``session`` (any text) makes requests of one session share what was said before: every prompt of it is
    taken to begin with the prompt and answer of the one before, as far as it is long enough.

    Raises:
        ScenarioError: It cannot be read, or a row lacks a number; it names the row.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}; give a CSV or JSONL file of requests") from error
    rows = list(_json_rows(path, text) if text.lstrip().startswith("{") else csv.DictReader(text.splitlines()))
    if not rows:
        raise ScenarioError(f"{path}: holds no requests; columns: {', '.join(_NAMES)}, session")
    arrival_s = _column(path, rows, "arrival_s", 0.0)
    order = np.argsort(arrival_s, kind="stable")
    prompt, output = _column(path, rows, "prompt_tokens", 1.0), _column(path, rows, "output_tokens", 1.0)
    sessions = [str(row.get("session") or "") for row in rows]
    known = {name: number for number, name in enumerate(dict.fromkeys(filter(None, sessions)))}
    count = len(rows)
    return RequestStream(
        arrival_ns=np.rint((arrival_s[order] - arrival_s[order[0]]) * NS_PER_S).astype(np.int64),
        prompt_tokens=prompt[order].astype(np.int64),
        output_tokens=output[order].astype(np.int64),
        session=np.array([known.get(name, ABSENT) for name in sessions], dtype=np.int32)[order],
        prefix=np.full(count, ABSENT, dtype=np.int32),
        shared_tokens=np.zeros(count, dtype=np.int64),
        after=np.full(count, ABSENT, dtype=np.int32),
    )


def _json_rows(path: Path, text: str) -> Iterable[Mapping[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ScenarioError(f"{path}: line {number} is no JSON object: {error}") from error
        if not isinstance(row, dict):
            raise ScenarioError(f"{path}: line {number} is no JSON object")
        yield row


def _column(path: Path, rows: list[Mapping[str, Any]], name: str, minimum: float) -> np.ndarray[Any, Any]:
    title = next((known for known in _NAMES[name] if known in rows[0]), None)
    if title is None:
        raise ScenarioError(f"{path}: has no column {name}; columns: {', '.join(map(str, rows[0]))}")
    values = np.empty(len(rows))
    for index, row in enumerate(rows):
        try:
            values[index] = float(row[title])
        except (KeyError, TypeError, ValueError) as error:
            raise ScenarioError(f"{path}: request {index + 1}: {title} is {row.get(title)!r}, not a number") from error
        if not minimum <= values[index] < _MAX_TOKENS:
            raise ScenarioError(
                f"{path}: request {index + 1}: {title} is {row[title]}; it must be at least {minimum:g}"
            )
    return values
