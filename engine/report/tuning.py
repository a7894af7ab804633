"""The tuning loop for people and for scripts (``cannscope.tune/1``)."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.advisor.bottlenecks import LOSSY
from engine.advisor.tuning import Attempt, Round, total_speedup_ratio
from engine.core.number_format import format_duration_ns
from engine.core.units import NS_PER_US
from engine.whatif.results import Side

SCHEMA = "cannscope.tune/1"


def tuning_document(
    name: str, baseline: Side, rounds: Sequence[Round], rest: Sequence[Attempt], provenance: dict[str, Any]
) -> dict[str, Any]:
    """Returns the document of a tuning.

    Args:
        name: Of the job.
        baseline: As it was.
        rounds: What was kept.
        rest: What was tried after the last round, in vain.
        provenance: Versions and hashes.
    """
    return {
        "schema": SCHEMA,
        "name": name,
        "baseline": {"step_time_us": _step_us(baseline), "tokens_per_s_per_device": _per_device(baseline)},
        "rounds": [_round_document(item) for item in rounds],
        "total_speedup_ratio": total_speedup_ratio(rounds),
        "tried_in_vain": [_attempt_document(item) for item in rest],
        "provenance": provenance,
    }


def _round_document(item: Round) -> dict[str, Any]:
    return {
        "round": item.number,
        "bottleneck": item.bottleneck.loss.value,
        "bottleneck_share_ratio": item.bottleneck.share_ratio,
        "added": item.added,
        "enabled": list(item.enabled),
        "step_time_us": _step_us(item.side),
        "tokens_per_s_per_device": _per_device(item.side),
        "peak_reserved_bytes": item.side.worst_reserved_bytes,
        "gain_ratio": item.gain_ratio,
        "attempts": [_attempt_document(attempt) for attempt in item.attempts],
    }


def _attempt_document(item: Attempt) -> dict[str, Any]:
    return {"enable": item.text, "gain_ratio": item.gain_ratio, "reason": item.reason}


def _step_us(side: Side) -> float | None:
    return side.mean_step_ns / NS_PER_US or None


def _per_device(side: Side) -> float | None:
    return side.tokens_per_s / side.device_count if side.tokens_per_s else None


def round_line(item: Round) -> str:
    """Returns a round in one line, for a log that is read while the next one runs."""
    gain = f"{item.gain_ratio:+.1%}" if item.gain_ratio is not None else "it runs now"
    whole = "the step" if item.side.serving is None else "the requests' time"
    loss = f"{item.bottleneck.loss.value} ({item.bottleneck.share_ratio:.0%} of {whole})"
    return f"round {item.number}: {loss} → {item.added}: {gain}"


def tuning_text(
    name: str, baseline: Side, rounds: Sequence[Round], rest: Sequence[Attempt], *, lossy: bool
) -> RenderableType:
    """Returns the log of a tuning for people; ``lossy`` says whether what changes results was tried too."""
    unit = "step" if baseline.serving is None else "request"
    table = Table("round", "largest loss", "switched on", unit, "tokens/s per device", "gain", box=None)
    for column in (unit, "tokens/s per device", "gain"):
        next(item for item in table.columns if item.header == column).justify = "right"
    table.add_row("–", "", "as it is", *_figures(baseline), "")
    for item in rounds:
        gain = f"{item.gain_ratio:+.1%}" if item.gain_ratio is not None else "runs now"
        loss = f"{item.bottleneck.loss.value}, {item.bottleneck.share_ratio:.0%}"
        table.add_row(str(item.number), loss, Text(item.added, overflow="fold"), *_figures(item.side), gain)
    total = total_speedup_ratio(rounds)
    counted = f"{len(rounds)} round{'s' if len(rounds) > 1 else ''}"
    won = f"{total:.2f} × the throughput" if baseline.serving is None else f"requests answered {total:.2f} × as fast"
    headline = f"{name}: {counted}, {won}" if rounds else f"{name}: nothing gives 1 %"
    closing = [f"nothing more: {item.text}: {item.reason}" for item in rest]
    if not lossy:
        closing.append(f"not tried without --lossy, because they change what is computed: {', '.join(LOSSY)}")
    return Group(Text(headline, style="bold"), table, Text("\n".join(closing)))


def _figures(side: Side) -> tuple[str, str]:
    step = format_duration_ns(side.mean_step_ns) if side.mean_step_ns else side.status.value
    per_device = _per_device(side)
    return step, f"{per_device:,.0f}" if per_device is not None else "–"
