"""Summary tables of an Ascend capture, kept as they stand in the file for display and for checking ourselves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.core.arrays import Float64Array, Int32Array
from engine.core.errors import SourcePosition, TraceReadError
from engine.formats.reader import ReadContext
from engine.formats.tables.csv_table import CellKind, Column, TableColumns, number_titles, read_columns
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import StringInterner
from engine.trace.tables import RecordedTable


def read_recorded(
    name: str, paths: Sequence[Path], strings: StringInterner, log: DiagnosticLog, context: ReadContext
) -> RecordedTable | None:
    """Returns a csv file (its slices one after another) as a table; None where nothing could be read.

    A column is numeric where every cell is a number or says there is none; times with more digits than a float64
    holds stay text.
    """
    tables = []
    titles: tuple[str, ...] = ()
    for path, stage in zip(paths, context.parts(len(paths)), strict=True):
        try:
            columns, numeric = number_titles(path, stage.part(0.0, 0.5))
            wanted = [
                Column(title, CellKind.FLOAT if title in numeric else CellKind.TEXT, {title: 1})
                for title in dict.fromkeys(filter(None, columns))
            ]
            tables.append((read_columns(path, wanted, strings, log, stage.part(0.5, 1.0)), numeric))
            titles = titles or tuple(dict.fromkeys(filter(None, columns)))
        except (TraceReadError, OSError) as error:
            log.add("unreadable-file", Severity.ERROR, str(error), position=SourcePosition(path))
    if not tables:
        return None
    numeric_everywhere = set(titles).intersection(*(numeric for _, numeric in tables))
    whole = [table for table, _ in tables]
    return RecordedTable(
        name=name,
        numbers={title: _numbers(whole, title) for title in titles if title in numeric_everywhere},
        texts={title: _texts(whole, title, strings) for title in titles if title not in numeric_everywhere},
        columns=titles,
    )


def _numbers(tables: list[TableColumns], title: str) -> Float64Array:
    missing = np.empty(0, dtype=np.float64)
    return np.concatenate([table.columns.get(title, np.full(len(table), np.nan)) for table in tables] or [missing])


def _texts(tables: list[TableColumns], title: str, strings: StringInterner) -> Int32Array:
    parts = []
    for table in tables:
        column = table.columns.get(title)
        if column is not None and column.dtype == np.float64:
            # A slice where this column happens to hold numbers only.
            column = strings.intern_all([repr(number) for number in column.tolist()])
        parts.append(table.text(title) if column is None else column)
    return np.concatenate(parts)
