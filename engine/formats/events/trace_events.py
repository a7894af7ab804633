"""Chrome trace events as columns, for every reader of that family (Chrome, Kineto, Ascend's ``trace_view.json``).

Only the columns that place an event are read for all events; arguments are decoded for the few rows that need them at
import (metadata, counters, memory instants) and on demand for any other row by its byte offset.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array, read_only
from engine.core.errors import SourcePosition, TraceSyntaxError
from engine.core.progress import part_of
from engine.formats.events.event_arguments import DecodedRow, EventDecoder, RowDecoder, decode_event, decoded_json
from engine.formats.events.event_columns import EventColumns, read_array
from engine.formats.events.json_scanning import ABSENT_TIME_NS, skip_blanks, skip_value, string_end
from engine.formats.events.trace_input import TraceBytes, is_gzip, open_trace_bytes
from engine.formats.reader import ReadContext
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import StringInterner, StringTable

__all__ = ["ABSENT_TIME_NS", "DecodedRow", "EventDecoder", "MemoryInstants", "RawEvents", "decode_event", "read_events"]

METADATA, COUNTER = ord("M"), ord("C")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, eq=False)
class MemoryInstants:
    """The ``[memory]`` instants of the PyTorch profiler, int64 columns of shape (n,), in file order.

    Attributes:
        row: Row in the event columns.
        address: −1 where the file records none.
        bytes: Positive for an allocation, negative for a free, 0 where absent.
        total_allocated_bytes: After it, −1 where absent.
        total_reserved_bytes: After it, −1 where absent.
        device_type: c10 number: 0 CPU, 1 CUDA, 6 HIP, 12 XPU, 19 MTIA, 20 NPU; −1 where absent.
        device: Device number, −1 for the host or where absent.
    """

    row: Int64Array
    address: Int64Array
    bytes: Int64Array
    total_allocated_bytes: Int64Array
    total_reserved_bytes: Int64Array
    device_type: Int64Array
    device: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class RawEvents:
    """Every event of a file in file order; columns of shape (n,).

    Attributes:
        phase: uint8, ``ord`` of ``ph``; 0 where absent or longer than a letter.
        start_ns: int64, absolute, exact from the text of ``ts``; ABSENT_TIME_NS where absent or unusable.
        duration_ns: int64, ``dur`` rounded to ns; −1 where absent.
        name: int32 string id, −1 where absent.
        category: int32 string id, −1 where absent.
        process: int32 string id of the text of ``pid``, −1 where absent.
        thread: int32 string id of the text of ``tid``, −1 where absent.
        correlation: int64, ``args.correlation`` or ``args.connection_id``, −1 where absent.
        stream: int64, ``args["Physic Stream Id"]``, ``args.stream`` or ``args["Stream Id"]``, −1 where absent.
        task: int32 string id of ``args["Task Type"]``, −1 where absent.
        flow: int32, index into ``flow_ids`` of the text of ``id``, −1 where absent. Not a string id of the trace:
            hundreds of thousands of ids would swamp its strings.
        encloses: bool, whether ``"bp": "e"`` stands on the event.
        not_finished: bool, whether ``args.finished`` is false: still open when the profiler stopped.
        offset: int64, byte offset of the object in the decompressed file: the key for ``decode_event``.
        flow_ids: The distinct ids as written, without quotes.
        metadata_events: Decoded events of phase M.
        counters: Decoded events of phase C.
        memory: The ``[memory]`` instants.
        top_level: Members of the file's object beside the events; empty for bare arrays.
        is_array: Whether the file is a bare array of events.
    """

    phase: UInt8Array
    start_ns: Int64Array
    duration_ns: Int64Array
    name: Int32Array
    category: Int32Array
    process: Int32Array
    thread: Int32Array
    correlation: Int64Array
    stream: Int64Array
    task: Int32Array
    flow: Int32Array
    encloses: BoolArray
    not_finished: BoolArray
    offset: Int64Array
    flow_ids: StringTable
    metadata_events: tuple[DecodedRow, ...]
    counters: tuple[DecodedRow, ...]
    memory: MemoryInstants
    top_level: Mapping[str, Any] = field(default_factory=dict)
    is_array: bool = False

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, item.name, read_only(value))

    def __len__(self) -> int:
        return len(self.phase)


def read_events(path: Path, strings: StringInterner, diagnostics: DiagnosticLog, context: ReadContext) -> RawEvents:
    """Reads a Chrome trace (an array, or an object with ``traceEvents``), plain or gzip, to columns.

    Everything that cannot be used is counted in ``diagnostics``; a file cut anywhere gives its complete events.

    Raises:
        TraceSyntaxError: The content is not a trace at all.
        TraceReadError: The gzip data cannot be expanded.
        OSError: The file cannot be read.
        OperationCancelled: Cancelled.
    """
    if is_gzip(path):
        expanding = ReadContext(part_of(context.progress, 0.0, 0.4), context.cancel)
        reading = ReadContext(part_of(context.progress, 0.4, 1.0), context.cancel)
    else:
        expanding = reading = context
    with open_trace_bytes(path, diagnostics, expanding) as source:
        columns = EventColumns()
        top_level, is_array = _read_top_level(path, source, columns, diagnostics, reading)
        return _finish(path, source, columns, strings, diagnostics, reading, top_level, is_array)


def _read_top_level(
    path: Path, source: TraceBytes, columns: EventColumns, diagnostics: DiagnosticLog, context: ReadContext
) -> tuple[dict[str, Any], bool]:
    """Reads the events into ``columns`` and returns the other members of the file's object."""
    text = source.text
    size = len(text)
    position = 3 if text[:3].tobytes() == _BOM else 0
    position = int(skip_blanks(text, position, size))
    opening = chr(text[position]) if position < size else ""
    if opening == "[":
        read_array(path, source, position + 1, columns, diagnostics, context)
        return {}, True
    if opening != "{":
        raise TraceSyntaxError("the content is no JSON trace", SourcePosition(path, byte=position), "open a trace file")
    top_level: dict[str, Any] = {}
    found = False
    position += 1
    while True:
        position = int(skip_blanks(text, position, size))
        if position < size and text[position] == ord(","):
            position = int(skip_blanks(text, position + 1, size))
        if position >= size or text[position] != ord('"'):
            break
        key_end = int(string_end(text, position + 1, size))
        colon = int(skip_blanks(text, key_end + 1, size)) if key_end >= 0 else size
        if colon >= size or text[colon] != ord(":"):
            break
        key = text[position + 1 : key_end].tobytes().decode("utf-8", "replace")
        value = int(skip_blanks(text, colon + 1, size))
        if key == "traceEvents" and value < size and text[value] == ord("["):
            found = True
            end = read_array(path, source, value + 1, columns, diagnostics, context)
            if not end.closed:
                return top_level, False
            position = end.position
            continue
        after = int(skip_value(text, value, size))
        if after < 0:
            break
        top_level[key] = _member(path, text, value, after, diagnostics)
        position = after
    if not found:
        what = "the JSON holds no list of trace events"
        raise TraceSyntaxError(what, SourcePosition(path), "open a Chrome, Kineto or Ascend trace")
    if position >= size or text[position] != ord("}"):
        message = "the file ends inside its metadata, or the metadata is no JSON; what stands before is read"
        diagnostics.add("truncated-metadata", Severity.DATA_LOSS, message, position=SourcePosition(path, byte=position))
    return top_level, False


