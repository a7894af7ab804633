"""A compiled ONNX model for people and for scripts (``cannscope.atc/1``)."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.workloads.onnx_models.estimate import AtcResult, GraphEstimate

SCHEMA = "cannscope.atc/1"


def atc_document(result: AtcResult) -> dict[str, Any]:
    """Returns the document of a compilation; ``before`` and ``after`` have one entry per batch size."""
    return {
        "schema": SCHEMA,
        "model": str(result.model),
        "device": result.device.id,
        "output": str(result.written) if result.written else None,
        "passes": [
            {"name": item.name, "matched": item.matched, "replaced": item.replaced, "kernel": item.kernel}
            for item in result.passes
        ],
        "before": [_numbers(item) for item in result.before],
        "after": [_numbers(item) for item in result.after],
        "unsupported": list(result.unsupported),
        "notices": list(result.notices),
    }


def _numbers(item: GraphEstimate) -> dict[str, Any]:
    return {
        "batch": item.batch,
        "operators": item.operators,
        "latency_ms": item.latency_ms,
        "qps": item.qps,
        "device_ms": item.device_ns / 1e6,
        "host_ms": item.host_ns / 1e6,
    }


def atc_text(result: AtcResult) -> RenderableType:
    """Returns a compilation for people."""
    table = Table("batch", "operators", "latency", "samples/s", "", box=None)
    for column in table.columns[1:4]:
        column.justify = "right"
    for before, after in zip(result.before, result.after, strict=True):
        batch = "as given" if before.batch is None else str(before.batch)
        table.add_row(
            batch, f"{before.operators:,}", f"{before.latency_ms:,.3f} ms", f"{before.qps:,.1f}", "one by one"
        )
        gain = after.qps / before.qps - 1 if before.qps else 0.0
        what = f"optimized ({gain:+.0%})"
        table.add_row("", f"{after.operators:,}", f"{after.latency_ms:,.3f} ms", f"{after.qps:,.1f}", what)
    passes = Table("pass", "matched", "replaced", "stands for", box=None)
    for item in result.passes:
        passes.add_row(item.name, f"{item.matched:,}", f"{item.replaced:,} nodes", item.kernel)
    lines = [Text(f"{result.model.name} on {result.device.title}: simulated", style="bold")]
    lines += [Text(notice) for notice in result.notices]
    parts: list[RenderableType] = [*lines, table]
    if result.passes:
        parts += [Text(), passes]
    if result.unsupported:
        parts.append(Text(f"priced by the bytes they move, unknown to the cost model: {', '.join(result.unsupported)}"))
    if result.written:
        parts.append(Text(f"optimized model: {result.written}"))
    return Group(*parts)
