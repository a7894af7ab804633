"""What a service came to in one sentence."""

from engine.analyses.serving.latency import ServingAnalysis
from engine.core.number_format import format_count, format_duration_ns, format_ratio


def service_sentence(analysis: ServingAnalysis) -> str:
    """Returns how many requests were answered and how fast, without full stop."""
    parts = [f"{format_count(analysis.finished)} of {format_count(analysis.requests)} requests answered"]
    if analysis.ttft is not None:
        middle, late = (format_duration_ns(value) for value in (analysis.ttft.p50_ns, analysis.ttft.p99_ns))
        parts.append(f"first token {middle} (p99 {late})")
    if analysis.tpot is not None:
        middle, late = (format_duration_ns(value) for value in (analysis.tpot.p50_ns, analysis.tpot.p99_ns))
        parts.append(f"then a token every {middle} (p99 {late})")
    if analysis.queue_ratio:
        parts.append(f"waiting for a place {format_ratio(analysis.queue_ratio)} of the time")
    return f"Service: {', '.join(parts)}"
