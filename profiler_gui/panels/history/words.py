"""What benchmarks of the past say: whether a scenario got worse, when, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.number_format import format_bytes, format_ratio
from profiler_gui.item_models.serving_tables import change_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's workloads are imported after the first paint
    from engine.workloads.bench.history import HistoryEntry

WORSE_RATIO = 0.05
"""From which change against the run before a run is told as worse: the usual tolerance of the gate."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One of the three numbers of a benchmark.

    Attributes:
        id: Name of the number in ``Measurement``.
        title: English, shown through ``tr``.
        is_better_higher: Whether more is better.
    """

    id: str
    title: str
    is_better_higher: bool

    def value(self, entry: HistoryEntry) -> float | None:
        """Returns the number of a benchmark; None where it has none."""
        found = getattr(entry.measured, self.id)
        return None if found is None else float(found)

    def text(self, value: float) -> str:
        """Returns a number as people read it."""
        return format_bytes(round(value)) if self.id == "peak_memory_bytes" else f"{value:,.4g}"


QUANTITIES = (
    Quantity("tokens_per_s", "Tokens per second", True),
    Quantity("ms_per_token", "ms per token", False),
    Quantity("peak_memory_bytes", "Peak memory", False),
)


def names_of(entries: Sequence[HistoryEntry]) -> tuple[str, ...]:
    """Returns the scenarios of a history, the one measured last first."""
    return tuple(dict.fromkeys(entry.name for entry in reversed(entries)))


def worst_change(before: HistoryEntry, after: HistoryEntry) -> tuple[Quantity, float] | None:
    """Returns the number that got worst between two runs, and by what share of the former; None without any."""
    changes = []
    for quantity in QUANTITIES:
        was, now = quantity.value(before), quantity.value(after)
        if was and now is not None:
            ratio = now / was - 1
            changes.append((quantity, -ratio if quantity.is_better_higher else ratio))
    return max(changes, key=lambda item: item[1], default=None)


def history_sentence(entries: Sequence[HistoryEntry]) -> str:
    """Returns what one scenario's benchmarks, the oldest first, say: where it last got worse, or that it never did."""
    if not entries:
        return ""
    pairs = list(zip((None, *entries), entries, strict=False))
    for at in range(len(pairs) - 1, -1, -1):
        before, entry = pairs[at]
        worst = worst_change(before, entry) if before is not None else None
        is_worse = worst is not None and worst[1] >= WORSE_RATIO
        # A gate that failed before has failed again: when it failed first is what is looked for.
        if is_worse or (not entry.passed and (before is None or before.passed)):
            return _worse_sentence(before, entry, worst) + _since(entries[at + 1 :])
    return tr("{name}: {count} runs, none worse than the one before.", name=entries[0].name, count=len(entries))


def _since(later: Sequence[HistoryEntry]) -> str:
    """Returns what became of it, with a space in front; "" where nothing was run since."""
    if not later:
        return ""
    failed = sum(not entry.passed for entry in later)
    text = tr("Of {count} runs since then {failed} failed.", count=len(later), failed=failed)
    return f" {text}"


def _worse_sentence(before: HistoryEntry | None, entry: HistoryEntry, worst: tuple[Quantity, float] | None) -> str:
    when = entry.recorded_at.strftime("%Y-%m-%d %H:%M")
    label = f" ({entry.label})" if entry.label else ""
    if before is None or worst is None or worst[1] <= 0:
        text = tr("{name} failed its gate on {when}{label}.", name=entry.name, when=when, label=label)
    else:
        quantity, worse_ratio = worst
        was, now = quantity.value(before) or 0.0, quantity.value(entry) or 0.0
        text = tr(
            "{name} got worse on {when}{label}: {what} {before} → {after} ({change}).",
            name=entry.name,
            when=when,
            label=label,
            what=tr(quantity.title),
            before=quantity.text(was),
            after=quantity.text(now),
            change=change_text(-worse_ratio if quantity.is_better_higher else worse_ratio),
        )
    if entry.passed:
        return text
    if entry.change_ratio is None:
        return f"{text} {tr('The gate failed.')}"
    worse = format_ratio(entry.change_ratio)
    return f"{text} {tr('The gate failed: {change} worse than the baseline.', change=worse)}"


def entry_text(entry: HistoryEntry) -> str:
    """Returns what one run says, a line per fact."""
    lines = [f"{entry.name} {entry.label}".strip(), entry.recorded_at.strftime("%Y-%m-%d %H:%M:%S %Z")]
    for quantity in QUANTITIES:
        value = quantity.value(entry)
        if value is not None:
            lines.append(f"{tr(quantity.title)} {quantity.text(value)}")
    if entry.change_ratio is not None:
        lines.append(tr("worse than the baseline by {change}", change=format_ratio(entry.change_ratio)))
    lines.append(tr("gate passed") if entry.passed else tr("gate FAILED"))
    return "\n".join(lines)
