"""Compiled byte loops of the table reader: where the cells of a csv file are, and which are equal.

A csv row cannot be found without following quotes from its start, so these loops cannot be vectorised.
Cells are spans of the file's bytes; nothing is copied until a text is really needed.
"""

import numba
import numpy as np

from engine.formats.tables.cell_numbers import strip_cell

MAX_ROW_BYTES = 16 << 20
"""A quoted cell longer than this was never closed: the row is given up at its first line end."""
DOUBLED_QUOTES = 2
"""Cell flag: the text contains ``""`` for a quote."""

_COMMA, _NEWLINE, _QUOTE, _RETURN, _SPACE, _TAB = 44, 10, 34, 13, 32, 9


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
    start, end = strip_cell(data, start, end)
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
        rest, rest_end = strip_cell(data, after, position)
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
    start, end = strip_cell(data, start, position)
    return start, end, position, flag


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
