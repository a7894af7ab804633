"""Steps as stacked bars: computing, transfer, waiting (or communication where it is unsplit), idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.core.number_format import format_duration_ns, format_ratio
from profiler_gui.toolkit.bars import Bar, Part
from profiler_gui.toolkit.fills import COMPUTING, IDLE, OVERLAPPED, TRANSFER, UNSPLIT, WAIT, Fill, LegendEntry
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication import Collective
    from engine.analyses.steps import Step
    from engine.analyses.summary import JobSummary


def step_bars(summary: JobSummary, rank: int) -> tuple[Bar, ...]:
    """Returns one bar per step of a rank, in order; a step without device times has a bar without parts."""
    rank_steps = summary.rank(rank).steps
    return tuple(
        _bar(step_title(step, index, is_only=len(rank_steps) == 1), step_parts(step, inside))
        for index, (step, inside) in enumerate(zip(rank_steps, collectives_of_steps(summary, rank), strict=True))
    )


def collectives_of_steps(summary: JobSummary, rank: int) -> list[list[Collective]]:
    """Returns the collectives of every step of a rank."""
    from engine.analyses.step_ranges import positions_of_collectives

    rank_steps = summary.rank(rank).steps
    collectives = summary.communication.collectives.get(rank, ())
    inside: list[list[Collective]] = [[] for _ in rank_steps]
    for item, position in zip(collectives, positions_of_collectives(collectives, rank_steps).tolist(), strict=True):
        if position >= 0:
            inside[position].append(item)
    return inside


def step_title(step: Step, index: int, *, is_only: bool) -> str:
    """Returns what the step is called: its number, else its place; a capture without steps is whole."""
    if step.step is None and is_only:
        return tr("whole capture")
    return tr("step {number}", number=index if step.step is None else step.step)


def step_parts(step: Step, collectives: Sequence[Collective]) -> tuple[tuple[str, float], ...]:
    """Returns (id, ns) of the parts that add up to the step: what the capture does not define is left out.

    Communication is what computing does not cover. Where collectives overlap each other it is divided in the
    proportion of their exposed waits and transfers, as in the first sentence, so that the parts stay disjoint.
    """
    overlap_ns = step.overlapped_ns or 0.0
    exposed_ns = step.communication_not_overlapped_ns
    if exposed_ns is None:
        exposed_ns = max(0.0, (step.communication_ns or 0.0) - overlap_ns)
    parts = [("computing", max(0.0, (step.computing_ns or 0.0) - overlap_ns)), ("overlap", overlap_ns)]
    if step.wait_ns is None or not collectives:
        parts.append(("communication", exposed_ns))
    else:
        whole_ns = sum(item.exposed_ns for item in collectives)
        waits_ns = sum(item.exposed_wait_ns or 0 for item in collectives)
        wait_ns = min(exposed_ns, exposed_ns * waits_ns / whole_ns) if whole_ns else 0.0
        parts += [("transfer", exposed_ns - wait_ns), ("waiting", wait_ns)]
    parts.append(("idle", step.free_ns or 0.0))
    return tuple((part, ns) for part, ns in parts if ns > 0)


def fill_of(part: str) -> Fill:
    """Returns how a part of a step is drawn."""
    return {
        "computing": COMPUTING,
        "overlap": OVERLAPPED,
        "transfer": TRANSFER,
        "waiting": WAIT,
        "communication": UNSPLIT,
    }.get(part, IDLE)


def title_of(part: str) -> str:
    """Returns what a part of a step is called."""
    return {
        "computing": tr("computing"),
        "overlap": tr("computing and communicating"),
        "transfer": tr("transfer"),
        "waiting": tr("waiting"),
        "communication": tr("communication, unsplit"),
    }.get(part) or tr("idle")


def legend_of(bars: tuple[Bar, ...]) -> tuple[LegendEntry, ...]:
    """Returns the legend of what the bars hold, in the order of the parts."""
    present = {part.id for bar in bars for part in bar.parts}
    order = ("computing", "overlap", "transfer", "waiting", "communication", "idle")
    idle = tr("idle (neither computing nor communicating)")
    return tuple(
        LegendEntry(idle if part == "idle" else title_of(part), fill_of(part)) for part in order if part in present
    )


def _bar(title: str, parts: tuple[tuple[str, float], ...]) -> Bar:
    total_ns = sum(ns for _, ns in parts)
    return Bar(
        title,
        tuple(_part(part, ns, total_ns) for part, ns in parts),
        format_duration_ns(total_ns) if parts else tr("no device times"),
    )


def _part(part: str, ns: float, total_ns: float) -> Part:
    title, share = title_of(part), format_ratio(ns / total_ns)
    duration = format_duration_ns(ns)
    texts = (f"{title} {duration} ({share})", f"{title} {share}", share)
    return Part(part, ns, texts[0], texts, fill_of(part))
