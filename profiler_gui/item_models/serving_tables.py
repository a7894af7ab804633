"""Tables of a service: latencies with their percentiles, and benchmarks of the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.core.number_format import format_bytes, format_duration_ns
from profiler_gui.item_models.columns import Column, is_nan, nullable, number_column, text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.serving.latency import ServingAnalysis, Spread
    from engine.workloads.bench.history import HistoryEntry

LATENCY_ROWS = 4
"""Mean, p50, p90, p99."""


def latency_table(now: ServingAnalysis, before: ServingAnalysis | None = None) -> TableModel:
    """Returns mean and percentiles of a service's latencies; where ``before`` is given cells say how they changed.

    Columns: time to the first token, time per further token, whole request. A row each for the mean and percentiles: a
    cell with its change is wide, and three beside each other fit where four do not.
    """
    earlier = (before.ttft, before.tpot, before.e2e) if before is not None else (None, None, None)
    columns = [text_column("what", tr("Latency"), (tr("Mean"), "p50", "p90", "p99"))]
    for name, title, spread, was in (
        ("ttft", tr("First token"), now.ttft, earlier[0]),
        ("tpot", tr("Per token"), now.tpot, earlier[1]),
        ("e2e", tr("Whole request"), now.e2e, earlier[2]),
    ):
        columns.append(_latency_column(name, title, _levels_ns(spread), _levels_ns(was)))
    return TableModel(columns, LATENCY_ROWS)


def _levels_ns(spread: Spread | None) -> tuple[float | None, ...]:
    if spread is None:
        return (None,) * LATENCY_ROWS
    return spread.mean_ns, spread.p50_ns, spread.p90_ns, spread.p99_ns


def _latency_column(name: str, title: str, now: Sequence[float | None], was: Sequence[float | None]) -> Column:
    values = nullable(now)
    texts = [
        "–" if np.isnan(after) else _changed(earlier, float(after)) for earlier, after in zip(was, values, strict=True)
    ]
    return Column(
        name,
        title,
        "ns",
        is_number=True,
        keys=lambda: values,
        text=lambda row: texts[row],
        raw=lambda row: "" if np.isnan(values[row]) else repr(float(values[row])),
    )


def _changed(before_ns: float | None, after_ns: float) -> str:
    if not before_ns:
        return format_duration_ns(after_ns)
    return f"{format_duration_ns(after_ns)} ({change_text(after_ns / before_ns - 1)})"


def change_text(change_ratio: float) -> str:
    """Returns a change in percent with its sign: ``"−35 %"``; ``"±0 %"`` for one that rounds to nothing."""
    percent = round(100 * change_ratio)
    return f"{percent:+,} %".replace("-", "−") if percent else "±0 %"


def benchmark_table(entries: Sequence[HistoryEntry]) -> TableModel:
    """Returns the table of benchmarks; the source row is the index into ``entries``."""
    measured = [entry.measured for entry in entries]
    columns = (
        text_column("when", tr("When"), [entry.recorded_at.isoformat(" ", "seconds") for entry in entries]),
        text_column("label", tr("Label"), [entry.label for entry in entries]),
        number_column(
            "tokens", tr("Tokens per second"), nullable([item.tokens_per_s for item in measured]), _rate, absent=is_nan
        ),
        number_column(
            "per_token",
            tr("ms per token"),
            nullable([item.ms_per_token for item in measured]),
            lambda value: f"{value:,.4g}",
            unit="ms",
            absent=is_nan,
        ),
        number_column(
            "memory",
            tr("Peak memory"),
            np.array([item.peak_memory_bytes for item in measured], dtype=np.int64),
            lambda value: format_bytes(int(value)),
            unit="bytes",
        ),
        number_column(
            "worse",
            tr("Worse than the baseline"),
            nullable([entry.change_ratio for entry in entries]),
            lambda value: f"{value:+.1%}".replace("-", "−").replace("%", " %"),
            absent=is_nan,
        ),
        text_column("gate", tr("Gate"), [tr("passed") if entry.passed else tr("FAILED") for entry in entries]),
        text_column("status", tr("Ended"), [item.status for item in measured]),
        text_column("version", tr("Version"), [entry.version for entry in entries]),
    )
    return TableModel(columns, len(entries))


def _rate(value: float) -> str:
    return f"{value:,.1f}"
