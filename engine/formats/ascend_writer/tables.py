"""Csv files: the summary tables a trace carries, and how any table is written."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.formats.ascend_writer.numbers import number_text
from engine.trace.tables import RecordedTable
from engine.trace.trace import Trace


def write_rows(path: Path, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Writes a csv file; cells with commas or quotes are quoted. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(titles)
        writer.writerows(rows)


def write_table(trace: Trace, table: RecordedTable, path: Path) -> None:
    """Writes a summary table under its own titles. Raises OSError."""
    columns = [
        list(map(number_text, table.numbers[title].tolist()))
        if title in table.numbers
        else trace.strings.texts(table.texts[title])
        for title in table.columns
    ]
    write_rows(path, table.columns, zip(*columns, strict=True))
