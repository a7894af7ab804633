"""A served run for people and for scripts (``cannscope.run/1``)."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.analyses.serving.latency import ServingAnalysis, Spread, serving_analysis
from engine.core.number_format import format_bytes, format_duration_ns
from engine.core.units import NS_PER_MS
from engine.report.simulation import SCHEMA, scenario_document
from engine.workloads.serving.simulate import ServingResult


def analysis_of(result: ServingResult) -> ServingAnalysis:
    """Returns what a served scenario came to, under its own limits."""
    return serving_analysis(result.run, result.settings.slo_ttft_ns, result.settings.slo_tpot_ns)


def served_document(result: ServingResult, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a served run; durations in ms where the key says so, sizes in bytes, shares as ratios."""
    analysis = analysis_of(result)
    tokens = analysis.output_tokens_per_s
    return {
        "schema": SCHEMA,
        "status": "done",
        "deadlock": None,
        "scenario": scenario_document(result.scenario),
        "step_time_us": [],
        "tokens_per_s": tokens,
        "tokens_per_s_per_device": tokens / result.scenario.device_count,
        "ms_per_token": _ms(analysis.tpot.mean_ns) if analysis.tpot else None,
        "ttft_ms": _spread(analysis.ttft),
        "tpot_ms": _spread(analysis.tpot),
        "e2e_ms": _spread(analysis.e2e),
        "memory": {
            "peak_allocated_bytes": result.peak_memory_bytes,
            "weight_bytes": result.shard.weight_bytes,
            "kv_bytes": result.run.kv_block_count * result.settings.block_tokens * result.shard.kv_bytes_per_token,
            "peak_kv_ratio": analysis.peak_kv_ratio,
        },
        "serving": {
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
            "iterations": len(result.run.iterations),
        },
        "communication_share_ratio": None,
        "bubble_ratio": None,
        "provenance": provenance,
    }


def _ms(value_ns: float) -> float:
    return value_ns / NS_PER_MS


def _spread(spread: Spread | None) -> dict[str, float] | None:
    if spread is None:
        return None
    return {
        "mean": _ms(spread.mean_ns),
        "p50": _ms(spread.p50_ns),
        "p90": _ms(spread.p90_ns),
        "p99": _ms(spread.p99_ns),
    }


def served_text(result: ServingResult) -> RenderableType:
    """Returns a served run for people."""
    analysis, scenario = analysis_of(result), result.scenario
    lost = analysis.requests - analysis.finished
    head = f"{scenario.name}: {analysis.finished:,} of {analysis.requests:,} requests answered"
    if lost:
        head += f" ({analysis.rejected:,} refused, {analysis.timed_out:,} timed out)"
    table = Table("", "mean", "p50", "p90", "p99", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for title, spread in (
        ("time to first token", analysis.ttft),
        ("time per token", analysis.tpot),
        ("whole request", analysis.e2e),
    ):
        if spread is not None:
            cells = (spread.mean_ns, spread.p50_ns, spread.p90_ns, spread.p99_ns)
            table.add_row(title, *(format_duration_ns(value) for value in cells))
    return Group(
        Text(head, style="bold"),
        Text(
            f"{analysis.output_tokens_per_s:,.0f} tokens/s, {analysis.requests_per_s:,.2f} requests/s, "
            f"{len(result.run.iterations):,} iterations, {_number(analysis.mean_batch)} sequences at once"
        ),
        Text(
            f"memory of a device: {format_bytes(result.shard.weight_bytes)} weights, "
            f"{format_bytes(result.peak_memory_bytes)} in use at most; keys and values "
            f"{_percent(analysis.peak_kv_ratio)} full, {analysis.preemptions:,} preemptions"
        ),
        Text(
            f"waiting for a place {_percent(analysis.queue_ratio)} of the time, prompts found in the cache "
            f"{_percent(analysis.prefix_hit_ratio)}, computed for nothing {_percent(analysis.padding_ratio)}, "
            f"device waits for the host {_percent(analysis.host_bound_ratio)}"
        ),
        table,
    )


def _percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.1%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
