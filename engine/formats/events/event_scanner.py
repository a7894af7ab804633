"""The compiled scanner of Chrome trace events: one pass over the bytes fills columns, arguments stay undecoded."""

import numba
import numpy as np

from engine.core.arrays import Int64Array, UInt8Array
from engine.formats.events.json_scanning import (
    MALFORMED,
    TRUNCATED,
    parse_integer,
    skip_blanks,
    skip_value,
    string_end,
)
from engine.formats.events.text_words import MASKS, packed, word_at

# Where each interesting value of an event stands, as pairs (start, end) in a scratch array; −1 where absent.
PHASE, TS, DUR, BIND, NAME, CATEGORY, PROCESS, THREAD, ID = range(9)
CORRELATION, CONNECTION, TASK, STREAM, PHYSICAL_STREAM, STREAM_ID, FINISHED = range(9, 16)
ADDRESS, BYTES, ALLOCATED, RESERVED, DEVICE_TYPE, DEVICE = range(16, 22)
_ARGS = 22
_UNKNOWN = 23
FIELD_COUNT = 22

_QUOTE, _COMMA, _COLON = ord('"'), ord(","), ord(":")
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = ord("{"), ord("}"), ord("["), ord("]")
_LOWER_N = ord("n")


_PH, _TS, _ID, _BP = packed(b"ph"), packed(b"ts"), packed(b"id"), packed(b"bp")
_CAT, _PID, _TID, _DUR, _ID2 = packed(b"cat"), packed(b"pid"), packed(b"tid"), packed(b"dur"), packed(b"id2")
_NAME, _ARGS_KEY = packed(b"name"), packed(b"args")
# Of keys longer than eight bytes, the first and the last eight.
_CORRELATION = (packed(b"correlat"), packed(b"relation"))
_CONNECTION = (packed(b"connecti"), packed(b"ction_id"))
_TASK, _STREAM_ID = (packed(b"Task Typ"), packed(b"ask Type")), (packed(b"Stream I"), packed(b"tream Id"))
_PHYSICAL = (packed(b"Physic S"), packed(b"tream Id"))
_DEVICE_TYPE, _DEVICE = (packed(b"Device T"), packed(b"ice Type")), (packed(b"Device I"), packed(b"evice Id"))
_ALLOCATED, _RESERVED = (packed(b"Total Al"), packed(b"llocated")), (packed(b"Total Re"), packed(b"Reserved"))
_STREAM, _FINISHED, _ADDRESS, _BYTES = packed(b"stream"), packed(b"finished"), packed(b"Addr"), packed(b"Bytes")


@numba.njit(nogil=True, cache=True)
def _event_key(text: UInt8Array, start: int, length: int) -> int:
    if length > 4 or length < 2:
        return _UNKNOWN
    word = word_at(text, start) & MASKS[length]
    for known, field in (
        (_TS, TS),
        (_PH, PHASE),
        (_PID, PROCESS),
        (_TID, THREAD),
        (_NAME, NAME),
        (_CAT, CATEGORY),
        (_DUR, DUR),
        (_ARGS_KEY, _ARGS),
        (_ID, ID),
        (_BP, BIND),
        (_ID2, ID),
    ):
        if word == known:
            return field
    return _UNKNOWN


@numba.njit(nogil=True, cache=True)
def _argument_key(text: UInt8Array, start: int, length: int) -> int:
    if length <= 8:
        word = word_at(text, start) & MASKS[length]
        if word == _STREAM:
            return STREAM
        if word == _FINISHED:
            return FINISHED
        if word == _BYTES:
            return BYTES
        return ADDRESS if word == _ADDRESS else _UNKNOWN
    if length > 16:
        return _UNKNOWN
    first, last = word_at(text, start), word_at(text, start + length - 8)
    for known, known_length, field in (
        (_CORRELATION, 11, CORRELATION),
        (_CONNECTION, 13, CONNECTION),
        (_TASK, 9, TASK),
        (_PHYSICAL, 16, PHYSICAL_STREAM),
        (_STREAM_ID, 9, STREAM_ID),
        (_DEVICE_TYPE, 11, DEVICE_TYPE),
        (_DEVICE, 9, DEVICE),
        (_ALLOCATED, 15, ALLOCATED),
        (_RESERVED, 14, RESERVED),
    ):
        if length == known_length and first == known[0] and last == known[1]:
            return field
    return _UNKNOWN


