"""Interval algebra over sorted, disjoint, half-open ranges of ns.

All shares the product shows are measures of unions, so no total can exceed the range it is taken of.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array, read_only


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Sorted, disjoint, non-empty, non-touching half-open intervals. int64 columns, shape (n,)."""

    start_ns: Int64Array
    end_ns: Int64Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "start_ns", read_only(self.start_ns))
        object.__setattr__(self, "end_ns", read_only(self.end_ns))

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def total_ns(self) -> int:
        """The measure of the set."""
        return int((self.end_ns - self.start_ns).sum())


EMPTY = Intervals(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def union(start_ns: Int64Array, end_ns: Int64Array) -> Intervals:
    """Returns the union of any intervals, shape (n,) each; empty and reversed ones add nothing."""
    real = end_ns > start_ns
    start_ns, end_ns = start_ns[real], end_ns[real]
    if len(start_ns) == 0:
        return EMPTY
    if np.any(start_ns[1:] < start_ns[:-1]):
        order = np.argsort(start_ns, kind="stable")
        start_ns, end_ns = start_ns[order], end_ns[order]
    reach_ns = np.maximum.accumulate(end_ns)
    first = np.concatenate(([True], start_ns[1:] > reach_ns[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Intervals(start_ns[first], reach_ns[last])


def single(start_ns: int, end_ns: int) -> Intervals:
    """Returns one interval, or nothing where it is empty."""
    return union(np.array([start_ns], dtype=np.int64), np.array([end_ns], dtype=np.int64))


def join(*sets: Intervals) -> Intervals:
    """Returns the union of several sets."""
    return union(np.concatenate([item.start_ns for item in sets]), np.concatenate([item.end_ns for item in sets]))


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """Returns what lies in both sets."""
    if len(left) == 0 or len(right) == 0:
        return EMPTY
    first = np.searchsorted(right.end_ns, left.start_ns, side="right")
    last = np.searchsorted(right.start_ns, left.end_ns, side="left")
    counts = np.maximum(last - first, 0)
    left_index = np.repeat(np.arange(len(left)), counts)
    offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    right_index = np.repeat(first, counts) + offsets
    start_ns = np.maximum(left.start_ns[left_index], right.start_ns[right_index])
    end_ns = np.minimum(left.end_ns[left_index], right.end_ns[right_index])
    return union(start_ns, end_ns)


def difference(left: Intervals, right: Intervals) -> Intervals:
    """Returns what lies in ``left`` and not in ``right``."""
    if len(left) == 0 or len(right) == 0:
        return left
    low, high = int(left.start_ns[0]), int(left.end_ns[-1])
    gap_start = np.concatenate((np.array([low], dtype=np.int64), right.end_ns))
    gap_end = np.concatenate((right.start_ns, np.array([high], dtype=np.int64)))
    return intersection(left, union(gap_start, gap_end))


def clip(intervals: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """Returns the part of ``intervals`` inside a half-open window."""
    return intersection(intervals, single(start_ns, end_ns))


def covered_ns(intervals: Intervals, start_ns: Int64Array, end_ns: Int64Array) -> Int64Array:
    """Returns how much of each window ``[start, end)`` the set covers; int64, shape of ``start_ns``.

    Windows may overlap and come in any order: the answer is a difference of two running totals.
    """
    if len(intervals) == 0:
        return np.zeros(len(start_ns), dtype=np.int64)
    before_ns = np.concatenate(([0], np.cumsum(intervals.end_ns - intervals.start_ns)))

    def total_before(moment_ns: Int64Array) -> Int64Array:
        index = np.searchsorted(intervals.start_ns, moment_ns, side="right")
        begun = np.maximum(index - 1, 0)
        partial = np.minimum(moment_ns, intervals.end_ns[begun]) - intervals.start_ns[begun]
        covered: Int64Array = np.where(index > 0, before_ns[begun] + partial, np.int64(0))
        return covered

    inside_ns: Int64Array = np.maximum(total_before(end_ns) - total_before(start_ns), 0)
    return inside_ns
