"""Reading csv tables fast and exactly: chosen columns of files of any size, with bad rows counted.

Column sets differ between profiler versions, so columns are asked for by any of their titles. Times are converted
from decimal text to int64 (µs since the epoch with three decimals exceed float64).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from engine.core.arrays import AnyArray, Float64Array, Int32Array, Int64Array
from engine.core.errors import SourcePosition, TraceSyntaxError
from engine.formats.reader import ReadContext
from engine.formats.tables import cell_numbers, csv_scanner
from engine.formats.tables.cell_numbers import MISSING
from engine.formats.tables.csv_rows import Block, blocks, file_bytes, read_titles
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT, StringInterner

_FLOAT64_DIGITS = 17
"""Every float64 can be written with 17 digits; text with more of them (epoch µs with decimals) is more exact."""

_INT32_MAX = np.iinfo(np.int32).max


class CellKind(Enum):
    """How the cells of a column are converted."""

    TEXT = "text"
    """int32 string ids; −1 for empty cells."""
    TEXT_OR_NONE = "text_or_none"
    """int32 string ids; −1 for empty cells and words like N/A."""
    DECIMAL = "decimal"
    """int64: the number times the title's scale; MISSING for empty cells and words like N/A."""
    FLOAT = "float"
    """float64; NaN for empty cells and words like N/A."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column the caller wants.

    Attributes:
        key: What the caller calls it.
        kind: How to convert it.
        titles: Every title the column has had, with what its numbers are multiplied by (its unit), the best first.
        needed: Whether a row without this value is of no use; such rows are left out and counted.
        strip: Characters taken off both ends of a text: shapes carry quotes of their own (``"32,3,224,224"``).
    """

    key: str
    kind: CellKind
    titles: Mapping[str, int]
    needed: bool = False
    strip: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class TableColumns:
    """The wanted columns of one file.

    Attributes:
        titles: All titles of the file, in order.
        columns: Key → converted column, shape (rows,); keys whose column the file lacks are absent.
        row: int64, shape (rows,): number of each row among the complete rows of the file, 0-based.
        complete_rows: How many rows have as many cells as there are titles.
    """

    titles: tuple[str, ...]
    columns: Mapping[str, AnyArray]
    row: Int64Array
    complete_rows: int

    def __len__(self) -> int:
        return len(self.row)

    def text(self, key: str) -> Int32Array:
        """Returns a text column, all −1 where the file lacks it."""
        known = self.columns.get(key)
        return np.full(len(self), ABSENT, dtype=np.int32) if known is None else known

    def decimal(self, key: str, missing: int = ABSENT) -> Int64Array:
        """Returns an integer column with ``missing`` in place of absent values."""
        known = self.columns.get(key)
        if known is None:
            return np.full(len(self), missing, dtype=np.int64)
        return np.where(known == MISSING, missing, known)

    def number(self, key: str) -> Int32Array:
        """Returns an id or count as int32; −1 where it is absent, negative or beyond int32: no such thing exists."""
        column = self.decimal(key)
        return np.where((column >= 0) & (column <= _INT32_MAX), column, ABSENT).astype(np.int32)


def read_columns(
    path: Path, wanted: Sequence[Column], strings: StringInterner, log: DiagnosticLog, context: ReadContext
) -> TableColumns:
    """Returns the wanted columns of the csv file at ``path``.

    Rows with another number of cells than there are titles, and rows without a needed value, are left out and
    counted as DATA_LOSS; other unreadable cells count as missing values.

    Raises:
        TraceSyntaxError: The file is empty, or lacks the title of a needed column.
        OSError: The file cannot be read.
    """
    data = file_bytes(path)
    titles, first_row = read_titles(data)
    chosen = _choose(titles, wanted, path)
    parts: list[dict[str, AnyArray]] = []
    rows: list[Int64Array] = []
    complete_rows = 0
    for block in blocks(path, data, first_row, titles, [index for _, index, _ in chosen], log, context):
        converted = {
            column.key: _convert(block, slot, column, scale, strings, log, path)
            for slot, (column, _, scale) in enumerate(chosen)
        }
        usable = _usable(converted, chosen, len(block.row_starts), log, path, block)
        parts.append({key: values[usable] for key, values in converted.items()})
        rows.append(complete_rows + usable)
        complete_rows += len(block.row_starts)
    columns = {
        column.key: np.concatenate([part[column.key] for part in parts] or [_empty(column.kind)])
        for column, _, _ in chosen
    }
    row = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
    return TableColumns(titles, columns, row, complete_rows)


def number_titles(path: Path, context: ReadContext) -> tuple[tuple[str, ...], frozenset[str]]:
    """Returns all titles, and those whose cells are all numbers a float64 holds, or say there is none.

    Bad rows are not counted here: the columns are read again once their kinds are known.

    Raises:
        TraceSyntaxError: The file is empty.
        OSError: The file cannot be read.
    """
    data = file_bytes(path)
    titles, first_row = read_titles(data)
    if not titles:
        raise TraceSyntaxError("the table is empty (no title line)", SourcePosition(path))
    numeric = set(range(len(titles)))
    for block in blocks(path, data, first_row, titles, list(range(len(titles))), DiagnosticLog(), context):
        for index in sorted(numeric):
            _, hard, most_digits = _easy_floats(block, index)
            # The first text decides, so a column of text costs one conversion.
            is_text = any(_float(block.text(row, index)) is None for row in hard.tolist())
            if is_text or most_digits > _FLOAT64_DIGITS:
                numeric.discard(index)
    return titles, frozenset(titles[index] for index in numeric)


