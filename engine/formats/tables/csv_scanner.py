"""Compiled byte loops of the table reader: where the cells of a csv file are, and what they say.

A csv row cannot be found without following quotes from its start, so these loops cannot be vectorised.
Cells are spans of the file's bytes; nothing is copied until a text is really needed.
"""

import numba
import numpy as np

from engine.core.units import MAX_TIME_NS

MISSING = np.iinfo(np.int64).min
"""What an integer column holds where the cell is empty or says "none"."""
MAX_ROW_BYTES = 16 << 20
"""A quoted cell longer than this was never closed: the row is given up at its first line end."""
DOUBLED_QUOTES = 2
"""Cell flag: the text contains ``""`` for a quote."""
NUMBER = 0
NO_VALUE = 1
HARD = 2
"""Cell status of ``parse_floats``: no number, or one with more digits than the fast way rounds correctly."""

_COMMA, _NEWLINE, _QUOTE, _RETURN, _SPACE, _TAB = 44, 10, 34, 13, 32, 9
_MAX_FRACTION_DIGITS = 12
_ROOM_FOR_A_DIGIT = np.iinfo(np.int64).max // 10
_MAX_TAIL_DIGITS = 9
_WORDS = tuple(int.from_bytes(word, "big") for word in (b"n/a", b"na", b"nan", b"none", b"null", b"-", b"--"))


@numba.njit(cache=True)
def scan_rows(data, position, stop, column_count, slot, starts, ends, flags, row_starts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Finds the cells of the next rows.

    Args:
        data: uint8, the whole file.
        position: Where the first row starts.
        stop: No row is begun at or after this byte, so that a call ends soon in a file without rows too.
        column_count: Cells a row must have.
        slot: int64, shape (columns,): where the spans of a column go, −1 for columns nobody wants.
        starts: int64, shape (rows, slots), filled: first byte of each cell.
        ends: Same, first byte after it.
        flags: uint8, same shape, filled.
        row_starts: int64, shape (rows,), filled; its length limits how many rows one call reads.

    Returns:
        ``(rows, next position, broken rows, position of the first broken row or −1)``.
    """
    rows = broken = 0
    first_broken = -1
    while position < stop and rows < len(row_starts):
        row_start = position
        line_end = row_start
        while line_end < len(data) and data[line_end] != _NEWLINE:
            line_end += 1
        if _is_blank(data, row_start, line_end):
            position = line_end + 1
            continue
        columns, position = _scan_row(data, row_start, slot, starts[rows], ends[rows], flags[rows])
        if columns == column_count:
            row_starts[rows] = row_start
            rows += 1
        else:
            # A stray quote may have swallowed good rows: they are looked for from the next line on.
            position = line_end + 1
            broken += 1
            if first_broken < 0:
                first_broken = row_start
    return rows, position, broken, first_broken


@numba.njit(cache=True)
def _scan_row(data, position, slot, starts, ends, flags):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Returns ``(cells, position of the next row)``; −1 cells where a quote is never closed."""
    row_start = position
    column = 0
    while True:
        start, end, position, flag = next_cell(data, position, row_start)
        if flag < 0:
            return -1, position
        if column < len(slot) and slot[column] >= 0:
            starts[slot[column]] = start
            ends[slot[column]] = end
            flags[slot[column]] = flag
        column += 1
        if position >= len(data):
            return column, position
        position += 1
        if data[position - 1] == _NEWLINE:
            return column, position


@numba.njit(cache=True)
def _is_blank(data, start, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    start, end = _strip(data, start, end)
    return start == end


@numba.njit(cache=True)
def next_cell(data, position, row_start):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Returns ``(start, end, position of the separator, flag)``; flag −1 for a quote that is never closed."""
    size = len(data)
    start = position
    flag = 0
    if position < size and data[position] == _QUOTE:
        position += 1
        lines = 0
        while True:
            if position >= size or position - row_start > MAX_ROW_BYTES:
                return start, start, position, -1
            if data[position] == _QUOTE:
                if position + 1 >= size or data[position + 1] != _QUOTE:
                    break
                flag = DOUBLED_QUOTES
                position += 1
            lines += data[position] == _NEWLINE
            position += 1
        closing = position
        position += 1
        after = position
        while position < size and data[position] != _COMMA and data[position] != _NEWLINE:
            position += 1
        rest, rest_end = _strip(data, after, position)
        if rest == rest_end:
            return start + 1, closing, position, flag
        if lines > 0:
            # Text after a quote that closes on another line: the opening one was a stray.
            return start, start, position, -1
        # Text after the closing quote: the quotes belong to the cell and it is taken as it stands.
        flag = 0
    else:
        while position < size and data[position] != _COMMA and data[position] != _NEWLINE:
            position += 1
    start, end = _strip(data, start, position)
    return start, end, position, flag


@numba.njit(cache=True)
def _strip(data, start, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
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
        start, end = _strip(data, starts[row], ends[row])
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
        start, end = _strip(data, starts[row], ends[row])
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


@numba.njit(cache=True)
def group_cells(data, starts, ends, buckets, group, first_row):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Gives equal cells equal numbers; returns how many different ones there are.

    Args:
        data: uint8, the whole file.
        starts: int64, shape (rows,).
        ends: int64, shape (rows,).
        buckets: int32, a power of two larger than 2·rows, all −1; scratch.
        group: int32, shape (rows,), filled: number of the cell's text, in order of appearance.
        first_row: int32, shape (rows,), filled: the row where each text first stands.
    """
    count = 0
    mask = len(buckets) - 1
    for row in range(len(starts)):
        length = ends[row] - starts[row]
        code = np.uint64(14695981039346656037)
        for position in range(starts[row], ends[row]):
            code = (code ^ np.uint64(data[position])) * np.uint64(1099511628211)
        bucket = np.int64(code & np.uint64(mask))
        while True:
            known = buckets[bucket]
            if known < 0:
                buckets[bucket] = count
                first_row[count] = row
                group[row] = count
                count += 1
                break
            other = first_row[known]
            same = ends[other] - starts[other] == length
            offset = 0
            while same and offset < length:
                same = data[starts[other] + offset] == data[starts[row] + offset]
                offset += 1
            if same:
                group[row] = known
                break
            bucket = (bucket + 1) & mask
    return count
