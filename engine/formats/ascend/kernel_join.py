"""Which event of trace_view.json each row of the kernel table describes."""

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.formats.ascend.kernels import KernelRows
from engine.formats.events.grouped_search import group_bounds, last_not_after
from engine.trace.strings import ABSENT

TOLERANCE_NS = 1
"""The same kernel's start differs by up to 1 ns between trace_view.json and kernel_details.csv (seen in captures)."""
_MAX_TRIES = 8


def match_kernels(rows: KernelRows, name: Int32Array, start_ns: Int64Array, stream: Int64Array) -> Int64Array:
    """Returns for each kernel row the index of its event, int64, −1 where there is none; no event is given twice.

    Rows and events meet by name, stream and start, then by name and start alone (tables of level 0 have no streams);
    what is left meets by name, stream and order where both sides have equally many (a table whose times were rounded
    on the way).

    Args:
        rows: The kernel table.
        name: int32, shape (n,): names of the device's events.
        start_ns: int64, shape (n,), absolute.
        stream: int64, shape (n,), −1 for communication operators, as in the table.
    """
    found = np.full(len(rows), ABSENT, dtype=np.int64)
    if len(name) == 0 or len(rows) == 0:
        return found
    with_stream = _keys(rows.name, rows.stream), _keys(name, stream)
    by_name = rows.name.astype(np.int64), name.astype(np.int64)
    for (row_key, event_key), tolerance_ns in ((with_stream, 0), (with_stream, TOLERANCE_NS), (by_name, TOLERANCE_NS)):
        _match_by_time(rows.start_ns, row_key, start_ns, event_key, tolerance_ns, found)
    _match_by_order(rows, name, start_ns, stream, found)
    return found


def _match_by_time(
    row_start_ns: Int64Array,
    row_key: Int64Array,
    event_start_ns: Int64Array,
    event_key: Int64Array,
    tolerance_ns: int,
    found: Int64Array,
) -> None:
    """Fills ``found`` for rows left over that have an event left over of the same key within the tolerance."""
    free = np.ones(len(event_key), dtype=np.bool_)
    free[found[found >= 0]] = False
    events = np.flatnonzero(free)
    rows = np.flatnonzero(found == ABSENT)
    order = events[np.lexsort((event_start_ns[events], event_key[events]))]
    sorted_start_ns = event_start_ns[order]
    low, high = group_bounds(event_key[order], row_key[rows])
    candidate = last_not_after(sorted_start_ns, low, high, row_start_ns[rows] + tolerance_ns)
    taken = np.zeros(len(order), dtype=np.bool_)
    # Equal kernels that start in the same ns ask for the same event: all but one try the one before.
    for _ in range(_MAX_TRIES):
        near = candidate >= low
        near[near] = sorted_start_ns[candidate[near]] >= row_start_ns[rows[near]] - tolerance_ns
        rows, candidate, low = rows[near], candidate[near], low[near]
        if len(rows) == 0:
            return
        won = np.zeros(len(rows), dtype=np.bool_)
        won[np.unique(candidate, return_index=True)[1]] = True
        won &= ~taken[candidate]
        taken[candidate[won]] = True
        found[rows[won]] = order[candidate[won]]
        rows, candidate, low = rows[~won], candidate[~won] - 1, low[~won]


def _match_by_order(
    rows: KernelRows, name: Int32Array, start_ns: Int64Array, stream: Int64Array, found: Int64Array
) -> None:
    """Fills ``found`` for rows left over whose name and stream have as many events left over as rows."""
    left_rows = np.flatnonzero((found == ABSENT) & ~rows.is_communication)
    free = np.ones(len(name), dtype=np.bool_)
    free[found[found >= 0]] = False
    left_events = np.flatnonzero(free & np.isin(name, np.unique(rows.name[left_rows])))
    if len(left_rows) == 0 or len(left_events) == 0:
        return
    left_events = left_events[np.argsort(start_ns[left_events], kind="stable")]
    row_key = _keys(rows.name[left_rows], rows.stream[left_rows])
    has_streams = bool(np.any(rows.stream != ABSENT))
    event_key = _keys(name[left_events], stream[left_events] if has_streams else rows.stream[:1])
    row_order = np.argsort(row_key, kind="stable")
    event_order = np.argsort(event_key, kind="stable")
    keys, row_first, row_count = np.unique(row_key[row_order], return_index=True, return_counts=True)
    low, high = group_bounds(event_key[event_order], keys)
    # One turn per kernel name and stream that is left over, usually none.
    for first, count, begin, end in zip(
        row_first.tolist(), row_count.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        if count == end - begin:
            found[left_rows[row_order[first : first + count]]] = left_events[event_order[begin:end]]


def _keys(name: Int32Array, stream: Int64Array) -> Int64Array:
    return (name.astype(np.int64) << 32) | ((stream + 1) & 0xFFFF_FFFF)
