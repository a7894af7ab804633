"""What a service came to, the same for simulated runs and for traces that carry one."""

from typing import Any

from rich.table import Table

from engine.analyses.serving.latency import ServingAnalysis, Spread
from engine.core.number_format import format_duration_ns, format_ratio
from engine.core.units import NS_PER_MS


def latency_document(analysis: ServingAnalysis) -> dict[str, Any]:
    """Returns mean and percentiles of the three latencies, ms; None where there is nothing to measure."""
    return {
        "ttft_ms": spread_document(analysis.ttft),
        "tpot_ms": spread_document(analysis.tpot),
        "e2e_ms": spread_document(analysis.e2e),
    }


def service_document(analysis: ServingAnalysis) -> dict[str, Any]:
    """Returns counts, rates and shares of a service."""
    return {
        "requests": analysis.requests,
        "finished": analysis.finished,
        "rejected": analysis.rejected,
        "timed_out": analysis.timed_out,
        "requests_per_s": analysis.requests_per_s,
        "goodput_per_s": analysis.goodput_per_s,
        "queue_ratio": analysis.queue_ratio,
        "prefix_hit_ratio": analysis.prefix_hit_ratio,
        "padding_ratio": analysis.padding_ratio,
        "mean_batch": analysis.mean_batch,
        "preemptions": analysis.preemptions,
        "host_bound_ratio": analysis.host_bound_ratio,
    }


def spread_document(spread: Spread | None) -> dict[str, float] | None:
    """Returns mean and percentiles, ms; None of nothing."""
    if spread is None:
        return None
    values = {"mean": spread.mean_ns, "p50": spread.p50_ns, "p90": spread.p90_ns, "p99": spread.p99_ns}
    return {name: value / NS_PER_MS for name, value in values.items()}


def latency_table(analysis: ServingAnalysis, title: str | None = None) -> Table:
    """Returns the three latencies as a table for people."""
    table = Table("", "mean", "p50", "p90", "p99", box=None, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, spread in (
        ("time to first token", analysis.ttft),
        ("time per token", analysis.tpot),
        ("whole request", analysis.e2e),
    ):
        if spread is not None:
            cells = (spread.mean_ns, spread.p50_ns, spread.p90_ns, spread.p99_ns)
            table.add_row(name, *(format_duration_ns(value) for value in cells))
    return table


def served_rows(before: ServingAnalysis, after: ServingAnalysis) -> list[tuple[str, str, str]]:
    """Returns what changed between two services, for people: latencies, rates, shares."""
    rows: list[tuple[str, str, str]] = []
    for name, one, other in (
        ("time to first token", before.ttft, after.ttft),
        ("time per token", before.tpot, after.tpot),
        ("whole request", before.e2e, after.e2e),
    ):
        if one is not None and other is not None:
            rows.append((f"{name}, mean", format_duration_ns(one.mean_ns), format_duration_ns(other.mean_ns)))
            rows.append((f"{name}, p99", format_duration_ns(one.p99_ns), format_duration_ns(other.p99_ns)))
    rows.append(("requests/s", f"{before.requests_per_s:,.2f}", f"{after.requests_per_s:,.2f}"))
    if before.goodput_per_s is not None and after.goodput_per_s is not None:
        rows.append(("within the limits/s", f"{before.goodput_per_s:,.2f}", f"{after.goodput_per_s:,.2f}"))
    for name, share, changed in (
        ("waiting for a place", before.queue_ratio, after.queue_ratio),
        ("prompts found in the cache", before.prefix_hit_ratio, after.prefix_hit_ratio),
        ("computed for nothing", before.padding_ratio, after.padding_ratio),
        ("device waits for the host", before.host_bound_ratio, after.host_bound_ratio),
        ("keys and values full", before.peak_kv_ratio, after.peak_kv_ratio),
    ):
        if share or changed:
            rows.append((name, format_ratio(share), format_ratio(changed)))
    if before.preemptions or after.preemptions:
        rows.append(("preemptions", f"{before.preemptions:,}", f"{after.preemptions:,}"))
    return rows
