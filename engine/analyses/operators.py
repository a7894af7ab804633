"""Device time by operator."""

from dataclasses import dataclass
from itertools import starmap

import numpy as np

from engine.analyses.activity import Activity, activities
from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.trace.strings import ABSENT
from engine.trace.trace import TimeRange, Trace


@dataclass(frozen=True, slots=True)
class OperatorStatistic:
    """All device tasks of one operator type (kernel name where the source has no types).

    Attributes:
        name: A kernel name of the type (the most frequent one).
        type: Operator type (``"MatMulV3"``); the kernel name where the source has no types.
        core_type: Accelerator core, "" where unknown.
        count: Number of tasks.
        total_ns: Sum of durations.
        min_ns: Shortest.
        max_ns: Longest.
        share_ratio: total ÷ sum over all operators.
    """

    name: str
    type: str
    core_type: str
    count: int
    total_ns: int
    min_ns: int
    max_ns: int
    share_ratio: float


def operator_statistics(trace: Trace, window: TimeRange | None = None) -> tuple[OperatorStatistic, ...]:
    """Returns statistics of computing tasks (communication excluded), the largest total first.

    Inside a window a task counts with the part of it that lies there.
    """
    rows, duration_ns = _tasks(trace, window)
    if len(rows) == 0:
        return ()
    operator_type, core_type = _types(trace, rows)
    group, type_of_group, core_of_group = _groups(operator_type, core_type)
    count = np.bincount(group)
    total_ns = _sum_by(group, duration_ns, len(count))
    min_ns = np.full(len(count), np.iinfo(np.int64).max)
    np.minimum.at(min_ns, group, duration_ns)
    max_ns = np.zeros(len(count), dtype=np.int64)
    np.maximum.at(max_ns, group, duration_ns)
    name = _most_frequent(group, trace.events.name[rows], len(count))
    order = np.lexsort((-count, -total_ns))
    texts = (trace.strings.texts(column[order]) for column in (name, type_of_group, core_of_group))
    share = total_ns / max(int(total_ns.sum()), 1)
    numbers = (column[order].tolist() for column in (count, total_ns, min_ns, max_ns, share))
    # One object per operator type, not per event; the columns stand in the order of the fields.
    return tuple(starmap(OperatorStatistic, zip(*texts, *numbers, strict=True)))


def _tasks(trace: Trace, window: TimeRange | None) -> tuple[AnyArray, Int64Array]:
    """Returns the rows of computing tasks and how long each is (inside the window)."""
    rows = np.flatnonzero(activities(trace) == Activity.COMPUTING)
    start_ns = trace.events.start_ns[rows]
    duration_ns = trace.events.duration_ns[rows]
    if window is None:
        return rows, duration_ns
    end_ns = start_ns + duration_ns
    begins_inside = (start_ns >= window.start_ns) & (start_ns < window.end_ns)
    inside = begins_inside | ((start_ns < window.start_ns) & (end_ns > window.start_ns))
    clipped_ns = np.minimum(end_ns, window.end_ns) - np.maximum(start_ns, window.start_ns)
    return rows[inside], clipped_ns[inside]


def _types(trace: Trace, rows: AnyArray) -> tuple[Int32Array, Int32Array]:
    """Returns the string ids of operator type and core of each task; the type falls back to the task's name."""
    kernel = trace.kernel_row_of_event[rows]
    described = kernel != ABSENT
    operator_type = trace.events.name[rows].copy()
    core_type = np.full(len(rows), ABSENT, dtype=np.int32)
    if np.any(described):
        recorded = trace.kernels.op_type[kernel[described]]
        operator_type[described] = np.where(recorded != ABSENT, recorded, operator_type[described])
        core_type[described] = trace.kernels.core_type[kernel[described]]
    return operator_type, core_type


def _groups(operator_type: Int32Array, core_type: Int32Array) -> tuple[Int64Array, Int32Array, Int32Array]:
    """Returns each task's group, and type and core of each group: op_statistic.csv has a row per (type, core)."""
    width = int(core_type.max()) + 2
    keys = operator_type.astype(np.int64) * width + core_type + 1
    distinct, group = np.unique(keys, return_inverse=True)
    return group, (distinct // width).astype(np.int32), (distinct % width - 1).astype(np.int32)


def _sum_by(group: Int64Array, values: Int64Array, count: int) -> Int64Array:
    """Returns exact integer sums (``bincount`` with weights would go through float64)."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, group, values)
    return sums


def _most_frequent(group: Int64Array, name: Int32Array, count: int) -> Int32Array:
    """Returns the name each group holds most often (the lowest id of equally frequent ones)."""
    width = int(name.max()) + 1
    pairs, frequency = np.unique(group * width + name, return_counts=True)
    order = np.lexsort((-pairs, frequency))
    chosen = np.zeros(count, dtype=np.int32)
    # Ascending frequency: the last write of each group is its most frequent name.
    chosen[pairs[order] // width] = pairs[order] % width
    return chosen
