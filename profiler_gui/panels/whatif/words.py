"""What a comparison of two runs says in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.number_format import format_bytes, format_duration_ns, format_ratio
from profiler_gui.session.run_tree import BASELINE, TriedRun
from profiler_gui.session.toggles import text_of
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from engine.whatif.results import Side, WhatIf

ALMOST_NONE_RATIO = 0.0005
"""Changes of less are written as none."""


def run_title(run: TriedRun) -> str:
    """Returns what a run is called: its number, and what was on."""
    return tr("as it is") if run.number == BASELINE else f"{run.number} · {text_of(run.chosen)}"


def headline(before: TriedRun, after: TriedRun) -> str:
    """Returns ``"812 → 741 ms (−7…−10 %), reserved −4.1 GiB, 12 % of the gain rests on inferred dependencies"``."""
    a, b = before.side, after.side
    if a is None or b is None:
        return ""
    parts = [_times(a, b) + _percents(before, after, a, b)]
    reserved = reserved_change_bytes(a, b)
    if reserved is not None:
        parts.append(tr("reserved {change}", change=signed_bytes(reserved)) if reserved else tr("reserved the same"))
    share = after.answer.inferred_share_ratio if after.answer and before.number == BASELINE else None
    is_recorded = after.answer is not None and after.answer.replay_error_ratio is not None
    if share is not None and is_recorded:  # a simulated job says itself what waits for what
        parts.append(tr("{share} of the gain rests on inferred dependencies", share=format_ratio(share)))
    return ", ".join(parts)


def doubts(before: TriedRun, after: TriedRun) -> str:
    """Returns how far the prediction can be trusted: the replay error, and why it is weak where it is."""
    answer = after.answer
    if answer is None:
        return ""
    parts = []
    if answer.replay_error_ratio is not None:
        error = signed_ratio(answer.replay_error_ratio)
        parts.append(tr("Replaying the capture unchanged gives its step time to {error}.", error=error))
    if answer.weak:
        parts.append(tr("A weak prediction: {reason}.", reason=answer.weak.rstrip(".")))
    if before.number != BASELINE:
        parts.append(tr("The range is known only against the run as it is."))
    return " ".join(parts)


def facts(before: TriedRun, after: TriedRun) -> tuple[tuple[str, str], ...]:
    """Returns (what, A → B) of everything else the two runs say."""
    a, b = before.side, after.side
    if a is None or b is None:
        return ()
    found = []
    if a.tokens_per_s is not None and b.tokens_per_s is not None:
        found.append((tr("Tokens per second"), f"{a.tokens_per_s:,.0f} → {b.tokens_per_s:,.0f}"))
    for title, one, other in (
        (tr("Transfer not hidden"), a.communication_share_ratio, b.communication_share_ratio),
        (tr("Waiting for other stages"), a.bubble_ratio, b.bubble_ratio),
    ):
        if one or other:
            found.append((title, f"{format_ratio(one)} → {format_ratio(other)}"))
    for title, sizes, others in (
        (tr("Allocated at most"), a.peak_allocated_bytes, b.peak_allocated_bytes),
        (tr("Reserved at most"), a.peak_reserved_bytes, b.peak_reserved_bytes),
        (tr("Stranded at the worst miss"), a.stranded_bytes, b.stranded_bytes),
    ):
        one_bytes, other_bytes = max(sizes.values(), default=None), max(others.values(), default=None)
        if one_bytes is not None and other_bytes is not None and one_bytes >= 0 and other_bytes >= 0:
            found.append((title, f"{format_bytes(one_bytes)} → {format_bytes(other_bytes)}"))
    equal = after.answer.devices_for_equal_throughput if after.answer and before.number == BASELINE else None
    if equal is not None:
        found.append((tr("Devices for the same throughput"), f"{a.device_count} → {equal}"))
    return tuple(found)


def reasons(answer: WhatIf | None) -> tuple[str, ...]:
    """Returns what was asked for with what came of it, then what the prediction rests on."""
    if answer is None:
        return ()
    told = [f"{key}: {item.verdict.value}, {item.reason}" for key, item in answer.applicability.items()]
    return (*told, *answer.assumptions, *answer.notes)


def reserved_change_bytes(a: Side, b: Side) -> int | None:
    """Returns how much more the fullest rank reserves; None where no memory is known."""
    one, other = a.worst_reserved_bytes, b.worst_reserved_bytes
    return None if one is None or other is None else other - one


def signed_bytes(size_bytes: float) -> str:
    """Returns ``"−4.1 GiB"``, ``"+512 MiB"``."""
    return f"{'−' if size_bytes < 0 else '+'}{format_bytes(abs(size_bytes))}"


def signed_duration(duration_ns: float) -> str:
    """Returns ``"−71.0 ms"``, ``"+3.2 ms"``."""
    return f"{'−' if duration_ns < 0 else '+'}{format_duration_ns(abs(duration_ns))}"


def signed_ratio(ratio: float) -> str:
    """Returns ``"−8.7 %"``, ``"+0.3 %"``."""
    return f"{'−' if ratio < 0 else '+'}{format_ratio(abs(ratio))}"


def _times(a: Side, b: Side) -> str:
    return f"{step_text(a)} → {step_text(b)}"


def step_text(side: Side) -> str:
    """Returns how long a step takes, or how the run ended where it did not reach its end."""
    if side.status.value == "done":
        return format_duration_ns(side.mean_step_ns)
    return {"oom": tr("out of memory"), "deadlock": tr("deadlock")}.get(side.status.value, side.status.value)


def _percents(before: TriedRun, after: TriedRun, a: Side, b: Side) -> str:
    """Returns the change in parentheses, a range where the engine gives one; "" where one of them did not end well."""
    base_ns = a.mean_step_ns
    if not base_ns or not b.mean_step_ns or b.status.value != "done" or a.status.value != "done":
        return ""
    change = b.mean_step_ns / base_ns - 1
    if abs(change) < ALMOST_NONE_RATIO:
        return tr(" (no change)")
    if before.number == BASELINE and after.answer is not None and after.number != BASELINE:
        gain = after.answer.gain
        ends = sorted((-gain.low_ns / base_ns, -gain.high_ns / base_ns), key=abs)
        if abs(ends[1] - ends[0]) >= ALMOST_NONE_RATIO:
            return f" ({signed_ratio(ends[0]).removesuffix(' %')}…{signed_ratio(ends[1])})"
    return f" ({signed_ratio(change)})"
