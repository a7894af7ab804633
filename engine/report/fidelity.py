"""The runtime against published measurements: the ``fidelity`` document and text."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_ratio
from engine.workloads.fidelity.scores import Scores
from engine.workloads.fidelity.tables import FidelityResult, FidelityRow


def fidelity_document(results: Sequence[FidelityResult], missing: Mapping[str, str]) -> dict[str, Any]:
    """Returns the document ``cannscope.fidelity/1`` of CLI.md; ``missing``: tables that could not be read, with why."""
    return {
        "schema": "cannscope.fidelity/1",
        "tables": [_table_document(result) for result in results],
        "missing": [{"table": table, "reason": reason} for table, reason in missing.items()],
        "passed": all(result.holds for result in results),
    }


def _table_document(result: FidelityResult) -> dict[str, Any]:
    target = result.target
    return {
        "table": result.table,
        "title": result.title,
        **_scores_document(result.scores),
        "baselines": {name: scores.mape_ratio for name, scores in result.baselines.items()},
        "baseline_scores": {name: _scores_document(scores) for name, scores in result.baselines.items()},
        "parts": {name: _scores_document(scores) for name, scores in result.parts.items()},
        "target": {"metric": target.metric, "limit": target.limit} if target else None,
        "passed": result.holds,
        "notes": list(result.notes),
        "single_rows": [_row_document(row) for row in result.rows],
    }


def _row_document(row: FidelityRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "quantity": row.quantity,
        "predicted": list(row.predicted) if row.predicted else None,
        "published": list(row.published) if row.published else None,
        "verdict": row.verdict.value,
        "note": row.note,
    }


def _scores_document(scores: Scores) -> dict[str, Any]:
    return {
        "rows": scores.rows_count,
        "mape_ratio": scores.mape_ratio,
        "median_ratio": scores.median_ratio,
        "p90_ratio": scores.p90_ratio,
        "bias_ratio": scores.bias_ratio,
        "spearman": scores.spearman,
    }


def fidelity_text(results: Sequence[FidelityResult], missing: Mapping[str, str], *, parts: bool) -> RenderableType:
    """Returns the same for people: every table with its naive baselines below it.

    Args:
        results: Evaluated tables.
        missing: Tables that could not be read, with why.
        parts: Show the kinds of rows of each table too.
    """
    table = Table("table", "rows", "median", "MAPE", "P90", "bias", "rank corr.", "target")
    notes: list[str] = []
    for result in results:
        target = result.target
        wanted = "–" if target is None else f"{target.metric.removesuffix('_ratio')} ≤ {format_ratio(target.limit)}"
        verdict = wanted if target is None else f"{wanted}: {'holds' if result.holds else 'missed'}"
        table.add_row(result.table, *_cells(result.scores), verdict)
        for name, scores in result.baselines.items():
            table.add_row(f"  baseline: {name}", *_cells(scores), "")
        for name, scores in result.parts.items() if parts else ():
            table.add_row(f"  {name}", *_cells(scores), "")
        notes += [f"{result.table}: {note}" for note in result.notes]
    notes += [f"{name}: not evaluated, {reason}" for name, reason in missing.items()]
    single = [_rows_table(result) for result in results if result.rows]
    return Group(table, *single, Text("\n".join(notes)))


def _rows_table(result: FidelityResult) -> RenderableType:
    """Returns the rows of a table that are read one by one, with what explains each."""
    table = Table("row", "quantity", "predicted", "published", "verdict", "configuration and explanation")
    for row in result.rows:
        ranges = (_range(row.predicted, row.quantity), _range(row.published, row.quantity))
        table.add_row(Text(row.name), row.quantity, *ranges, row.verdict.value, Text(row.note))
    return table


def _range(values: tuple[float, float] | None, quantity: str) -> str:
    """Returns gains as signed shares and amounts as numbers; ``a … b`` where they differ."""
    if values is None:
        return "–"
    shares = quantity in ("throughput", "peak memory")
    texts = [f"{value:+.1%}" if shares else f"{value:.2f}" for value in values]
    return texts[0] if texts[0] == texts[1] else " … ".join(texts)


def _cells(scores: Scores) -> tuple[str, ...]:
    correlation = "–" if scores.spearman is None else f"{scores.spearman:.3f}"
    ratios = (scores.median_ratio, scores.mape_ratio, scores.p90_ratio, scores.bias_ratio)
    return (str(scores.rows_count), *(format_ratio(ratio) for ratio in ratios), correlation)
