"""A ``traceEvents`` array to columns: stretches of the file are scanned by threads and joined in file order."""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array, UInt8Array
from engine.core.errors import SourcePosition
from engine.core.units import MAX_DURATION_NS, MAX_TIME_NS, us_text_to_ns
from engine.formats.events import event_rows as rows_of
from engine.formats.events.byte_table import ByteTable
from engine.formats.events.event_rows import RowBuffers, row_buffers, scan_stretch
from engine.formats.events.event_scanner import TS, find_event
from engine.formats.events.json_scanning import span_text
from engine.formats.events.trace_input import TraceBytes
from engine.formats.reader import ReadContext
from engine.trace.diagnostics import DiagnosticLog, Severity

STRETCH_BYTES = 4 << 20
"""About 10 ms of scanning: cancellation and progress are looked at between stretches."""
_BYTES_PER_EVENT = 96
_MAX_THREADS = 4
_UNUSABLE_DURATION = "the event's duration is no number or longer than any trace; it is taken as 0"


@dataclass(eq=False)
class EventColumns:
    """The rows of an array in file order, still with numbers into byte tables.

    Attributes:
        memory: Per stretch, the row and the numbers of its ``[memory]`` instants, int64, shape (7, k).
        parts: Per column name, one array per stretch.
        names: Distinct event names as written.
        words: Distinct categories, pids, tids and task types.
        flows: Distinct ids.
        row_count: Events so far.
        unusable_start_count: Events whose ``ts`` stands there and is no usable number.
    """

    names: ByteTable = field(default_factory=ByteTable)
    words: ByteTable = field(default_factory=ByteTable)
    flows: ByteTable = field(default_factory=ByteTable)
    memory: list[Int64Array] = field(default_factory=list)
    parts: dict[str, list[AnyArray]] = field(default_factory=dict)
    unusable_start_count: int = 0
    row_count: int = 0

    def append(self, **columns: AnyArray) -> None:
        """Adds one stretch of rows."""
        for name, column in columns.items():
            self.parts.setdefault(name, []).append(column)

    def take(self, name: str, dtype: type[np.generic]) -> AnyArray:
        """Returns a whole column and forgets its parts, so that no column is held twice for long."""
        parts = self.parts.pop(name, [])
        return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)


@dataclass(frozen=True, slots=True)
class ArrayEnd:
    """Where an events array ended and how.

    Attributes:
        position: Byte offset after ``]``, or where reading stopped.
        closed: Whether there was a ``]``.
    """

    position: int
    closed: bool


def read_array(
    path: Path, source: TraceBytes, begin: int, columns: EventColumns, diagnostics: DiagnosticLog, context: ReadContext
) -> ArrayEnd:
    """Appends the events of the array whose first element begins after ``begin`` to ``columns``."""
    text = source.text
    size = len(text)
    position, reason, comma_last = begin, rows_of.TEXT_END, False
    for rows in _stretches(text, begin):
        context.cancel.check()
        _append(path, text, rows, columns, diagnostics)
        passed, position = position, int(rows.report[rows_of.POSITION])
        source.give_back(passed, position)
        context.progress(position / size, "reading events")
        reason, comma_last = int(rows.report[rows_of.REASON]), bool(rows.report[rows_of.COMMA_LAST])
        if reason not in (rows_of.REACHED_STOP, rows_of.FULL):
            break
    if reason == rows_of.ARRAY_END:
        if comma_last:
            message = "the array of events ends in a comma"
            diagnostics.add("trailing-comma", Severity.NOTICE, message, position=SourcePosition(path, byte=position))
        return ArrayEnd(position + 1, closed=True)
    what = "inside an event" if reason == rows_of.CUT else "without closing its array"
    message = f"the file ends {what}; every complete event before is read"
    diagnostics.add("truncated-array", Severity.DATA_LOSS, message, position=SourcePosition(path, byte=position))
    return ArrayEnd(position, closed=False)


def _stretches(text: UInt8Array, begin: int) -> Iterator[RowBuffers]:
    """Yields scanned stretches in file order, each beginning exactly where the one before ended.

    A stretch is started where an event seems to begin; only when the one before it really ends there is it used,
    otherwise it is scanned again from the right place. A wrong guess costs time, never an event. What is yielded is
    overwritten after the next one was asked for.
    """
    threads = min(os.cpu_count() or 1, _MAX_THREADS)
    size = len(text)
    spare = [row_buffers(_capacity(size - begin))]
    pending: deque[tuple[int, int, Future[RowBuffers]]] = deque()
    starts = _boundaries(text, begin)
    start, position = next(starts), begin
    pool = ThreadPoolExecutor(threads, "scan")
    try:
        while pending or start < size:
            while start < size and len(pending) <= threads:
                stop = next(starts)
                rows = spare.pop() if spare else row_buffers(_capacity(stop - start))
                pending.append((start, stop, pool.submit(scan_stretch, text, start, stop, rows)))
                start = stop
            start_of_first, stop_of_first, future = pending.popleft()
            rows = future.result()
            if position != start_of_first:
                rows = scan_stretch(text, position, stop_of_first, rows)
            yield rows
            position = int(rows.report[rows_of.POSITION])
            while rows.report[rows_of.REASON] == rows_of.FULL:
                yield scan_stretch(text, position, stop_of_first, rows)
                position = int(rows.report[rows_of.POSITION])
            spare.append(rows)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _boundaries(text: UInt8Array, begin: int) -> Iterator[int]:
    """Yields ``begin``, then about every STRETCH_BYTES a place where an event seems to begin, then the text's end."""
    yield begin
    last = begin
    for guess in range(begin + STRETCH_BYTES, len(text), STRETCH_BYTES):
        if guess > last:
            last = int(find_event(text, guess, len(text)))
            yield last
    if last < len(text):
        yield len(text)


