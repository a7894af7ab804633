"""Event rows of one stretch of a ``traceEvents`` array, filled by a compiled loop that holds no lock."""

from dataclasses import dataclass

import numba
import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array, UInt8Array
from engine.formats.byte_table import intern_span
from engine.formats.event_scanner import (
    ADDRESS,
    BIND,
    BYTES,
    CATEGORY,
    DEVICE,
    DUR,
    FIELD_COUNT,
    FINISHED,
    ID,
    NAME,
    PHASE,
    PROCESS,
    TASK,
    THREAD,
    TS,
    correlation_of,
    find_array_end,
    find_event,
    parse_event,
    stream_of,
)
from engine.formats.json_scanning import (
    ABSENT_TIME_NS,
    ODD_NUMBER,
    TRUNCATED,
    parse_integer,
    parse_us,
    same_bytes,
    skip_blanks,
    skip_value,
)

# Rows of the int64 and int32 column blocks.
START_NS, DURATION_NS, CORRELATION_ID, STREAM_NUMBER, OFFSET, LENGTH = range(6)
NAME_ID, CATEGORY_ID, PROCESS_ID, THREAD_ID, TASK_ID, FLOW_ID = range(6)

# What a stretch reports beside its rows.
(
    POSITION,
    REASON,
    ROWS,
    NAMES,
    WORDS,
    FLOWS,
    ODD,
    BROKEN,
    FIRST_BROKEN,
    NEGATIVE,
    FIRST_NEGATIVE,
    FOREIGN,
    COMMA_LAST,
    MEMORY,
) = range(14)
_REPORT_SIZE = 14
REACHED_STOP, ARRAY_END, TEXT_END, CUT, FULL = range(5)

MAX_ODD = 4096
MAX_WORDS = 8192
_MEMO_SIZE = 16
_SMALL_I, _CAPITAL_I = ord("i"), ord("I")
_MEMORY = np.frombuffer(b"[memory]", dtype=np.uint8).copy()
_COMMA, _OPEN_OBJECT, _CLOSE_ARRAY = ord(","), ord("{"), ord("]")
_LETTER_E, _LETTER_F = ord("e"), ord("f")
ENCLOSES, NOT_FINISHED = 1, 2


@dataclass(frozen=True, slots=True)
class RowBuffers:
    """What one stretch is scanned into; the report says how much of it is filled.

    Attributes:
        phases: uint8, shape (capacity,): the letter of ``ph``, 0 where absent.
        marks: uint8, shape (capacity,): ENCLOSES | NOT_FINISHED.
        wide: int64, shape (6, capacity).
        narrow: int32, shape (6, capacity), numbers into the three span tables.
        names: int64, shape (capacity, 3): spans of distinct names.
        words: int64, shape (MAX_WORDS, 3): spans of distinct categories, pids, tids and task types.
        flows: int64, shape (capacity, 3): spans of distinct ids.
        slots: int32, the hash tables of names, words and flows.
        memory: int64, shape (7, capacity): row and the MEMORY_FIELDS of ``[memory]`` instants.
        odd: int64, shape (MAX_ODD, 4): row, field, start, end of numbers in an unusual form.
        report: int64, shape (14,).
    """

    phases: UInt8Array
    marks: UInt8Array
    wide: Int64Array
    narrow: Int32Array
    names: Int64Array
    words: Int64Array
    flows: Int64Array
    slots: tuple[Int32Array, Int32Array, Int32Array]
    memory: Int64Array
    odd: Int64Array
    report: Int64Array


def row_buffers(capacity: int) -> RowBuffers:
    """Returns buffers for ``capacity`` events; filling them again is much cheaper than asking for new memory."""
    return RowBuffers(
        np.zeros(capacity, dtype=np.uint8),
        np.zeros(capacity, dtype=np.uint8),
        np.empty((6, capacity), dtype=np.int64),
        np.empty((6, capacity), dtype=np.int32),
        np.empty((capacity, 3), dtype=np.int64),
        np.empty((MAX_WORDS, 3), dtype=np.int64),
        np.empty((capacity, 3), dtype=np.int64),
        (_slots(capacity), _slots(MAX_WORDS), _slots(capacity)),
        np.empty((7, capacity), dtype=np.int64),
        np.empty((MAX_ODD, 4), dtype=np.int64),
        np.zeros(_REPORT_SIZE, dtype=np.int64),
    )


