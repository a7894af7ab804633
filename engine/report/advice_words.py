"""How gains and evidence of an advice read: the same words in every output."""

from engine.advisor.findings import Evidence, Unit
from engine.advisor.recommendations import GainMethod, PredictedGain, Recommendation
from engine.analyses.fusion import Range3
from engine.core.number_format import format_bytes, format_count, format_duration_ns, format_ratio


def gain_text(gain: PredictedGain) -> str:
    """Returns ``"53.9 … 65.5 … 79.6 ms per step (8.1 %), rerun"``, or that it is not quantifiable."""
    if gain.method is GainMethod.NOT_QUANTIFIABLE:
        return gain.method.value
    parts = []
    if gain.time_ns is not None and not (gain.memory_bytes is not None and gain.time_ns.high == gain.time_ns.low == 0):
        share = "" if gain.time_ratio is None else f" ({format_ratio(gain.time_ratio.expected)})"
        parts.append(f"{range_text(gain.time_ns)} per step{share}")
    if gain.memory_bytes is not None:
        expected = gain.memory_bytes.expected
        parts.append(f"{format_bytes(abs(expected))} {'less' if expected >= 0 else 'more'} reserved")
    if not parts:
        return f"{gain.assumptions[0]} ({gain.method.value})" if gain.assumptions else gain.method.value
    return f"{', '.join(parts)} ({gain.method.value}{', weak' if gain.weak else ''})"


def try_command(item: Recommendation) -> str:
    """Returns the command that reruns the job with a recommendation; "" where nothing can be switched on."""
    switches = " ".join(f"--enable {text}" for text in item.enabled)
    return f"cannscope whatif PATH {switches}" if switches else ""


def range_text(values: Range3) -> str:
    """Returns a range of durations as low … expected … high, or one number where all are equal."""
    low, expected, high = (format_duration_ns(value) for value in (values.low, values.expected, values.high))
    return expected if low == high else f"{low} … {expected} … {high}"


def evidence_text(item: Evidence) -> str:
    """Returns one line: what, how much, where, how."""
    where = "" if item.rank is None else f" [rank {item.rank}]"
    limit = "" if item.threshold is None else f" (threshold {value_text(item.threshold, item.unit)})"
    how = f": {item.how}" if item.how else ""
    return f"{item.metric} {value_text(item.value, item.unit)}{limit}{where}{how}"


def evidence_place(item: Evidence) -> str:
    """Returns where something was measured: rank, time and number of events."""
    parts = [] if item.rank is None else [f"rank {item.rank}"]
    if item.range is not None:
        parts.append(f"{format_duration_ns(item.range.start_ns)} + {format_duration_ns(item.range.duration_ns)}")
    if item.events:
        parts.append(f"events {', '.join(map(str, item.events[:3]))}{' …' if len(item.events) > 3 else ''}")
    return ", ".join(parts)


def value_text(value: float, unit: Unit) -> str:
    """Returns a value with its unit for people."""
    if unit is Unit.NS:
        return format_duration_ns(value)
    if unit is Unit.BYTES:
        return format_bytes(value)
    if unit is Unit.BYTES_PER_STEP:
        return f"{format_bytes(value)} per step"
    if unit is Unit.BYTES_PER_S:
        return f"{value / 1e9:,.1f} GB/s"
    if unit is Unit.RATIO:
        return format_ratio(value)
    if unit is Unit.STEP:
        return f"step {value:,.0f}"
    return format_count(round(value)) if value == round(value) else f"{value:,.2f}"