def _capacity(size_bytes: int) -> int:
    return min(max(size_bytes, 0), STRETCH_BYTES) // _BYTES_PER_EVENT + 64


def _append(path: Path, text: UInt8Array, rows: RowBuffers, columns: EventColumns, diagnostics: DiagnosticLog) -> None:
    report = rows.report
    count = int(report[rows_of.ROWS])
    wide, narrow = rows.wide[:, :count], rows.narrow[:, :count]
    columns.unusable_start_count += _settle_odd_numbers(path, text, rows, diagnostics)
    _drop_endless_durations(path, rows, count, diagnostics)
    names = columns.names.merge(text, rows.entries[0, : report[rows_of.NAMES]])
    words = columns.words.merge(text, rows.entries[1, : report[rows_of.WORDS]])
    flows = columns.flows.merge(text, rows.entries[2, : report[rows_of.FLOWS]])
    memory = rows.memory[:, : report[rows_of.MEMORY]].copy()
    memory[0] += columns.row_count
    columns.row_count += count
    columns.memory.append(memory)
    columns.append(
        phase=rows.bytes[0, :count].copy(),
        encloses=(rows.bytes[1, :count] & rows_of.ENCLOSES) != 0,
        not_finished=(rows.bytes[1, :count] & rows_of.NOT_FINISHED) != 0,
        start_ns=wide[rows_of.START_NS].copy(),
        duration_ns=wide[rows_of.DURATION_NS].copy(),
        correlation=wide[rows_of.CORRELATION_ID].copy(),
        stream=wide[rows_of.STREAM_NUMBER].copy(),
        offset=wide[rows_of.OFFSET].copy(),
        length=wide[rows_of.LENGTH].copy(),
        name=_mapped(names, narrow[rows_of.NAME_ID]),
        category=_mapped(words, narrow[rows_of.CATEGORY_ID]),
        process=_mapped(words, narrow[rows_of.PROCESS_ID]),
        thread=_mapped(words, narrow[rows_of.THREAD_ID]),
        task=_mapped(words, narrow[rows_of.TASK_ID]),
        flow=_mapped(flows, narrow[rows_of.FLOW_ID]),
    )
    _count_problems(path, report, diagnostics)


def _mapped(mapping: Int32Array, numbers: Int32Array) -> Int32Array:
    """Returns ``mapping[numbers]`` with absent (−1) kept absent."""
    return np.append(mapping, np.int32(-1))[numbers]


def _settle_odd_numbers(path: Path, text: UInt8Array, rows: RowBuffers, diagnostics: DiagnosticLog) -> int:
    """Converts what the compiled loop left; returns how many start times are unusable."""
    unusable_start_count = 0
    # A Python loop over the rare numbers that are no plain decimals: exponents, NaN, too many digits.
    for row, field_index, start, end in rows.odd[: rows.report[rows_of.ODD]].tolist():
        is_start = field_index == TS
        column = rows.wide[rows_of.START_NS if is_start else rows_of.DURATION_NS]
        try:
            ns = us_text_to_ns(span_text(text, start, end).decode("ascii", "replace"))
        except ValueError:
            ns = None
        if ns is not None and abs(ns) <= MAX_TIME_NS:
            column[row] = ns if is_start else max(ns, 0)
            continue
        position = SourcePosition(path, byte=int(rows.wide[rows_of.OFFSET, row]))
        if is_start:
            unusable_start_count += 1
            message = "the event's time is no number or beyond the year 2079; the event cannot be placed"
            diagnostics.add("unusable-timestamp", Severity.DATA_LOSS, message, position=position)
        else:
            column[row] = 0
            diagnostics.add("unusable-duration", Severity.NOTICE, _UNUSABLE_DURATION, position=position)
    return unusable_start_count


def _drop_endless_durations(path: Path, rows: RowBuffers, count: int, diagnostics: DiagnosticLog) -> None:
    duration_ns = rows.wide[rows_of.DURATION_NS, :count]
    endless = np.flatnonzero(duration_ns > MAX_DURATION_NS)
    if len(endless):
        duration_ns[endless] = 0
        position = SourcePosition(path, byte=int(rows.wide[rows_of.OFFSET, endless[0]]))
        diagnostics.add("unusable-duration", Severity.NOTICE, _UNUSABLE_DURATION, count=len(endless), position=position)


def _count_problems(path: Path, report: Int64Array, diagnostics: DiagnosticLog) -> None:
    diagnostics.add(
        "malformed-event",
        Severity.DATA_LOSS,
        "text that is no event was passed over; reading went on at the next event",
        count=int(report[rows_of.BROKEN]),
        position=SourcePosition(path, byte=int(report[rows_of.FIRST_BROKEN])),
    )
    diagnostics.add(
        "negative-duration",
        Severity.NOTICE,
        "the event's duration is negative; it is taken as 0",
        count=int(report[rows_of.NEGATIVE]),
        position=SourcePosition(path, byte=int(report[rows_of.FIRST_NEGATIVE])),
    )
    diagnostics.add(
        "foreign-element",
        Severity.NOTICE,
        "an element of the array of events is no object",
        count=int(report[rows_of.FOREIGN]),
        position=SourcePosition(path),
    )
