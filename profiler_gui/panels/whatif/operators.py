"""Operators before and after, as a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.core.number_format import format_duration_ns
from profiler_gui.item_models.columns import is_nan, nullable, number_column, text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.panels.whatif.words import signed_duration, signed_ratio
from profiler_gui.toolkit.translations import tr


def delta_table(before: Mapping[str, int], after: Mapping[str, int]) -> TableModel:
    """Returns operators by what changed most, then by their time; one that a run has not is there with 0.

    Args:
        before: Device ns by name in A, all ranks and recorded steps together.
        after: The same in B.
    """
    names = sorted(
        {*before, *after}, key=lambda name: (-abs(after.get(name, 0) - before.get(name, 0)), -before.get(name, 0), name)
    )
    a = np.array([before.get(name, 0) for name in names], dtype=np.int64)
    b = np.array([after.get(name, 0) for name in names], dtype=np.int64)
    changes = nullable([(late - early) / early if early else None for early, late in zip(a, b, strict=True)])
    columns = (
        text_column("name", tr("Operator"), names),
        number_column("before", tr("A"), a, format_duration_ns, unit="ns"),
        number_column("after", tr("B"), b, format_duration_ns, unit="ns"),
        number_column("delta", tr("Change"), b - a, _marked, unit="ns"),
        number_column("ratio", tr("Change %"), changes, _signed, absent=is_nan),
    )
    return TableModel(columns, len(names))


def _signed(ratio: float) -> str:
    return signed_ratio(ratio) if ratio else "="


def _marked(delta_ns: int) -> str:
    if not delta_ns:
        return "="
    return f"{'▼' if delta_ns < 0 else '▲'} {signed_duration(delta_ns)}"
