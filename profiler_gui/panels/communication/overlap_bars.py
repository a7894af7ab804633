"""How much of each step's communication computing hides: computing only, both, exposed communication, free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.number_format import format_duration_ns, format_ratio
from profiler_gui.toolkit.bars import Bar, Part
from profiler_gui.toolkit.fills import COMPUTING, IDLE, OVERLAPPED, TRANSFER, Fill, LegendEntry
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.steps import Step

_FILLS = {"computing": COMPUTING, "overlapped": OVERLAPPED, "exposed": TRANSFER, "free": IDLE}


def overlap_bars(rank_steps: tuple[Step, ...], current: int | None) -> tuple[Bar, ...]:
    """Returns one bar per step, in order; steps of which the capture does not say enough have no parts."""
    return tuple(_bar(step, index, is_current=index == current) for index, step in enumerate(rank_steps))


def overlap_parts(step: Step) -> tuple[tuple[str, float], ...]:
    """Returns (id, ns) of the parts, which add up to the step; () where the capture does not define them."""
    overlapped_ns, exposed_ns = step.overlapped_ns, step.communication_not_overlapped_ns
    if step.computing_ns is None or overlapped_ns is None or exposed_ns is None:
        return ()
    parts = (
        ("computing", max(0.0, step.computing_ns - overlapped_ns)),
        ("overlapped", overlapped_ns),
        ("exposed", exposed_ns),
        ("free", step.free_ns or 0.0),
    )
    return tuple((part, ns) for part, ns in parts if ns > 0)


def legend() -> tuple[LegendEntry, ...]:
    """Returns what the fills stand for."""
    return tuple(LegendEntry(_title(part), fill) for part, fill in _FILLS.items())


def _title(part: str) -> str:
    return {
        "computing": tr("computing only"),
        "overlapped": tr("overlapped"),
        "exposed": tr("exposed communication"),
    }.get(part) or tr("free")


def _bar(step: Step, index: int, *, is_current: bool) -> Bar:
    parts = overlap_parts(step)
    total_ns = sum(ns for _, ns in parts)
    title = tr("step {number}", number=index if step.step is None else step.step)
    value = format_duration_ns(total_ns) if parts else tr("no device times")
    return Bar(title, tuple(_part(part, ns, total_ns, _FILLS[part]) for part, ns in parts), value, is_current)


def _part(part: str, ns: float, total_ns: float, fill: Fill) -> Part:
    share = format_ratio(ns / total_ns)
    text = f"{_title(part)} {format_duration_ns(ns)} ({share})"
    return Part(part, ns, text, (text, f"{_title(part)} {share}", share), fill)
