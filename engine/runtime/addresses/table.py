"""Address maps as a table a trace carries."""

import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.runtime.addresses.address_map import (
    AddressMap,
    Basis,
    BlockRectangles,
    Misses,
    Rectangles,
    SegmentRectangles,
    columns_of,
)
from engine.trace.tables import RecordedTable

ADDRESS_TABLE = "address_space"
"""Name of the table, and stem of its file in a profiler directory."""
_LOG, _BLOCK, _SEGMENT, _MISS = 0, 1, 2, 3
_TITLES = {
    "address": "Address",
    "size_bytes": "Size(bytes)",
    "first_event": "First Event",
    "last_event": "Last Event",
    "event": "First Event",
    "stream": "Stream",
    "group": "Lifetime Class",
    "is_large": "Large Pool",
    "tag": "Tag",
    "label": "Label",
    "action": "Driver Action",
    "stranded_bytes": "Stranded(bytes)",
}
_COLUMNS = ("Kind", *dict.fromkeys(_TITLES.values()))
_ABSENT = -1.0


def address_table(mapped: AddressMap) -> RecordedTable:
    """Returns the map as a table: a row for the log, then blocks, segments and misses; −1 where a column is of others.

    Names of blocks are left out. Addresses are exact: they stay below 2**53.
    """
    log = {title: np.full(1, _ABSENT) for title in _COLUMNS}
    log |= {
        "Kind": np.full(1, float(_LOG)),
        _TITLES["last_event"]: np.array([float(mapped.event_count)]),
        _TITLES["size_bytes"]: np.array([float(mapped.max_split_bytes)]),
        _TITLES["group"]: np.array([float(mapped.joins_segments)]),
    }
    parts = [log]
    for kind, rectangles in ((_BLOCK, mapped.blocks), (_SEGMENT, mapped.segments), (_MISS, mapped.misses)):
        parts.append(_rows(kind, rectangles))
    numbers = {title: np.concatenate([part[title] for part in parts]) for title in _COLUMNS}
    return RecordedTable(ADDRESS_TABLE, numbers, {}, _COLUMNS)


def _rows(kind: int, rectangles: Rectangles) -> dict[str, Float64Array]:
    rows = {title: np.full(len(rectangles), _ABSENT) for title in _COLUMNS}
    rows["Kind"] = np.full(len(rectangles), float(kind))
    for name, column in columns_of(rectangles).items():
        if name != "label":
            rows[_TITLES[name]] = column.astype(np.float64)
    return rows


def address_map_of(table: RecordedTable, basis: Basis, policy: str) -> AddressMap | None:
    """Returns the map in a table; None where a column or a number is missing."""
    if not set(_COLUMNS) <= set(table.numbers):
        return None
    if not all(bool(np.isfinite(table.numbers[title]).all()) for title in _COLUMNS):
        return None
    numbers = {title: np.rint(table.numbers[title]).astype(np.int64) for title in _COLUMNS}
    log = np.flatnonzero(numbers["Kind"] == _LOG)
    if len(log) != 1:
        return None

    def columns(kind: int, rectangles: type[Rectangles]) -> dict[str, Int64Array]:
        chosen = numbers["Kind"] == kind
        return {name: numbers[_TITLES[name]][chosen] for name in rectangles.__dataclass_fields__}

    row = int(log[0])
    return AddressMap(
        basis=basis,
        policy=policy,
        event_count=int(numbers[_TITLES["last_event"]][row]),
        blocks=BlockRectangles(**columns(_BLOCK, BlockRectangles)),
        segments=SegmentRectangles(**columns(_SEGMENT, SegmentRectangles)),
        misses=Misses(**columns(_MISS, Misses)),
        joins_segments=bool(numbers[_TITLES["group"]][row] == 1),
        max_split_bytes=int(numbers[_TITLES["size_bytes"]][row]),
    )
