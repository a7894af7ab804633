"""The tables of the Memory page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.core.number_format import format_bytes, format_count, format_ratio
from profiler_gui.item_models.columns import Column, is_nan, nullable, number_column, text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.toolkit.time_axis import time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.memory import Leak, LiveAtPeak, StepMemory


def alive_table(alive: Sequence[LiveAtPeak]) -> TableModel:
    """Returns the table of what was alive at the peak; the source row is the index into ``alive``."""
    whole_bytes = sum(item.bytes for item in alive)
    shares = [item.bytes / whole_bytes if whole_bytes else None for item in alive]
    counts = np.array([item.count for item in alive], dtype=np.int64)
    columns = (
        text_column("operator", tr("Operator"), [item.operator for item in alive]),
        _sizes("bytes", tr("Alive"), [item.bytes for item in alive]),
        number_column("share", tr("Share"), nullable(shares), format_ratio, absent=is_nan),
        # Of what is older than the capture often only the sum is known.
        number_column("count", tr("Blocks"), counts, lambda value: format_count(int(value)), absent=_is_zero),
    )
    return TableModel(columns, len(alive))


def leak_table(leaks: Sequence[Leak]) -> TableModel:
    """Returns the table of leaks; the source row is the index into ``leaks``."""
    firsts = np.array([item.first_allocated_at_ns for item in leaks], dtype=np.int64)
    columns = (
        text_column("operator", tr("Operator"), [item.operator for item in leaks]),
        _sizes("bytes", tr("Not freed"), [item.bytes for item in leaks]),
        _counts("count", tr("Blocks"), [item.count for item in leaks]),
        _counts("steps", tr("In steps"), [item.step_count for item in leaks]),
        number_column("step", tr("First in step"), nullable([item.step for item in leaks]), _plain, absent=is_nan),
        number_column("first", tr("First allocated"), firsts, lambda value: time_text(int(value)), unit="ns"),
    )
    return TableModel(columns, len(leaks))


def step_memory_table(steps: Sequence[StepMemory]) -> TableModel:
    """Returns the table of the steps' extremes; the source row is the index into ``steps``."""
    cached = [
        item.peak_reserved_bytes - item.peak_allocated_bytes
        if item.peak_reserved_bytes is not None and item.peak_allocated_bytes is not None
        else None
        for item in steps
    ]
    columns = (
        number_column("step", tr("Step"), nullable([item.step for item in steps]), _plain, absent=is_nan),
        _sizes("allocated", tr("Peak allocated"), [item.peak_allocated_bytes for item in steps]),
        _sizes("active", tr("Peak active"), [item.peak_active_bytes for item in steps]),
        _sizes("reserved", tr("Peak reserved"), [item.peak_reserved_bytes for item in steps]),
        _sizes("cached", tr("Reserved − allocated (cache)"), cached),
        _sizes("headroom", tr("Headroom"), [item.headroom_bytes for item in steps]),
    )
    return TableModel(columns, len(steps))


def _sizes(column_id: str, title: str, values: Sequence[int | None]) -> Column:
    return number_column(column_id, title, nullable(values), format_bytes, unit="bytes", absent=is_nan)


def _counts(column_id: str, title: str, values: Sequence[int]) -> Column:
    numbers = np.array(values, dtype=np.int64)
    return number_column(column_id, title, numbers, lambda value: format_count(int(value)))


def _plain(value: float) -> str:
    return str(int(value))


def _is_zero(value: int) -> bool:
    return value == 0
