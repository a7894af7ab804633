"""The load of a service over time, as many values as a plot has pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the engine's arrays are imported after the first paint
    from engine.core.arrays import Float64Array, Int64Array


def column_maxima(
    start_ns: Int64Array, values: Int64Array, view_start_ns: float, view_end_ns: float, count: int
) -> tuple[Float64Array, Float64Array]:
    """Returns the edges of columns and the largest value in each, for a quantity that holds until its next value.

    Args:
        start_ns: int64, shape (n,), ascending: from when on each value holds.
        values: int64, shape (n,).
        view_start_ns: Left edge of the first column.
        view_end_ns: Right edge of the last one.
        count: Columns.

    Returns:
        float64, shape (count + 1,), and float64, shape (count,); 0 before the first value.
    """
    edges = np.linspace(view_start_ns, view_end_ns, count + 1)
    if not len(values):
        return edges, np.zeros(count)
    before = np.concatenate(([0], values))  # what holds before the first moment
    at = np.searchsorted(start_ns, edges, side="right")
    # From what holds at the left edge up to what begins before the right one.
    first, last = at[:-1], np.maximum(at[1:], at[:-1]) + 1
    bounds = np.minimum(np.column_stack((first, last)).ravel(), len(before) - 1)
    largest = np.maximum.reduceat(before, bounds)[::2]
    # A column that ends with the last value is cut one short by the bound.
    largest = np.where(last >= len(before), np.maximum(largest, before[-1]), largest)
    return edges, largest.astype(np.float64)


def point_maxima(
    time_ns: Int64Array, values: Int64Array, view_start_ns: float, view_end_ns: float, count: int
) -> tuple[Float64Array, Float64Array]:
    """Returns the largest value of the moments in each column that has any: shapes (m,), (m,), m ≤ count.

    Args:
        time_ns: int64, shape (n,), ascending.
        values: int64, shape (n,).
        view_start_ns: Left edge of the first column.
        view_end_ns: Right edge of the last one.
        count: Columns.
    """
    edges = np.linspace(view_start_ns, view_end_ns, count + 1)
    at = np.searchsorted(time_ns, edges)
    some = np.flatnonzero(np.diff(at))
    if not len(some):
        return np.empty(0), np.empty(0)
    bounds = np.append(at[some], at[some[-1] + 1])
    largest = np.maximum.reduceat(np.append(values, 0), bounds)[:-1]
    return (edges[some] + edges[some + 1]) / 2, largest.astype(np.float64)
