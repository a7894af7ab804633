"""Distinct combinations of several columns, without sorting rows as a whole."""

from collections.abc import Sequence

import numpy as np

from engine.core.arrays import AnyArray, Int64Array


def distinct_rows(columns: Sequence[AnyArray]) -> tuple[Int64Array, Int64Array]:
    """Returns ``(first, inverse)``: one row index of each distinct combination, and every row's combination.

    Equal to ``np.unique(np.column_stack(columns), axis=0)`` with the index and inverse, several times faster: columns
    are joined one after another, and the numbers stay below (rows × distinct values of one column).

    Args:
        columns: Integer columns of equal length.
    """
    group = np.zeros(len(columns[0]), dtype=np.int64)
    first = np.zeros(min(1, len(group)), dtype=np.int64)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        _, first, group = np.unique(group * max(len(values), 1) + codes, return_index=True, return_inverse=True)
    return first, group
