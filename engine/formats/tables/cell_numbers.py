"""Compiled byte loops that convert the cells of a csv table to numbers, exactly."""

import numba
import numpy as np

from engine.core.units import MAX_TIME_NS

MISSING = np.iinfo(np.int64).min
"""What an integer column holds where the cell is empty or says "none"."""
NUMBER = 0
NO_VALUE = 1
HARD = 2
"""Cell status of ``parse_floats``: no number, or one with more digits than the fast way rounds correctly."""

_RETURN, _SPACE, _TAB = 13, 32, 9
_MAX_FRACTION_DIGITS = 12
_ROOM_FOR_A_DIGIT = np.iinfo(np.int64).max // 10
_MAX_TAIL_DIGITS = 9
_WORDS = tuple(int.from_bytes(word, "big") for word in (b"n/a", b"na", b"nan", b"none", b"null", b"-", b"--"))


@numba.njit(cache=True)
def strip_cell(data, start, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Returns the span without blanks, tabs and carriage returns at both ends."""
    while start < end and (data[start] == _SPACE or data[start] == _TAB or data[start] == _RETURN):
        start += 1
    while end > start and (data[end - 1] == _SPACE or data[end - 1] == _TAB or data[end - 1] == _RETURN):
        end -= 1
    return start, end


@numba.njit(cache=True)
def says_none(data, start, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Returns whether a stripped cell is empty or one of the words for "no value" (N/A, NA, NaN, None, null, -)."""
    if end - start > 4:
        return False
    code = np.int64(0)
    for position in range(start, end):
        letter = np.int64(data[position])
        if 65 <= letter <= 90:
            letter += 32
        code = code * 256 + letter
    if code == 0:
        return True
    for word in _WORDS:  # noqa: SIM110 - compiled code has no any()
        if code == word:
            return True
    return False


@numba.njit(cache=True)
def _decimal(data, start, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Returns ``(valid, negative, mantissa, tail, tail digits, power of ten, digits, inexact)`` of decimal text.

    The number is ``(mantissa + tail / 10^tail digits) · 10^power``; ``inexact`` says that it is a little more.
    """
    negative = start < end and data[start] == 45
    if start < end and (data[start] == 45 or data[start] == 43):
        start += 1
    mantissa = np.int64(0)
    tail = tail_digits = np.int64(0)
    power = digits = seen = np.int64(0)
    point = inexact = full = False
    while start < end:
        byte = np.int64(data[start])
        if byte == 46 and not point:
            point = True
        elif 48 <= byte <= 57:
            seen += 1
            digits += mantissa > 0 or byte != 48
            if mantissa < _ROOM_FOR_A_DIGIT and not full:
                mantissa = mantissa * 10 + (byte - 48)
                power -= point
            else:
                full = True
                if tail_digits < _MAX_TAIL_DIGITS:
                    tail = tail * 10 + (byte - 48)
                    tail_digits += 1
                else:
                    inexact = inexact or byte != 48
                power += not point
        else:
            break
        start += 1
    valid = seen > 0
    if start < end and valid and (data[start] == 69 or data[start] == 101):
        start += 1
        sign = 1
        if start < end and (data[start] == 45 or data[start] == 43):
            sign = -1 if data[start] == 45 else 1
            start += 1
        exponent = np.int64(0)
        valid = start < end
        while start < end and 48 <= data[start] <= 57 and exponent < 1000:
            exponent = exponent * 10 + (np.int64(data[start]) - 48)
            start += 1
        power += sign * exponent
    return valid and start == end, negative, mantissa, tail, tail_digits, power, digits, inexact


@numba.njit(cache=True)
def _scaled(mantissa, tail, tail_digits, power, scale, inexact):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Returns what ``_decimal`` read times ``scale``, rounded half to even, or MISSING where it exceeds MAX_TIME_NS."""
    if mantissa == 0:
        return np.int64(0)
    while power > 0 and mantissa < _ROOM_FOR_A_DIGIT:
        mantissa *= 10
        power -= 1
    while power < -_MAX_FRACTION_DIGITS:
        if tail_digits == _MAX_TAIL_DIGITS:
            inexact = inexact or tail % 10 != 0
            tail //= 10
            tail_digits -= 1
        tail += (mantissa % 10) * 10**tail_digits
        tail_digits += 1
        mantissa //= 10
        power += 1
    unit = np.int64(1)
    for _ in range(-power):
        unit *= 10
    whole = mantissa // unit
    if power > 0 or whole > MAX_TIME_NS // scale:
        return np.int64(MISSING)
    # In halves, so that the tail decides every comparison with one half.
    tail_unit = 10**tail_digits
    inexact = inexact or (2 * tail * scale) % tail_unit != 0
    halves = 2 * (mantissa % unit) * scale + (2 * tail * scale) // tail_unit
    value = whole * scale + halves // (2 * unit)
    twice = halves % (2 * unit)
    if twice > unit or (twice == unit and (inexact or value % 2 == 1)):
        value += 1
    return value


@numba.njit(cache=True)
def parse_scaled(data, starts, ends, scale, values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Fills ``values`` (int64) with each cell's decimal text times ``scale``, exactly, rounded half to even.

    Cells without a value give MISSING. Returns ``(cells that are no number, first such row or −1)``.
    """
    invalid = 0
    first = -1
    for row in range(len(starts)):
        start, end = strip_cell(data, starts[row], ends[row])
        values[row] = MISSING
        if says_none(data, start, end):
            continue
        valid, negative, mantissa, tail, tail_digits, power, _, inexact = _decimal(data, start, end)
        value = _scaled(mantissa, tail, tail_digits, power, scale, inexact) if valid else np.int64(MISSING)
        if value == MISSING:
            invalid += 1
            if first < 0:
                first = row
        else:
            values[row] = -value if negative else value
    return invalid, first


@numba.njit(cache=True)
def parse_floats(data, starts, ends, values, status):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Fills ``values`` (float64, NaN without a value) and ``status``; returns the most digits of any cell.

    A mantissa below 2^53 divided or multiplied by a power of ten up to 10^22 is rounded once and therefore right;
    every other cell is left to the caller as HARD.
    """
    most_digits = 0
    for row in range(len(starts)):
        start, end = strip_cell(data, starts[row], ends[row])
        values[row] = np.nan
        status[row] = NO_VALUE
        if says_none(data, start, end):
            continue
        valid, negative, mantissa, _, _, power, digits, _ = _decimal(data, start, end)
        status[row] = HARD
        if valid:
            most_digits = max(most_digits, digits)
            if digits <= 18 and mantissa < 9_007_199_254_740_992 and -22 <= power <= 22:
                number = mantissa * 10.0**power if power >= 0 else mantissa / 10.0 ** (-power)
                values[row] = -number if negative else number
                status[row] = NUMBER
    return most_digits
