"""Which event of trace_view.json each row of the kernel table describes."""

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.formats.ascend_kernels import KernelRows
from engine.formats.grouped_search import group_bounds, last_not_after
from engine.trace.strings import ABSENT

TOLERANCE_NS = 1
"""The same kernel's start differs by up to 1 ns between trace_view.json and kernel_details.csv (seen in captures)."""
_MAX_TRIES = 8


def match_kernels(rows: KernelRows, name: Int32Array, start_ns: Int64Array, stream: Int64Array) -> Int64Array:
    """Returns for each kernel row the index of its event, int64, −1 where there is none; no event is given twice.

    Rows and events meet by name and start; what is left meets by name, stream and order where both sides have equally
    many (a table whose times were rounded on the way).

    Args:
        rows: The kernel table.
        name: int32, shape (n,): names of the device's events.
        start_ns: int64, shape (n,), absolute.
        stream: int64, shape (n,), −1 where unknown.
    """
    found = np.full(len(rows), ABSENT, dtype=np.int64)
    if len(name) == 0 or len(rows) == 0:
        return found
    order = np.lexsort((start_ns, name))
    low, high = group_bounds(name[order], rows.name)
    sorted_start_ns = start_ns[order]
    candidate = last_not_after(sorted_start_ns, low, high, rows.start_ns + TOLERANCE_NS)
    open_rows = np.arange(len(rows))
    taken = np.zeros(len(order), dtype=np.bool_)
    # Equal kernels that start in the same ns (on two streams) ask for the same event: all but one try the one before.
    for _ in range(_MAX_TRIES):
        near = candidate >= low[open_rows]
        near[near] = sorted_start_ns[candidate[near]] >= rows.start_ns[open_rows[near]] - TOLERANCE_NS
        open_rows, candidate = open_rows[near], candidate[near]
        if len(open_rows) == 0:
            break
        _, first = np.unique(candidate, return_index=True)
        won = np.zeros(len(open_rows), dtype=np.bool_)
        won[first] = True
        won &= ~taken[candidate]
        taken[candidate[won]] = True
        found[open_rows[won]] = order[candidate[won]]
        open_rows, candidate = open_rows[~won], candidate[~won] - 1
    _match_by_order(rows, name, start_ns, stream, found)
    return found


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