def scan_stretch(text: UInt8Array, begin: int, stop: int, rows: RowBuffers) -> RowBuffers:
    """Scans the objects that begin in ``text[begin:stop]`` into ``rows``; objects may end behind ``stop``.

    The report's REASON says why it ended at POSITION: REACHED_STOP, ARRAY_END (at ``]``), TEXT_END (no ``]``), CUT
    (inside an object that the file does not finish) or FULL (go on from there).
    """
    for slots in rows.slots:
        slots.fill(-1)
    rows.report.fill(0)
    _scan(
        text,
        begin,
        stop,
        (rows.phases, rows.marks, rows.wide, rows.narrow, rows.memory),
        (rows.names, rows.words, rows.flows),
        rows.slots,
        rows.odd,
        rows.report,
    )
    return rows


def _slots(entries: int) -> Int32Array:
    return np.empty(1 << (2 * entries).bit_length(), dtype=np.int32)


@numba.njit(nogil=True, cache=True)
def _scan(
    text: UInt8Array,
    position: int,
    stop: int,
    columns: tuple[AnyArray, ...],
    entries: tuple[AnyArray, ...],
    slots: tuple[AnyArray, ...],
    odd: Int64Array,
    report: Int64Array,
) -> None:
    end = len(text)
    fields = np.empty(2 * FIELD_COUNT, dtype=np.int64)
    memo = np.full((4, _MEMO_SIZE, 3), -1, dtype=np.int64)
    capacity = len(columns[0])
    comma_last = False
    reason = REACHED_STOP
    while True:
        position = skip_blanks(text, position, end)
        while position < end and text[position] == _COMMA:
            comma_last = True
            position = skip_blanks(text, position + 1, end)
        if position >= end:
            reason = TEXT_END
            break
        if text[position] == _CLOSE_ARRAY:
            reason = ARRAY_END
            break
        if position >= stop:
            break
        if report[ROWS] >= capacity or report[ODD] + 2 > MAX_ODD or report[WORDS] + 4 > MAX_WORDS:
            reason = FULL
            break
        comma_last = False
        after = _one(text, position, end, fields, memo, columns, entries, slots, odd, report)
        if after < 0:
            reason = _resume(text, position, end, after, report)
            position = report[POSITION]
            if reason == CUT:
                break
            continue
        position = after
    report[POSITION] = position
    report[REASON] = reason
    report[COMMA_LAST] = comma_last


@numba.njit(nogil=True, cache=True)
def _one(
    text: UInt8Array,
    position: int,
    end: int,
    fields: Int64Array,
    memo: Int64Array,
    columns: tuple[AnyArray, ...],
    entries: tuple[AnyArray, ...],
    slots: tuple[AnyArray, ...],
    odd: Int64Array,
    report: Int64Array,
) -> int:
    """Passes one element of the array and stores it if it is an object; returns the position after it."""
    if text[position] != _OPEN_OBJECT:
        after = skip_value(text, position, end)
        if after >= 0:
            report[FOREIGN] += 1
        return after
    after = parse_event(text, position, end, fields)
    if after >= 0:
        row = report[ROWS]
        wide = columns[2]
        wide[OFFSET, row] = position
        wide[LENGTH, row] = after - position
        _store(text, row, fields, columns, odd, report)
        _number(text, row, fields, memo, columns[3], entries, slots, report)
        if fields[2 * ADDRESS] >= 0 or fields[2 * BYTES] >= 0:
            _store_memory(text, row, fields, columns[0], columns[4], report)
        report[ROWS] = row + 1
    return after


@numba.njit(nogil=True, cache=True)
def _resume(text: UInt8Array, position: int, end: int, failure: int, report: Int64Array) -> int:
    """Finds where reading goes on after a broken object, counting it; CUT where the file simply ends inside it."""
    following = find_event(text, position + 1, end)
    if following == end and failure != TRUNCATED:
        following = find_array_end(text, position, end)
    if following == end and failure == TRUNCATED:
        report[POSITION] = position
        return CUT
    if report[BROKEN] == 0:
        report[FIRST_BROKEN] = position
    report[BROKEN] += 1
    report[POSITION] = following
    return REACHED_STOP


@numba.njit(nogil=True, cache=True)
def _store(
    text: UInt8Array,
    row: int,
    fields: Int64Array,
    columns: tuple[AnyArray, ...],
    odd: Int64Array,
    report: Int64Array,
) -> None:
    phases, marks, wide = columns[0], columns[1], columns[2]
    start = fields[2 * PHASE]
    phases[row] = text[start] if start >= 0 and fields[2 * PHASE + 1] == start + 1 else 0
    start = fields[2 * BIND]
    mark = ENCLOSES if start >= 0 and text[start] == _LETTER_E else 0
    start = fields[2 * FINISHED]
    if start >= 0 and text[start] == _LETTER_F:
        mark |= NOT_FINISHED
    marks[row] = mark
    wide[START_NS, row] = _time(text, fields, TS, row, odd, report)
    duration_ns = _time(text, fields, DUR, row, odd, report)
    if duration_ns == ABSENT_TIME_NS:
        duration_ns = -1
    elif duration_ns < 0:
        if report[NEGATIVE] == 0:
            report[FIRST_NEGATIVE] = wide[OFFSET, row]
        report[NEGATIVE] += 1
        duration_ns = 0
    wide[DURATION_NS, row] = duration_ns
    wide[CORRELATION_ID, row] = correlation_of(text, fields)
    wide[STREAM_NUMBER, row] = stream_of(text, fields)


