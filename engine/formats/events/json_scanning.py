"""Compiled steps through JSON text: blanks, strings, values and numbers, without building any object.

Positions are byte offsets into a uint8 array. A step returns the position after what it passed, or TRUNCATED where the
text ends inside it, or MALFORMED where it cannot be JSON. Nothing recurses, so depth costs nothing
(speedscope#386 died of an 11 MB file of very deep nesting).
"""

import numba
import numpy as np

from engine.core.arrays import UInt8Array
from engine.core.units import MAX_TIME_NS, NS_PER_US
from engine.formats.events.text_words import are_digits, digits_value, find_either, word_at

TRUNCATED = -1
MALFORMED = -2
ABSENT_TIME_NS = np.iinfo(np.int64).min
ODD_NUMBER = np.iinfo(np.int64).min + 1
"""A number in a form the fast path leaves to Decimal: exponents, ``NaN``, more digits than int64 ns hold."""

_QUOTE = ord('"')
_BACKSLASH = ord("\\")
_QUOTES, _BACKSLASHES = np.uint64(0x2222222222222222), np.uint64(0x5C5C5C5C5C5C5C5C)
_COMMA = ord(",")
_COLON = ord(":")
_OPEN_OBJECT, _CLOSE_OBJECT = ord("{"), ord("}")
_OPEN_ARRAY, _CLOSE_ARRAY = ord("["), ord("]")
_ZERO, _NINE, _POINT, _PLUS, _MINUS = ord("0"), ord("9"), ord("."), ord("+"), ord("-")
_MAX_WHOLE_US = MAX_TIME_NS // NS_PER_US


def _classes() -> UInt8Array:
    """Returns the class of every byte: 1 blank, 2 part of a bare scalar, 0 anything else."""
    table = np.zeros(256, dtype=np.uint8)
    table[np.frombuffer(b" \t\r\n", dtype=np.uint8)] = 1
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-."
    table[np.frombuffer(letters, dtype=np.uint8)] = 2
    return table


_CLASS = _classes()


@numba.njit(nogil=True, cache=True, forceinline=True)
def skip_blanks(text: UInt8Array, position: int, end: int) -> int:
    """Returns the first position that is not a blank, at most ``end``."""
    while position < end and _CLASS[text[position]] == 1:
        position += 1
    return position


@numba.njit(nogil=True, cache=True, forceinline=True)
def string_end(text: UInt8Array, position: int, end: int) -> int:
    """Returns the position of the closing quote of a string whose content begins at ``position``, or TRUNCATED."""
    while position < end:
        position = find_either(text, position, end, _QUOTES, _BACKSLASHES)
        if position < end and text[position] == _QUOTE:
            return position
        position += 2
    return TRUNCATED


@numba.njit(nogil=True, cache=True)
def skip_value(text: UInt8Array, position: int, end: int) -> int:
    """Returns the position after the value that begins at ``position``.

    Only brackets are counted, but what follows a string is checked: one unescaped quote inside a name must be noticed
    where it stands, not swallow the rest of the file.
    """
    depth = 0
    while position < end:
        byte = text[position]
        if byte == _QUOTE:
            position = string_end(text, position + 1, end)
            if position < 0:
                return TRUNCATED
            position += 1
            after = skip_blanks(text, position, end)
            if after < end:
                follower = text[after]
                if follower not in (_COMMA, _COLON, _CLOSE_OBJECT, _CLOSE_ARRAY):
                    return MALFORMED
            if depth == 0:
                return position
            position = after
        elif byte in (_OPEN_OBJECT, _OPEN_ARRAY):
            depth += 1
            position += 1
        elif byte in (_CLOSE_OBJECT, _CLOSE_ARRAY):
            depth -= 1
            position += 1
            if depth <= 0:
                return position if depth == 0 else MALFORMED
        elif _CLASS[byte] == 2:
            while position < end and _CLASS[text[position]] == 2:
                position += 1
            if depth == 0:
                return position
        elif depth > 0 and (byte in (_COMMA, _COLON) or _CLASS[byte] == 1):
            position += 1
        else:
            return MALFORMED
    return TRUNCATED


@numba.njit(nogil=True, cache=True)
def parse_us(text: UInt8Array, start: int, end: int) -> int:
    """Returns the exact int64 ns of the decimal µs in ``text[start:end]``, half rounded to even, or ODD_NUMBER."""
    position = skip_blanks(text, start, end)
    while end > position and _CLASS[text[end - 1]] == 1:
        end -= 1
    negative = position < end and text[position] == _MINUS
    if negative:
        position += 1
    whole_us = np.int64(0)
    digits = 0
    while end - position >= 8 and digits < 16 and are_digits(word_at(text, position)):
        whole_us = whole_us * 100_000_000 + np.int64(digits_value(word_at(text, position)))
        position += 8
        digits += 8
    while position < end and _ZERO <= text[position] <= _NINE:
        whole_us = whole_us * 10 + np.int64(text[position] - _ZERO)
        position += 1
        digits += 1
        if digits > 16:
            return ODD_NUMBER
    if digits == 0 or whole_us > _MAX_WHOLE_US:
        return ODD_NUMBER
    ns = whole_us * 1000
    if position < end and text[position] == _POINT:
        fraction_ns = _fraction(text, position + 1, end)
        if fraction_ns < 0:
            return ODD_NUMBER
        ns += fraction_ns
    elif position < end:
        return ODD_NUMBER
    return int(-ns) if negative else int(ns)


@numba.njit(nogil=True, cache=True)
def _fraction(text: UInt8Array, position: int, end: int) -> int:
    """Returns the ns of a decimal fraction of a µs (0 … 1000), half rounded to even; −1 where it holds no digits."""
    value_ns = np.int64(0)
    scale = np.int64(100)
    first_dropped = np.int64(0)
    rest = False
    index = 0
    while position < end:
        byte = text[position]
        if byte < _ZERO or byte > _NINE:
            return -1
        digit = np.int64(byte - _ZERO)
        if index < 3:
            value_ns += digit * scale
            scale //= 10
        elif index == 3:
            first_dropped = digit
        elif digit != 0:
            rest = True
        index += 1
        position += 1
    odd = value_ns & 1 == 1  # the whole part is an even number of ns
    if first_dropped > 5 or (first_dropped == 5 and (rest or odd)):
        value_ns += 1
    return int(value_ns)


@numba.njit(nogil=True, cache=True)
def parse_integer(text: UInt8Array, start: int, end: int) -> int:
    """Returns the integer in ``text[start:end]``, or −1 where there is none that fits int64."""
    position = start
    negative = position < end and text[position] == _MINUS
    if negative:
        position += 1
    if position >= end or end - position > 18:
        return -1
    value = np.int64(0)
    while position < end:
        byte = text[position]
        if byte < _ZERO or byte > _NINE:
            return -1
        value = value * 10 + np.int64(byte - _ZERO)
        position += 1
    return int(-value) if negative else int(value)


def span_text(text: UInt8Array, start: int, end: int) -> bytes:
    """Returns the bytes of ``text[start:end]``."""
    return text[start:end].tobytes()
