"""Event rows of one stretch of a ``traceEvents`` array, filled by a compiled loop that holds no lock."""

from dataclasses import dataclass

import numba
import numpy as np

from engine.core.arrays import Int32Array, Int64Array, UInt8Array
from engine.formats.events.byte_table import intern_span
from engine.formats.events.event_scanner import (
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
from engine.formats.events.json_scanning import (
    ABSENT_TIME_NS,
    ODD_NUMBER,
    TRUNCATED,
    parse_integer,
    parse_us,
    skip_blanks,
    skip_value,
)
from engine.formats.events.text_words import borrowed, same_bytes

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
# Tables: 0 names, 1 words (which have four fields), 2 ids.
_SPAN_TABLES = np.arange(3)
_SPAN_FIELDS = np.array([NAME, -1, ID])
_SPAN_ROWS = np.array([NAME_ID, -1, FLOW_ID])
_TIME_FIELDS = np.array([TS, DUR])
_WORD_FIELDS = np.array([CATEGORY, PROCESS, THREAD, TASK])
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
        bytes: uint8, shape (2, capacity): the letter of ``ph``, 0 where absent; ENCLOSES | NOT_FINISHED.
        wide: int64, shape (6, capacity).
        narrow: int32, shape (6, capacity), numbers into the three span tables.
        memory: int64, shape (7, capacity): row and the numbers of ``[memory]`` instants.
        entries: int64, shape (3, capacity, 3): spans and hashes of distinct names; of distinct categories, pids,
            tids and task types; of distinct ids.
        slots: int32, shape (3, slots), the hash tables over them.
        fields: int64, shape (2 FIELD_COUNT,): where the values of the event in hand stand.
        memo: int64, shape (4, 16, 3): the last few categories, pids, tids and task types.
        odd: int64, shape (MAX_ODD, 4): row, field, start, end of numbers in an unusual form.
        report: int64, shape (14,).
    """

    bytes: UInt8Array
    wide: Int64Array
    narrow: Int32Array
    memory: Int64Array
    entries: Int64Array
    slots: Int32Array
    fields: Int64Array
    memo: Int64Array
    odd: Int64Array
    report: Int64Array


def row_buffers(capacity: int) -> RowBuffers:
    """Returns buffers for ``capacity`` events; filling them again is much cheaper than asking for new memory."""
    return RowBuffers(
        np.zeros((2, capacity), dtype=np.uint8),
        np.empty((6, capacity), dtype=np.int64),
        np.empty((6, capacity), dtype=np.int32),
        np.empty((7, capacity), dtype=np.int64),
        np.empty((3, capacity, 3), dtype=np.int64),
        np.empty((3, 1 << (2 * capacity).bit_length()), dtype=np.int32),
        np.empty(2 * FIELD_COUNT, dtype=np.int64),
        np.empty((4, _MEMO_SIZE, 3), dtype=np.int64),
        np.empty((MAX_ODD, 4), dtype=np.int64),
        np.zeros(_REPORT_SIZE, dtype=np.int64),
    )


def scan_stretch(text: UInt8Array, begin: int, stop: int, rows: RowBuffers) -> RowBuffers:
    """Scans the objects that begin in ``text[begin:stop]`` into ``rows``; objects may end behind ``stop``.

    The report's REASON says why it ended at POSITION: REACHED_STOP, ARRAY_END (at ``]``), TEXT_END (no ``]``), CUT
    (inside an object that the file does not finish) or FULL (go on from there).
    """
    rows.slots.fill(-1)
    rows.memo.fill(-1)
    rows.report.fill(0)
    _scan(
        text,
        begin,
        stop,
        rows.bytes,
        rows.wide,
        rows.narrow,
        rows.memory,
        rows.entries,
        rows.slots,
        rows.fields,
        rows.memo,
        rows.odd,
        rows.report,
    )
    return rows


@numba.njit(nogil=True, cache=True)
def _scan(
    text: UInt8Array,
    position: int,
    stop: int,
    letters: UInt8Array,
    wide: Int64Array,
    narrow: Int32Array,
    memory: Int64Array,
    entries: Int64Array,
    slots: Int32Array,
    fields: Int64Array,
    memo: Int64Array,
    odd: Int64Array,
    report: Int64Array,
) -> None:
    # Without owners: the functions below are called once per value.
    text = borrowed(text)
    letters = borrowed(letters)
    wide = borrowed(wide)
    narrow = borrowed(narrow)
    memory = borrowed(memory)
    entries = borrowed(entries)
    slots = borrowed(slots)
    fields = borrowed(fields)
    memo = borrowed(memo)
    odd = borrowed(odd)
    report = borrowed(report)
    end = len(text)
    capacity = wide.shape[1]
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
        if report[ROWS] >= capacity or report[ODD] + 2 > MAX_ODD or report[WORDS] + 4 > capacity:
            reason = FULL
            break
        comma_last = False
        after = _pass_element(text, position, end, fields, report)
        if after < 0:
            reason = _resume(text, position, end, after, report)
            position = report[POSITION]
            if reason == CUT:
                break
            continue
        if text[position] == _OPEN_OBJECT:
            row = report[ROWS]
            wide[OFFSET, row] = position
            wide[LENGTH, row] = after - position
            _store(text, row, fields, letters, wide, odd, report)
            _number(text, row, fields, memo, narrow, entries, slots, report)
            if fields[2 * ADDRESS] >= 0 or fields[2 * BYTES] >= 0:
                _store_memory(text, row, fields, letters, memory, report)
            report[ROWS] = row + 1
        position = after
    report[POSITION] = position
    report[REASON] = reason
    report[COMMA_LAST] = comma_last


@numba.njit(nogil=True, cache=True)
def _pass_element(text: UInt8Array, position: int, end: int, fields: Int64Array, report: Int64Array) -> int:
    """Passes one element of the array, noting its fields if it is an object; returns the position after it."""
    if text[position] == _OPEN_OBJECT:
        return parse_event(text, position, end, fields)
    after = skip_value(text, position, end)
    if after >= 0:
        report[FOREIGN] += 1
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
    letters: UInt8Array,
    wide: Int64Array,
    odd: Int64Array,
    report: Int64Array,
) -> None:
    start = fields[2 * PHASE]
    letters[0, row] = text[start] if start >= 0 and fields[2 * PHASE + 1] == start + 1 else 0
    start = fields[2 * BIND]
    mark = ENCLOSES if start >= 0 and text[start] == _LETTER_E else 0
    start = fields[2 * FINISHED]
    if start >= 0 and text[start] == _LETTER_F:
        mark |= NOT_FINISHED
    letters[1, row] = mark
    wide[START_NS, row] = _time(text, fields, _TIME_FIELDS[0], row, odd, report)
    duration_ns = _time(text, fields, _TIME_FIELDS[1], row, odd, report)
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
    entries: Int64Array,
    slots: Int32Array,
    report: Int64Array,
) -> None:
    # Loops over constant arrays, not six calls: numba would compile one version per constant.
    for kind in range(4):
        narrow[CATEGORY_ID + kind, row] = _word(text, fields, _WORD_FIELDS[kind], kind, memo, slots, entries, report)
    for table in range(0, 3, 2):
        narrow[_SPAN_ROWS[table], row] = _numbered(text, fields, _SPAN_FIELDS[table], table, slots, entries, report)


@numba.njit(nogil=True, cache=True)
def _numbered(
    text: UInt8Array,
    fields: Int64Array,
    field: int,
    table: int,
    slots: Int32Array,
    entries: Int64Array,
    report: Int64Array,
) -> int:
    start = fields[2 * field]
    if start < 0:
        return -1
    count = report[NAMES + table]
    number = intern_span(text, start, fields[2 * field + 1], table, slots, entries, count)
    if number == count:
        report[NAMES + table] = count + 1
    return number


@numba.njit(nogil=True, cache=True, forceinline=True)
def _word(
    text: UInt8Array,
    fields: Int64Array,
    field: int,
    kind: int,
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
    known = memo[kind, place, 0]
    if known >= 0 and memo[kind, place, 1] == length and same_bytes(text, start, text, known, length):
        return int(memo[kind, place, 2])
    number = _numbered(text, fields, field, _SPAN_TABLES[1], slots, entries, report)
    memo[kind, place, 0], memo[kind, place, 1], memo[kind, place, 2] = start, length, number
    return number


@numba.njit(nogil=True, cache=True)
def _store_memory(
    text: UInt8Array, row: int, fields: Int64Array, letters: UInt8Array, memory: Int64Array, report: Int64Array
) -> None:
    """Keeps the numbers of an instant named ``[memory]``; absent ones are −1, absent bytes 0."""
    start = fields[2 * NAME]
    length = fields[2 * NAME + 1] - start
    if letters[0, row] not in (_SMALL_I, _CAPITAL_I) or length != 8 or not same_bytes(text, start, _MEMORY, 0, 8):
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
