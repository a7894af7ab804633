"""A quantization plan for people and for scripts (``cannscope.quantization/1``)."""

from math import isfinite
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_bytes
from engine.workloads.quantization.plan import QuantizationPlan

SCHEMA = "cannscope.quantization/1"
SHOWN = 30
"""So many of the most sensitive layers are listed for people; the document has all."""


def quantization_document(plan: QuantizationPlan, model: str) -> dict[str, Any]:
    """Returns the document of a plan; SQNR in dB, null where nothing is lost."""
    return {
        "schema": SCHEMA,
        "model": model,
        "bound_db": plan.bound_db,
        "granularity": plan.granularity.value,
        "stored_bytes": plan.stored_bytes,
        "planned_bytes": plan.planned_bytes,
        "layers": [
            {
                "name": layer.name,
                "shape": list(layer.shape),
                "stored_bits": layer.stored_bits,
                "sqnr_db": {str(bits): value if isfinite(value) else None for bits, value in layer.sqnr_db.items()},
                "planned_bits": layer.planned_bits,
                "sensitive": layer.is_sensitive,
            }
            for layer in plan.layers
        ],
    }


def quantization_text(plan: QuantizationPlan, model: str) -> RenderableType:
    """Returns a plan for people: the most sensitive layers first."""
    widths = sorted(plan.layers[0].sqnr_db)
    table = Table("layer", "shape", *(f"{bits} bits" for bits in widths), "plan", box=None)
    for column in table.columns[2:]:
        column.justify = "right"
    for layer in plan.layers[:SHOWN]:
        shape = " × ".join(str(size) for size in layer.shape)
        cells = (f"{layer.sqnr_db[bits]:.1f} dB" for bits in widths)
        planned = f"keep {layer.stored_bits}" if layer.is_sensitive else f"{layer.planned_bits}"
        table.add_row(layer.name, shape, *cells, planned)
    sensitive = sum(layer.is_sensitive for layer in plan.layers)
    more = len(plan.layers) - SHOWN
    return Group(
        Text(
            f"{model}: {len(plan.layers):,} matrices, {format_bytes(plan.stored_bytes)} → "
            f"{format_bytes(plan.planned_bytes)} at {plan.bound_db:g} dB or better; {sensitive:,} stay as they are",
            style="bold",
        ),
        Text(f"noise of rounding the weights, one scale per {plan.granularity.value}; the most sensitive layers first"),
        table,
        *([Text(f"… and {more:,} less sensitive ones: --json lists all")] if more > 0 else []),
    )