def _member(path: Path, text: UInt8Array, start: int, end: int, diagnostics: DiagnosticLog) -> Any:
    try:
        return decoded_json(text[start:end].tobytes())
    except (ValueError, RecursionError):
        message = "a member of the file's metadata is no JSON and is left out"
        diagnostics.add("unreadable-metadata", Severity.NOTICE, message, position=SourcePosition(path, byte=start))
        return None


def _finish(
    path: Path,
    source: TraceBytes,
    columns: EventColumns,
    strings: StringInterner,
    diagnostics: DiagnosticLog,
    context: ReadContext,
    top_level: dict[str, Any],
    is_array: bool,
) -> RawEvents:
    names, invalid_names = columns.names.intern_into(strings)
    context.cancel.check()
    context.progress(1.0, "reading names")
    words, invalid_words = columns.words.intern_into(strings)
    phase = columns.take("phase", np.uint8)
    start_ns = columns.take("start_ns", np.int64)
    absent_count = int(np.count_nonzero((start_ns == ABSENT_TIME_NS) & (phase != METADATA)))
    _count_problems(path, absent_count - columns.unusable_start_count, invalid_names + invalid_words, diagnostics)
    offset = columns.take("offset", np.int64)
    length = columns.take("length", np.int64)
    name = _string_ids(names, columns.take("name", np.int32))
    rows = RowDecoder(path, source, offset, length, diagnostics, context)
    return RawEvents(
        phase=phase,
        start_ns=start_ns,
        duration_ns=columns.take("duration_ns", np.int64),
        name=name,
        category=_string_ids(words, columns.take("category", np.int32)),
        process=_string_ids(words, columns.take("process", np.int32)),
        thread=_string_ids(words, columns.take("thread", np.int32)),
        correlation=columns.take("correlation", np.int64),
        stream=columns.take("stream", np.int64),
        task=_string_ids(words, columns.take("task", np.int32)),
        flow=columns.take("flow", np.int32),
        encloses=columns.take("encloses", np.bool_),
        not_finished=columns.take("not_finished", np.bool_),
        offset=offset,
        flow_ids=columns.flows.table(),
        metadata_events=tuple(rows.decoded(np.flatnonzero(phase == METADATA))),
        counters=tuple(rows.decoded(np.flatnonzero(phase == COUNTER))),
        memory=MemoryInstants(*np.concatenate([np.empty((7, 0), dtype=np.int64), *columns.memory], axis=1)),
        top_level=top_level,
        is_array=is_array,
    )


def _count_problems(path: Path, untimed_count: int, invalid_count: int, diagnostics: DiagnosticLog) -> None:
    position = SourcePosition(path)
    message = "events have no time and cannot be placed"
    diagnostics.add("missing-timestamp", Severity.DATA_LOSS, message, count=untimed_count, position=position)
    message = "texts hold bytes that are no UTF-8; each is shown as �"
    diagnostics.add("invalid-utf8", Severity.NOTICE, message, count=invalid_count, position=position)


def _string_ids(ids: Int32Array, numbers: Int32Array) -> Int32Array:
    return np.append(ids, np.int32(-1))[numbers]
