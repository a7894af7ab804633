"""Rows of a table as TSV for the clipboard and as CSV for files: exact values, units in the header."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.core.errors import ExportError
from profiler_gui.item_models.columns import Column
from profiler_gui.item_models.table_model import TableModel

COPY_LIMIT_COUNT = 200_000
"""Rows that are copied at most: more belongs into a file."""


def header_of(column: Column) -> str:
    """Returns ``"Duration (ns)"``."""
    return f"{column.title} ({column.unit})" if column.unit else column.title


def tsv(model: TableModel, positions: Iterable[int], columns: Sequence[int] | None = None) -> str:
    """Returns rows as tab-separated text with a header line.

    Args:
        model: The table.
        positions: Rows as shown, from 0; beyond COPY_LIMIT_COUNT the rest is left out.
        columns: Column numbers, or None for all.
    """
    chosen = [model.columns[number] for number in (range(len(model.columns)) if columns is None else columns)]
    lines = ["\t".join(header_of(column) for column in chosen)]
    for count, position in enumerate(positions):  # a person's selection, not the whole table
        if count >= COPY_LIMIT_COUNT:
            break
        row = int(model.order[position])
        lines.append("\t".join(_one_line(column.raw(row)) for column in chosen))
    return "\n".join(lines) + "\n"


def write_csv(model: TableModel, path: Path) -> int:
    """Writes all rows shown, in the order shown; returns how many. Raises ExportError."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([header_of(column) for column in model.columns])
            # Row by row: what the file is made of; about 1 µs per cell.
            writer.writerows([column.raw(row) for column in model.columns] for row in model.order.tolist())
    except OSError as error:
        message = f"{path}: the table could not be written: {error.strerror}; choose another place"
        raise ExportError(message) from error
    return len(model.order)


def _one_line(text: str) -> str:
    return text.replace("\t", " ").replace("\r", " ").replace("\n", " ")