@numba.njit(nogil=True, cache=True)
def _number(
    text: UInt8Array,
    row: int,
    fields: Int64Array,
    memo: Int64Array,
    narrow: Int32Array,
    entries: tuple[AnyArray, ...],
    slots: tuple[AnyArray, ...],
    report: Int64Array,
) -> None:
    narrow[NAME_ID, row] = _numbered(text, fields, NAME, slots[0], entries[0], report, NAMES)
    narrow[CATEGORY_ID, row] = _word(text, fields, CATEGORY, memo[0], slots[1], entries[1], report)
    narrow[PROCESS_ID, row] = _word(text, fields, PROCESS, memo[1], slots[1], entries[1], report)
    narrow[THREAD_ID, row] = _word(text, fields, THREAD, memo[2], slots[1], entries[1], report)
    narrow[TASK_ID, row] = _word(text, fields, TASK, memo[3], slots[1], entries[1], report)
    narrow[FLOW_ID, row] = _numbered(text, fields, ID, slots[2], entries[2], report, FLOWS)


@numba.njit(nogil=True, cache=True)
def _numbered(
    text: UInt8Array,
    fields: Int64Array,
    field: int,
    slots: Int32Array,
    entries: Int64Array,
    report: Int64Array,
    counter: int,
) -> int:
    start = fields[2 * field]
    if start < 0:
        return -1
    number = intern_span(text, start, fields[2 * field + 1], slots, entries, report[counter])
    if number == report[counter]:
        report[counter] = number + 1
    return number


@numba.njit(nogil=True, cache=True)
def _word(
    text: UInt8Array,
    fields: Int64Array,
    field: int,
    memo: Int64Array,
    slots: Int32Array,
    entries: Int64Array,
    report: Int64Array,
) -> int:
    """Numbers a value that nearly always repeats one of the last few: compared with them before it is hashed."""
    start = fields[2 * field]
    length = fields[2 * field + 1] - start
    if start < 0:
        return -1
    place = (np.int64(text[start + length - 1]) + length if length > 0 else 0) & (_MEMO_SIZE - 1)
    known = memo[place, 0]
    if known >= 0 and memo[place, 1] == length and same_bytes(text, start, text, known, length):
        return int(memo[place, 2])
    number = _numbered(text, fields, field, slots, entries, report, WORDS)
    memo[place, 0], memo[place, 1], memo[place, 2] = start, length, number
    return number


@numba.njit(nogil=True, cache=True)
def _store_memory(
    text: UInt8Array, row: int, fields: Int64Array, phases: UInt8Array, memory: Int64Array, report: Int64Array
) -> None:
    """Keeps the numbers of an instant named ``[memory]``; absent ones are −1, absent bytes 0."""
    start = fields[2 * NAME]
    length = fields[2 * NAME + 1] - start
    if phases[row] not in (_SMALL_I, _CAPITAL_I) or length != 8 or not same_bytes(text, start, _MEMORY, 0, 8):
        return
    index = report[MEMORY]
    memory[0, index] = row
    for field in range(ADDRESS, DEVICE + 1):
        value = 0 if field == BYTES else -1
        if fields[2 * field] >= 0:
            value = parse_integer(text, fields[2 * field], fields[2 * field + 1])
        memory[field - ADDRESS + 1, index] = value
    report[MEMORY] = index + 1


@numba.njit(nogil=True, cache=True)
def _time(text: UInt8Array, fields: Int64Array, field: int, row: int, odd: Int64Array, report: Int64Array) -> int:
    """Returns the ns of a ts or dur; one in an unusual form is listed in ``odd`` and absent for now."""
    start = fields[2 * field]
    if start < 0:
        return ABSENT_TIME_NS
    ns = parse_us(text, start, fields[2 * field + 1])
    if ns != ODD_NUMBER:
        return ns
    index = report[ODD]
    odd[index, 0], odd[index, 1] = row, field
    odd[index, 2], odd[index, 3] = start, fields[2 * field + 1]
    report[ODD] = index + 1
    return ABSENT_TIME_NS
