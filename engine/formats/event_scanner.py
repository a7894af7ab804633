"""The compiled scanner of Chrome trace events: one pass over the bytes fills columns, arguments stay undecoded."""

import numba
import numpy as np

from engine.core.arrays import Int64Array, UInt8Array
from engine.formats.json_scanning import (
    MALFORMED,
    TRUNCATED,
    parse_integer,
    same_bytes,
    skip_blanks,
    skip_value,
    string_end,
)

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


def _key(text: str) -> UInt8Array:
    return np.frombuffer(text.encode(), dtype=np.uint8).copy()


_PH, _TS, _ID, _BP = _key("ph"), _key("ts"), _key("id"), _key("bp")
_CAT, _PID, _TID, _DUR, _ID2 = _key("cat"), _key("pid"), _key("tid"), _key("dur"), _key("id2")
_NAME, _ARGS_KEY = _key("name"), _key("args")
_CORRELATION, _CONNECTION = _key("correlation"), _key("connection_id")
_TASK, _STREAM, _STREAM_ID, _PHYSICAL = _key("Task Type"), _key("stream"), _key("Stream Id"), _key("Physic Stream Id")
_FINISHED = _key("finished")
_ADDRESS, _BYTES, _DEVICE_TYPE, _DEVICE = _key("Addr"), _key("Bytes"), _key("Device Type"), _key("Device Id")
_ALLOCATED, _RESERVED = _key("Total Allocated"), _key("Total Reserved")


@numba.njit(nogil=True, cache=True)
def _event_key(text: UInt8Array, start: int, length: int) -> int:
    if length == 2:
        if same_bytes(text, start, _PH, 0, 2):
            return PHASE
        if same_bytes(text, start, _TS, 0, 2):
            return TS
        if same_bytes(text, start, _ID, 0, 2):
            return ID
        return BIND if same_bytes(text, start, _BP, 0, 2) else _UNKNOWN
    if length == 3:
        if same_bytes(text, start, _PID, 0, 3):
            return PROCESS
        if same_bytes(text, start, _TID, 0, 3):
            return THREAD
        if same_bytes(text, start, _DUR, 0, 3):
            return DUR
        if same_bytes(text, start, _CAT, 0, 3):
            return CATEGORY
        return ID if same_bytes(text, start, _ID2, 0, 3) else _UNKNOWN
    if length == 4:
        if same_bytes(text, start, _NAME, 0, 4):
            return NAME
        return _ARGS if same_bytes(text, start, _ARGS_KEY, 0, 4) else _UNKNOWN
    return _UNKNOWN


@numba.njit(nogil=True, cache=True)
def _argument_key(text: UInt8Array, start: int, length: int) -> int:
    if length == 11:
        if same_bytes(text, start, _CORRELATION, 0, 11):
            return CORRELATION
        return DEVICE_TYPE if same_bytes(text, start, _DEVICE_TYPE, 0, 11) else _UNKNOWN
    if length == 9:
        if same_bytes(text, start, _TASK, 0, 9):
            return TASK
        if same_bytes(text, start, _DEVICE, 0, 9):
            return DEVICE
        return STREAM_ID if same_bytes(text, start, _STREAM_ID, 0, 9) else _UNKNOWN
    if length == 13:
        return CONNECTION if same_bytes(text, start, _CONNECTION, 0, 13) else _UNKNOWN
    if length == 6:
        return STREAM if same_bytes(text, start, _STREAM, 0, 6) else _UNKNOWN
    if length == 16:
        return PHYSICAL_STREAM if same_bytes(text, start, _PHYSICAL, 0, 16) else _UNKNOWN
    if length == 8:
        return FINISHED if same_bytes(text, start, _FINISHED, 0, 8) else _UNKNOWN
    return _memory_key(text, start, length)


@numba.njit(nogil=True, cache=True)
def _memory_key(text: UInt8Array, start: int, length: int) -> int:
    if length == 4 and same_bytes(text, start, _ADDRESS, 0, 4):
        return ADDRESS
    if length == 5 and same_bytes(text, start, _BYTES, 0, 5):
        return BYTES
    if length == 15 and same_bytes(text, start, _ALLOCATED, 0, 15):
        return ALLOCATED
    if length == 14 and same_bytes(text, start, _RESERVED, 0, 14):
        return RESERVED
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
