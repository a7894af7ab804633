"""Arguments of trace events: of chosen rows while a file is read, of any row later by its byte offset."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from engine.core.arrays import Int64Array
from engine.core.errors import SourcePosition
from engine.formats.events.json_scanning import skip_value
from engine.formats.events.trace_input import TraceBytes, open_trace_bytes
from engine.formats.reader import ReadContext
from engine.trace.diagnostics import DiagnosticLog, Severity

_CHECK_EVERY = 1024


@dataclass(frozen=True, slots=True)
class DecodedRow:
    """An event that was decoded at import.

    Attributes:
        row: Its row in the columns.
        args: Its arguments; empty where it has none.
    """

    row: int
    args: Mapping[str, Any]


class _WithArguments(msgspec.Struct, gc=False):
    args: dict[str, Any] = {}


class RowDecoder:
    """Decodes the arguments of chosen rows while the file is open."""

    def __init__(
        self,
        path: Path,
        source: TraceBytes,
        offset: Int64Array,
        length: Int64Array,
        diagnostics: DiagnosticLog,
        context: ReadContext,
    ) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(_WithArguments)
        self._source = source
        self._offset = offset
        self._length = length
        self._diagnostics = diagnostics
        self._context = context

    def decoded(self, rows: Int64Array) -> Iterator[DecodedRow]:
        """Yields the rows with their arguments. A Python loop: metadata and counters are few."""
        passed = 0
        for index, row in enumerate(rows.tolist()):
            if index % _CHECK_EVERY == 0:
                self._context.cancel.check()
                self._context.progress(1.0, "reading counters and metadata")
                self._source.give_back(passed, int(self._offset[row]))
                passed = int(self._offset[row])
            yield DecodedRow(row, self._args(row))

    def _args(self, row: int) -> dict[str, Any]:
        start = int(self._offset[row])
        raw = self._source.text[start : start + int(self._length[row])].tobytes()
        try:
            return self._decoder.decode(raw).args
        except (msgspec.DecodeError, RecursionError):
            pass
        try:
            args = _decoded_object(raw).get("args")
            return args if isinstance(args, dict) else {}
        except (ValueError, RecursionError):
            message = "an event's arguments are no JSON and are left out"
            position = SourcePosition(self._path, byte=start)
            self._diagnostics.add("unreadable-arguments", Severity.DATA_LOSS, message, position=position)
            return {}


def finite_number(value: object) -> float | None:
    """Returns a JSON number as float64; None for anything else, NaN, infinity and integers beyond float64."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def decoded_json(raw: bytes) -> Any:
    """Returns the JSON value; control characters, NaN and bytes that are no UTF-8 are accepted.

    Raises ValueError for anything that is no JSON, RecursionError for extreme nesting.
    """
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return json.loads(raw.decode("utf-8", "replace"), strict=False)


def _decoded_object(raw: bytes) -> dict[str, Any]:
    value = decoded_json(raw)
    return value if isinstance(value, dict) else {}


class EventDecoder:
    """Reads events of a file by byte offset; the file is opened (and expanded) at the first use.

    Args:
        path: The trace file, plain or gzip.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source: TraceBytes | None = None

    def event(self, offset: int) -> dict[str, Any]:
        """Returns the event object at ``offset``; empty where it cannot be decoded. Raises OSError, TraceReadError."""
        if self._source is None:
            with open_trace_bytes(self._path, DiagnosticLog(), ReadContext()) as source:
                self._source = source
        text = self._source.text
        end = int(skip_value(text, offset, len(text))) if 0 <= offset < len(text) else -1
        if end < 0:
            return {}
        try:
            return _decoded_object(text[offset:end].tobytes())
        except (ValueError, RecursionError):
            return {}

    def __call__(self, offset: int) -> Mapping[str, Any]:
        """Returns the arguments of the event at ``offset``."""
        args = self.event(offset).get("args")
        return args if isinstance(args, dict) else {}


def decode_event(path: Path, offset: int) -> dict[str, Any]:
    """Returns the event object at byte ``offset`` of the (decompressed) file; empty where it cannot be decoded."""
    return EventDecoder(path).event(offset)
