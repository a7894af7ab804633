"""Two runs side by side: the ``compare`` document and its text."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.analyses.comparison import Comparison
from engine.analyses.summary import JobSummary
from engine.core.number_format import format_bytes, format_duration_ns
from engine.core.units import ns_to_us
from engine.report.analysis_document import analysis_document
from engine.trace.job import Job

SHOWN_ROWS = 20


def comparison_document(comparison: Comparison, jobs: Sequence[Job], summaries: Sequence[JobSummary]) -> dict[str, Any]:
    """Returns the ``compare`` document of CLI.md; values that need a replay are None."""
    baseline, candidate = (analysis_document(job, item) for job, item in zip(jobs, summaries, strict=True))
    delta_ns = comparison.step_time_delta_ns
    return {
        "schema": "cannscope.comparison/1",
        "baseline": baseline,
        "candidate": candidate,
        "devices_for_equal_throughput": {"baseline": None, "candidate": None},
        "inferred_share_ratio": None,
        "speedup_ratio": comparison.speedup_ratio,
        "step_time_delta_us": None if delta_ns is None else ns_to_us(delta_ns),
        "peak_reserved_delta_bytes": comparison.peak_reserved_delta_bytes,
        "replay_error_ratio": None,
        "operators": [
            {
                "name": item.name,
                "baseline_us": ns_to_us(item.baseline_ns),
                "candidate_us": ns_to_us(item.candidate_ns),
                "delta_us": ns_to_us(item.delta_ns),
                "baseline_count": item.baseline_count,
                "candidate_count": item.candidate_count,
            }
            for item in comparison.operators
        ],
        "rank": {"baseline": comparison.rank, "candidate": comparison.candidate_rank},
        "steps": [
            {
                "position": item.position,
                "baseline_step": item.baseline_step,
                "candidate_step": item.candidate_step,
                "baseline_us": ns_to_us(item.baseline_ns),
                "candidate_us": ns_to_us(item.candidate_ns),
                "delta_us": ns_to_us(item.delta_ns),
            }
            for item in comparison.steps
        ],
    }


def comparison_text(comparison: Comparison) -> RenderableType:
    """Returns one sentence, the steps of both side by side, and the operators that changed most."""
    table = Table("operator", "baseline", "candidate", "change", "count", title="Operators")
    for item in comparison.operators[:SHOWN_ROWS]:
        table.add_row(
            Text(item.name[:70]),
            format_duration_ns(item.baseline_ns),
            format_duration_ns(item.candidate_ns),
            ("+" if item.delta_ns > 0 else "") + format_duration_ns(item.delta_ns),
            f"{item.baseline_count} → {item.candidate_count}",
        )
    parts: list[RenderableType] = [Text(_sentence(comparison), style="bold")]
    if len(comparison.steps) > 1:
        parts.append(_step_table(comparison))
    return Group(*parts, table)


def _step_table(comparison: Comparison) -> RenderableType:
    table = Table("step", "baseline", "candidate", "change", title="Steps, by position")
    for item in comparison.steps[:SHOWN_ROWS]:
        names = [str(step) if step is not None else "–" for step in (item.baseline_step, item.candidate_step)]
        table.add_row(
            names[0] if names[0] == names[1] else " / ".join(names),
            format_duration_ns(item.baseline_ns),
            format_duration_ns(item.candidate_ns),
            ("+" if item.delta_ns > 0 else "") + format_duration_ns(item.delta_ns),
        )
    return table


def _sentence(comparison: Comparison) -> str:
    parts = []
    if comparison.baseline_step_ns is not None and comparison.candidate_step_ns is not None:
        change = (comparison.candidate_step_ns - comparison.baseline_step_ns) / comparison.baseline_step_ns
        parts.append(
            f"Step {format_duration_ns(comparison.baseline_step_ns)} → "
            f"{format_duration_ns(comparison.candidate_step_ns)} ({change:+.1%})"
        )
    else:
        parts.append("No device work to compare on both sides")
    if comparison.peak_reserved_delta_bytes is not None:
        parts.append(f"peak reserved {format_bytes(comparison.peak_reserved_delta_bytes)} difference")
    return ", ".join(parts) + "."