@numba.njit(nogil=True, cache=True)
def _members(text: UInt8Array, position: int, end: int, fields: Int64Array, inside_args: bool) -> int:
    """Passes the members of an object up to its ``args`` member or its end, noting the interesting values.

    Returns:
        The position after the object's closing bracket; or, shifted below MALFORMED by ``−10 − position``, the
        position of the value of ``args``.
    """
    while True:
        position = skip_blanks(text, position, end)
        if position < end and text[position] == _COMMA:
            position = skip_blanks(text, position + 1, end)
        if position >= end:
            return TRUNCATED
        if text[position] == _CLOSE_OBJECT:
            return position + 1
        if text[position] != _QUOTE:
            return MALFORMED
        key_start = position + 1
        key_end = string_end(text, key_start, end)
        if key_end < 0:
            return TRUNCATED
        position = skip_blanks(text, key_end + 1, end)
        if position >= end:
            return TRUNCATED
        if text[position] != _COLON:
            return MALFORMED
        position = skip_blanks(text, position + 1, end)
        if position >= end:
            return TRUNCATED
        length = key_end - key_start
        key = _argument_key(text, key_start, length) if inside_args else _event_key(text, key_start, length)
        if key == _ARGS and text[position] == _OPEN_OBJECT:
            return -10 - position
        start = position
        position = skip_value(text, position, end)
        if position < 0:
            return position
        if key < FIELD_COUNT and text[start] != _LOWER_N:
            quoted = text[start] == _QUOTE
            fields[2 * key] = start + 1 if quoted else start
            fields[2 * key + 1] = position - 1 if quoted else position


@numba.njit(nogil=True, cache=True)
def parse_event(text: UInt8Array, position: int, end: int, fields: Int64Array) -> int:
    """Notes where the interesting values of the object at ``position`` stand; returns the position after it.

    The last of duplicate keys wins, as in every JSON reader.
    """
    fields[:] = -1
    position = _members(text, position + 1, end, fields, False)
    while position <= -10:
        position = _members(text, -10 - position + 1, end, fields, True)
        if position < 0:
            return position
        position = _members(text, position, end, fields, False)
    if position < 0:
        return position
    after = skip_blanks(text, position, end)
    if after < end:
        byte = text[after]
        if byte not in (_COMMA, _CLOSE_ARRAY, _OPEN_OBJECT):
            return MALFORMED
    return position


@numba.njit(nogil=True, cache=True)
def find_event(text: UInt8Array, position: int, end: int) -> int:
    """Returns where the next event object after ``position`` seems to begin, or ``end``.

    Looks for ``}``, ``,``, ``{``, ``"`` with blanks between, and for a ``ph`` in the object that follows. A guess that
    stands inside an argument or a string is possible; callers that cut a file verify it.
    """
    fields = np.empty(2 * FIELD_COUNT, dtype=np.int64)
    while position < end:
        while position < end and text[position] != _CLOSE_OBJECT:
            position += 1
        position += 1
        comma = skip_blanks(text, position, end)
        if comma >= end or text[comma] != _COMMA:
            continue
        start = skip_blanks(text, comma + 1, end)
        if start >= end or text[start] != _OPEN_OBJECT:
            continue
        quote = skip_blanks(text, start + 1, end)
        if quote >= end or text[quote] != _QUOTE:
            continue
        after = parse_event(text, start, end, fields)
        if after >= 0 and fields[2 * PHASE] >= 0:
            return start
        position = max(start, after - 1)
    return end


@numba.njit(nogil=True, cache=True)
def find_array_end(text: UInt8Array, position: int, end: int) -> int:
    """Returns the last ``]`` after ``position`` that follows a ``}``, or ``end``: where broken events end."""
    index = end - 1
    while index > position:
        if text[index] == _CLOSE_ARRAY:
            before = index - 1
            while before > position and text[before] in (32, 9, 10, 13):
                before -= 1
            if text[before] == _CLOSE_OBJECT:
                return index
        index -= 1
    return end


@numba.njit(nogil=True, cache=True)
def stream_of(text: UInt8Array, fields: Int64Array) -> int:
    """Returns the stream number an event's arguments name, or −1."""
    for field in (PHYSICAL_STREAM, STREAM, STREAM_ID):
        if fields[2 * field] >= 0:
            return parse_integer(text, fields[2 * field], fields[2 * field + 1])
    return -1


@numba.njit(nogil=True, cache=True)
def correlation_of(text: UInt8Array, fields: Int64Array) -> int:
    """Returns the number that is equal on a launch and on what it launched, or −1."""
    for field in (CORRELATION, CONNECTION):
        if fields[2 * field] >= 0:
            return parse_integer(text, fields[2 * field], fields[2 * field + 1])
    return -1
