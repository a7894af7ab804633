"""What a long run keeps of every step: time, memory, and what the allocator did; as a table a trace carries."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.core.units import NS_PER_US
from engine.trace.tables import RecordedTable
from engine.trace.trace import Trace

HISTORY_TABLE = "step_history"
"""Name of the table, and stem of its file in a profiler directory."""
_STEP_TIME, _STALL = "Step Time(us)", "Allocator Stall(us)"
_LIMIT = "Limit(bytes)"
_COUNTS = {
    "tokens": "Tokens",
    "peak_allocated_bytes": "Peak Allocated(bytes)",
    "peak_reserved_bytes": "Peak Reserved(bytes)",
    "end_allocated_bytes": "Live After Step(bytes)",
    "stranded_bytes": "Stranded(bytes)",
    "retries": "Retries",
    "driver_calls": "Driver Calls",
    "caught": "Out Of Memory Caught",
}


@dataclass(frozen=True, slots=True, eq=False)
class StepHistory:
    """Every step of a run of one rank. int64 arrays of shape (steps,).

    Attributes:
        step_ns: Time of each step.
        tokens: Real tokens each step was fed with.
        peak_allocated_bytes: Per step.
        peak_reserved_bytes: Per step.
        end_allocated_bytes: After each step: what outlives it.
        stranded_bytes: At the worst miss of each step, −1 where there was none.
        retries: Allocations that had to empty the cache first.
        driver_calls: Segments and pages taken and given back.
        caught: Out-of-memory errors the training loop caught.
        stall_ns: Host time of all that.
        limit_bytes: What could be reserved.
    """

    step_ns: Int64Array
    tokens: Int64Array
    peak_allocated_bytes: Int64Array
    peak_reserved_bytes: Int64Array
    end_allocated_bytes: Int64Array
    stranded_bytes: Int64Array
    retries: Int64Array
    driver_calls: Int64Array
    caught: Int64Array
    stall_ns: Int64Array
    limit_bytes: int

    def __len__(self) -> int:
        return len(self.step_ns)


def history_table(history: StepHistory) -> RecordedTable:
    """Returns the history as a table: one row per step; the limit stands in every row."""
    numbers: dict[str, Float64Array] = {
        "Step": np.arange(len(history), dtype=np.float64),
        _STEP_TIME: history.step_ns / NS_PER_US,
    }
    for name, title in _COUNTS.items():
        numbers[title] = getattr(history, name).astype(np.float64)
    numbers[_STALL] = history.stall_ns / NS_PER_US
    numbers[_LIMIT] = np.full(len(history), history.limit_bytes, dtype=np.float64)
    return RecordedTable(HISTORY_TABLE, numbers, {}, tuple(numbers))


def step_history(trace: Trace) -> StepHistory | None:
    """Returns the history a trace carries; None where it carries none, or one that lacks a column or a number."""
    table = trace.tables.get(HISTORY_TABLE)
    titles = (_STEP_TIME, *_COUNTS.values(), _STALL, _LIMIT)
    if table is None or len(table) == 0:
        return None
    columns = [table.numbers.get(title) for title in titles]
    if not all(column is not None and bool(np.isfinite(column).all()) for column in columns):
        return None

    def counts(title: str, scale: float = 1.0) -> Int64Array:
        return np.rint(table.numbers[title] * scale).astype(np.int64)

    return StepHistory(
        step_ns=counts(_STEP_TIME, NS_PER_US),
        stall_ns=counts(_STALL, NS_PER_US),
        limit_bytes=int(table.numbers[_LIMIT][0]),
        **{name: counts(title) for name, title in _COUNTS.items()},
    )


def rolling_mean(values: Int64Array, width: int) -> Float64Array:
    """Returns the mean of the ``width`` values around each one (fewer at the ends), float64, the same shape."""
    half = max(width // 2, 0)
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    place = np.arange(len(values))
    low, high = np.maximum(place - half, 0), np.minimum(place + half + 1, len(values))
    means: Float64Array = (sums[high] - sums[low]) / (high - low)
    return means


def rolling_median(values: Int64Array, width: int) -> Float64Array:
    """Returns the median of the ``width`` values around each one (fewer at the ends), float64, the same shape."""
    half = max(width // 2, 0)
    padded = np.pad(values.astype(np.float64), half, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    medians: Float64Array = np.nanmedian(windows, axis=1)
    return medians
