"""Binary searches of many ranges at once."""

import numpy as np

from engine.core.arrays import AnyArray, Int64Array


def group_bounds(groups: AnyArray, wanted: AnyArray) -> tuple[Int64Array, Int64Array]:
    """Returns where each wanted group begins and ends in ascending ``groups``; int64, shape of ``wanted``."""
    low = np.searchsorted(groups, wanted, side="left").astype(np.int64)
    high = np.searchsorted(groups, wanted, side="right").astype(np.int64)
    return low, high


def last_not_after(values: Int64Array, low: Int64Array, high: Int64Array, limit: Int64Array) -> Int64Array:
    """Returns for each range ``[low, high)`` the last index whose value is not above the limit, or ``low − 1``.

    Args:
        values: int64, ascending inside each range.
        low: int64, shape (n,).
        high: int64, shape (n,).
        limit: int64, shape (n,).
    """
    if len(values) == 0:
        return low - 1
    low, high = low.copy(), high.copy()
    # One turn per bit of the longest range.
    while np.any(low < high):
        middle = (low + high) // 2
        open_range = low < high
        not_after = open_range & (values[np.minimum(middle, len(values) - 1)] <= limit)
        low = np.where(not_after, middle + 1, low)
        high = np.where(open_range & ~not_after, middle, high)
    return low - 1
