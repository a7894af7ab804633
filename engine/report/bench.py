"""Benchmarks for people and for scripts (``cannscope.bench/1``)."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_bytes
from engine.workloads.bench.baseline import Comparison
from engine.workloads.bench.measure import Measurement

SCHEMA = "cannscope.bench/1"


def bench_document(
    compared: Sequence[Comparison], tolerance_ratio: float, provenance: dict[str, Any]
) -> dict[str, Any]:
    """Returns the document of a benchmark."""
    return {
        "schema": SCHEMA,
        "tolerance_ratio": tolerance_ratio,
        "scenarios": [
            {
                "name": item.name,
                **_numbers(item.now),
                "status": item.now.status,
                "baseline": None if item.baseline is None else _numbers(item.baseline),
                "change_ratio": item.change_ratio,
                "passed": item.passed,
            }
            for item in compared
        ],
        "passed": all(item.passed for item in compared),
        "provenance": provenance,
    }


def _numbers(item: Measurement) -> dict[str, Any]:
    return {
        "tokens_per_s": item.tokens_per_s,
        "ms_per_token": item.ms_per_token,
        "peak_memory_bytes": item.peak_memory_bytes,
    }


def bench_text(compared: Sequence[Comparison], tolerance_ratio: float, notes: Sequence[str]) -> RenderableType:
    """Returns a benchmark for people."""
    table = Table("scenario", "tokens/s", "ms/token", "peak memory", "against baseline", "", box=None)
    for column in table.columns[1:5]:
        column.justify = "right"
    for item in compared:
        change = "–" if item.change_ratio is None else f"{_change(item.change_ratio)}"
        table.add_row(
            item.name,
            f"{item.now.tokens_per_s:,.1f}",
            "–" if item.now.ms_per_token is None else f"{item.now.ms_per_token:,.3f}",
            format_bytes(item.now.peak_memory_bytes),
            change,
            _verdict(item),
        )
    failed = sum(not item.passed for item in compared)
    last = f"{failed} of {len(compared)} got worse by more than {tolerance_ratio:.1%}" if failed else "passed"
    return Group(table, Text(last, style="bold"), *(Text(note) for note in notes))


def _change(ratio: float) -> str:
    return f"{abs(ratio):.1%} {'worse' if ratio > 0 else 'better'}" if round(ratio, 4) else "the same"


def _verdict(item: Comparison) -> str:
    if item.now.status != "done":
        return f"ended: {item.now.status}"
    if item.baseline is None:
        return "no baseline"
    return "passed" if item.passed else "WORSE"
