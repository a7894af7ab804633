"""The rows of a csv file and where their cells are, found a few thousand at a time and never copied."""

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.core.arrays import Int64Array, UInt8Array
from engine.core.errors import SourcePosition
from engine.formats.reader import ReadContext
from engine.formats.tables import csv_scanner
from engine.trace.diagnostics import DiagnosticLog, Severity

ROWS_PER_BLOCK = 16_384
BYTES_PER_BLOCK = 16 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Cells of some rows.

    Attributes:
        data: uint8, the whole file.
        starts: int64, shape (rows, wanted columns): first byte of each cell.
        ends: int64, same shape: first byte after it.
        flags: uint8, same shape.
        row_starts: int64, shape (rows,): first byte of each row.
    """

    data: UInt8Array
    starts: Int64Array
    ends: Int64Array
    flags: UInt8Array
    row_starts: Int64Array

    def text(self, row: int, slot: int) -> str:
        """Returns the text of one cell."""
        cell = self.data[self.starts[row, slot] : self.ends[row, slot]].tobytes().decode("utf-8", "replace")
        return cell.replace('""', '"') if self.flags[row, slot] & csv_scanner.DOUBLED_QUOTES else cell


def file_bytes(path: Path) -> UInt8Array:
    """Returns the file memory-mapped, uint8; empty for an empty file. Raises OSError."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return np.empty(0, dtype=np.uint8)
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)


def read_titles(data: UInt8Array) -> tuple[tuple[str, ...], int]:
    """Returns the titles in the first line and where the first row starts; no titles for an empty file."""
    start = len(_BOM) if data[: len(_BOM)].tobytes() == _BOM else 0
    line_end = data[start : start + csv_scanner.MAX_ROW_BYTES].tobytes().partition(b"\n")[0]
    titles: list[str] = []
    position = start
    while position < start + len(line_end):
        begin, end, position, flag = csv_scanner.next_cell(data, position, position)
        if flag < 0:
            break
        titles.append(data[begin:end].tobytes().decode("utf-8", "replace").strip())
        position += 1
    if line_end.rstrip().endswith(b","):
        titles.append("")
    return tuple(titles), min(start + len(line_end) + 1, len(data))


def row_offsets(path: Path) -> Int64Array:
    """Returns where each complete row of the file starts (bytes), so that a row can be read alone."""
    data = file_bytes(path)
    titles, first_row = read_titles(data)
    log = DiagnosticLog()
    starts = [block.row_starts for block in blocks(path, data, first_row, titles, [], log, ReadContext())]
    return np.concatenate([*starts, np.empty(0, dtype=np.int64)])


def read_row(path: Path, offset: int) -> dict[str, str]:
    """Returns title → text of the one row that starts at ``offset``; empty cells are left out."""
    data = file_bytes(path)
    titles, _ = read_titles(data)
    spans = np.zeros((1, len(titles)), dtype=np.int64), np.zeros((1, len(titles)), dtype=np.int64)
    flags = np.zeros((1, len(titles)), dtype=np.uint8)
    slots = np.arange(len(titles), dtype=np.int64)
    row_starts = np.zeros(1, dtype=np.int64)
    count = csv_scanner.scan_rows(data, offset, offset + 1, len(titles), slots, *spans, flags, row_starts)[0]
    block = Block(data, *spans, flags, row_starts)
    cells = {title: block.text(0, slot) for slot, title in enumerate(titles)} if count else {}
    return {title: text for title, text in cells.items() if text}


def blocks(
    path: Path,
    data: UInt8Array,
    position: int,
    titles: tuple[str, ...],
    indices: Sequence[int],
    log: DiagnosticLog,
    context: ReadContext,
) -> Iterator[Block]:
    """Yields the rows of the file some thousand at a time; counts those that are no rows."""
    slot = np.full(max(len(titles), 1), -1, dtype=np.int64)
    shared: dict[int, int] = {}
    for place, index in enumerate(indices):
        slot[index] = shared.setdefault(index, place)
    while position < len(data):
        context.cancel.check()
        context.progress(position / len(data), f"reading {path.name}")
        shape = (ROWS_PER_BLOCK, max(len(indices), 1))
        starts, ends = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        flags, row_starts = np.zeros(shape, dtype=np.uint8), np.zeros(ROWS_PER_BLOCK, dtype=np.int64)
        stop = min(position + BYTES_PER_BLOCK, len(data))
        count, position, broken, first = csv_scanner.scan_rows(
            data, position, stop, len(titles), slot, starts, ends, flags, row_starts
        )
        log.add(
            "broken-table-row",
            Severity.DATA_LOSS,
            "rows of a table have another number of cells than its titles and were left out",
            count=broken,
            position=SourcePosition(path, byte=first),
        )
        source = [shared[index] for index in indices]
        wanted = (slice(count), source)
        yield Block(data, starts[wanted], ends[wanted], flags[wanted], row_starts[:count])