def _choose(titles: tuple[str, ...], wanted: Sequence[Column], path: Path) -> list[tuple[Column, int, int]]:
    """Returns (column, index in the file, scale) of the wanted columns the file has."""
    if not titles:
        raise TraceSyntaxError("the table is empty (no title line)", SourcePosition(path))
    index_of: dict[str, int] = {}
    for index, title in enumerate(titles):
        index_of.setdefault(title.casefold(), index)
    chosen = []
    for column in wanted:
        found = [(title, scale) for title, scale in column.titles.items() if title.casefold() in index_of]
        if found:
            chosen.append((column, index_of[found[0][0].casefold()], found[0][1]))
        elif column.needed:
            known = " or ".join(column.titles)
            raise TraceSyntaxError(f"the table has no column {known}", SourcePosition(path, line=1))
    return chosen


def _convert(
    block: Block, slot: int, column: Column, scale: int, strings: StringInterner, log: DiagnosticLog, path: Path
) -> AnyArray:
    starts, ends = np.ascontiguousarray(block.starts[:, slot]), np.ascontiguousarray(block.ends[:, slot])
    if column.kind is CellKind.DECIMAL:
        values = np.empty(len(starts), dtype=np.int64)
        invalid, first = cell_numbers.parse_scaled(block.data, starts, ends, scale, values)
        _count_unreadable(log, invalid, path, block, first)
        return values
    if column.kind is CellKind.FLOAT:
        numbers, refused = _floats(block, slot)
        _count_unreadable(log, len(refused), path, block, refused[0] if refused else -1)
        return numbers
    return _texts(block, slot, column, strings, log, path)


def _count_unreadable(log: DiagnosticLog, count: int, path: Path, block: Block, row: int) -> None:
    log.add(
        "unreadable-table-cell",
        Severity.DATA_LOSS,
        "cells of a table hold text where a number belongs; they count as missing",
        count=count,
        position=SourcePosition(path, byte=int(block.row_starts[row])) if count else None,
    )


def _floats(block: Block, slot: int) -> tuple[Float64Array, list[int]]:
    """Returns the numbers of a column, and the rows that hold none."""
    numbers, hard, _ = _easy_floats(block, slot)
    refused = []
    # Only cells of unusual length or form come here; Python's own conversion rounds them correctly.
    for row in hard.tolist():
        number = _float(block.text(row, slot))
        if number is None:
            refused.append(row)
        else:
            numbers[row] = number
    return numbers, refused


def _easy_floats(block: Block, slot: int) -> tuple[Float64Array, Int64Array, int]:
    """Returns the numbers that are rounded only once, the rows left over, and the most digits of any cell."""
    starts, ends = np.ascontiguousarray(block.starts[:, slot]), np.ascontiguousarray(block.ends[:, slot])
    numbers = np.empty(len(starts), dtype=np.float64)
    status = np.empty(len(starts), dtype=np.uint8)
    most_digits = cell_numbers.parse_floats(block.data, starts, ends, numbers, status)
    return numbers, np.flatnonzero(status == cell_numbers.HARD), int(most_digits)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _texts(
    block: Block, slot: int, column: Column, strings: StringInterner, log: DiagnosticLog, path: Path
) -> Int32Array:
    starts, ends = np.ascontiguousarray(block.starts[:, slot]), np.ascontiguousarray(block.ends[:, slot])
    group = np.empty(len(starts), dtype=np.int32)
    first_row = np.empty(len(starts), dtype=np.int32)
    buckets = np.full(1 << (2 * len(starts) + 1).bit_length(), -1, dtype=np.int32)
    count = csv_scanner.group_cells(block.data, starts, ends, buckets, group, first_row)
    ids = np.empty(count, dtype=np.int32)
    # One turn per different text, not per row.
    for index, row in enumerate(first_row[:count].tolist()):
        start, end = int(starts[row]), int(ends[row])
        none = column.kind is CellKind.TEXT_OR_NONE and cell_numbers.says_none(block.data, start, end)
        text = block.text(row, slot).strip(column.strip)
        ids[index] = ABSENT if none or start == end else strings.intern(text)
        log.add(
            "invalid-utf8",
            Severity.NOTICE,
            "texts hold bytes that are no UTF-8; each is shown as �",
            count=int("\N{REPLACEMENT CHARACTER}" in text),
            position=SourcePosition(path, byte=start),
        )
    return ids[group]


def _usable(
    converted: Mapping[str, AnyArray],
    chosen: list[tuple[Column, int, int]],
    count: int,
    log: DiagnosticLog,
    path: Path,
    block: Block,
) -> Int64Array:
    """Returns the rows of the block that have every needed value."""
    usable = np.ones(count, dtype=np.bool_)
    for column, _, _ in chosen:
        if column.needed:
            usable &= converted[column.key] != (MISSING if column.kind is CellKind.DECIMAL else ABSENT)
    lost = np.flatnonzero(~usable)
    log.add(
        "incomplete-table-row",
        Severity.DATA_LOSS,
        "rows of a table lack a value they are useless without and were left out",
        count=len(lost),
        position=SourcePosition(path, byte=int(block.row_starts[lost[0]])) if len(lost) else None,
    )
    return np.flatnonzero(usable)


def _empty(kind: CellKind) -> AnyArray:
    dtype = {CellKind.DECIMAL: np.int64, CellKind.FLOAT: np.float64}.get(kind, np.int32)
    return np.empty(0, dtype=dtype)
