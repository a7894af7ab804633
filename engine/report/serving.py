"""A served run for people and for scripts (``cannscope.run/1``)."""

from math import isfinite
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from engine.analyses.serving.jitter import Jitter, LateRequest
from engine.analyses.serving.jitter_words import late_sentence
from engine.analyses.serving.latency import ServingAnalysis, serving_analysis
from engine.core.errors import MissingDataError
from engine.core.number_format import format_bytes
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.core.units import NS_PER_MS
from engine.report.serving_numbers import latency_document, latency_table, service_document
from engine.report.simulation import SCHEMA, scenario_document
from engine.workloads.serving.prevention import JitterReport, jitter_report
from engine.workloads.serving.simulate import ServingResult

_SHOWN_LATE = 5


def analysis_of(result: ServingResult) -> ServingAnalysis:
    """Returns what a served scenario came to, under its own limits."""
    return serving_analysis(result.run, result.settings.slo_ttft_ns, result.settings.slo_tpot_ns)


def report_of(
    result: ServingResult, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> JitterReport | None:
    """Returns who was late and what would have prevented it, None where nothing was answered."""
    try:
        return jitter_report(result, progress, cancel)
    except MissingDataError:
        return None


def served_document(
    result: ServingResult, provenance: dict[str, Any], report: JitterReport | None = None
) -> dict[str, Any]:
    """Returns the document of a served run; durations in ms where the key says so, sizes in bytes, shares as ratios.

    Args:
        result: The run.
        provenance: Versions and hashes.
        report: Who was late; left out where None.
    """
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
        **latency_document(analysis),
        "memory": {
            "peak_allocated_bytes": result.peak_memory_bytes,
            "weight_bytes": result.shard.weight_bytes,
            "kv_bytes": result.run.kv_block_count * result.settings.block_tokens * result.shard.kv_bytes_per_token,
            "peak_kv_ratio": analysis.peak_kv_ratio,
        },
        "serving": {
            **service_document(analysis),
            "iterations": len(result.run.iterations),
            "jitter": None if report is None else jitter_document(report),
        },
        "communication_share_ratio": None,
        "bubble_ratio": None,
        "provenance": provenance,
    }


def jitter_document(report: JitterReport) -> dict[str, Any]:
    """Returns late requests, their causes and what prevents them; durations in ms."""
    found = report.jitter
    return {
        "late_first_token": found.late_first,
        "late_between_tokens": found.late_between,
        "limits_ms": _limits_document(found),
        "causes": {cause.value: count for cause, count in found.causes.items()},
        "requests": [_late_document(item) for item in found.listed],
        "preventions": [
            {
                "cause": item.cause.value,
                "setting": item.setting,
                "before": item.before,
                "after": item.after,
                "waits": item.waits,
                "late_before": item.late_before,
                "late_after": item.late_after,
                "others_more": item.others_more,
                "unserved_after": item.unserved_after,
            }
            for item in report.preventions
        ],
        "unprevented": list(report.unprevented),
    }


def _limits_document(found: Jitter) -> dict[str, float | None]:
    limits = found.limits
    values = {"first_token": limits.first_token_ns, "gap": limits.gap_ns, "time_per_token": limits.time_per_token_ns}
    return {name: _ms(value) if value and isfinite(value) else None for name, value in values.items()}


def _late_document(late: LateRequest) -> dict[str, Any]:
    return {
        "request": late.request,
        "late": late.limit.value,
        "taken_ms": _ms(late.taken_ns),
        "start_ms": _ms(late.start_ns),
        "end_ms": _ms(late.end_ns),
        "cause": late.cause.value,
        "parts_ms": {cause.value: _ms(value) for cause, value in late.parts_ns.items()},
        "blamed_request": None if late.blamed < 0 else late.blamed,
        "blamed_prompt_tokens": late.blamed_tokens,
        "sentence": late_sentence(late),
    }


def late_lines(report: JitterReport) -> list[str]:
    """Returns who was late and why for people, one sentence per line; nobody late is one line as well."""
    found = report.jitter
    if not found.late:
        return ["late: nobody"]
    lines = [f"late: {found.late_first:,} first tokens, {found.late_between:,} answers that stood still"]
    lines += [f"  {count:,} because {cause.value}" for cause, count in found.causes.items()]
    # Many wait for the same thing: the latest of each is told.
    alike = {(item.limit, item.cause, item.blamed): item for item in reversed(found.listed)}
    lines += [f"  {late_sentence(item)}" for item in list(reversed(alike.values()))[:_SHOWN_LATE]]
    lines += [f"  would have prevented it: {item.text}" for item in report.preventions if item.prevents]
    lines += [f"  makes fewer late: {item.text}" for item in report.preventions if not item.prevents]
    return lines + [f"  {text}" for text in report.unprevented]


def _ms(value_ns: float) -> float:
    return value_ns / NS_PER_MS


def served_text(result: ServingResult, report: JitterReport | None = None) -> RenderableType:
    """Returns a served run for people, with who was late where that is known."""
    analysis, scenario = analysis_of(result), result.scenario
    lost = analysis.requests - analysis.finished
    head = f"{scenario.name}: {analysis.finished:,} of {analysis.requests:,} requests answered"
    if lost:
        head += f" ({analysis.rejected:,} refused, {analysis.timed_out:,} timed out)"
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
        latency_table(analysis),
        *(Text(line) for line in (late_lines(report) if report is not None else ())),
    )


def _percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.1%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
