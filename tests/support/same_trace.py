"""Whether two traces hold the same, whatever their string tables and arrays are called."""

from dataclasses import fields
from typing import Any

import numpy as np

from engine.trace import Trace

_TEXT_COLUMNS = {
    *("name", "category", "kind", "op_type", "core_type", "input_shapes", "input_types", "output_shapes"),
    *("output_types", "group", "link", "operator"),
}


def rows_of(trace: Trace, table: Any, without: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the rows of a table with its text ids as texts."""
    columns = []
    for item in fields(table):
        value = getattr(table, item.name)
        if isinstance(value, np.ndarray) and item.name not in without:
            columns.append(trace.strings.texts(value) if item.name in _TEXT_COLUMNS else value.tolist())
    return list(zip(*columns, strict=True))


def differences(one: Trace, other: Trace) -> list[str]:
    """Returns what differs, one line each; links and arrows are sets, arguments and sources are not compared."""
    found = []

    def compare(what: str, left: Any, right: Any) -> None:
        if left != right:
            pairs = zip(left, right, strict=False) if isinstance(left, list) and isinstance(right, list) else ()
            first = next(((index, pair) for index, pair in enumerate(pairs) if pair[0] != pair[1]), (left, right))
            sizes = f"{len(left)}/{len(right)}" if isinstance(left, list) else ""
            found.append(f"{what} {sizes}: {first}")

    compare("origin", one.origin, other.origin)
    compare("metadata", one.metadata, other.metadata)
    compare("range", one.time_range, other.time_range)
    compare("tracks", list(one.tracks), list(other.tracks))
    compare("events", rows_of(one, one.events, ("args_offset",)), rows_of(other, other.events, ("args_offset",)))
    for name in ("kernels", "collectives"):
        compare(name, rows_of(one, getattr(one, name)), rows_of(other, getattr(other, name)))
    for name in ("flows", "links"):
        compare(name, sorted(rows_of(one, getattr(one, name))), sorted(rows_of(other, getattr(other, name))))
    compare("blocks", rows_of(one, one.memory.allocations), rows_of(other, other.memory.allocations))
    compare("curves", [curve.component for curve in one.memory.curves], [c.component for c in other.memory.curves])
    for left, right in zip(one.memory.curves, other.memory.curves, strict=False):
        compare(f"curve {left.component}", rows_of(one, left), rows_of(other, right))
    compare("counters", [(s.name, s.unit) for s in one.counters], [(s.name, s.unit) for s in other.counters])
    for left, right in zip(one.counters, other.counters, strict=False):
        compare(f"counter {left.name}", rows_of(one, left), rows_of(other, right))
    compare("tables", sorted(one.tables), sorted(other.tables))
    for name in sorted(set(one.tables) & set(other.tables)):
        compare(f"table {name}", _cells(one, name), _cells(other, name))
    compare("diagnostics", [item.code for item in one.diagnostics], [item.code for item in other.diagnostics])
    return found


def _cells(trace: Trace, name: str) -> list[tuple[str, Any]]:
    table = trace.tables[name]
    numbers = {title: [None if np.isnan(v) else v for v in column.tolist()] for title, column in table.numbers.items()}
    texts = {title: trace.strings.texts(column) for title, column in table.texts.items()}
    return [(title, (numbers | texts)[title]) for title in table.columns]
