"""What stands behind a number of the first screen: what to select, and which pane shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler_gui.session.selection import (
    NOTHING,
    CollectiveSelection,
    IdleSelection,
    OperatorSelection,
    Selection,
    StepSelection,
)

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication import Collective
    from engine.analyses.summary import JobSummary


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where to go.

    Attributes:
        pane: Id of the pane.
        selection: What is selected there; NOTHING leaves the selection as it is.
        zooms: Whether the viewport goes to the selection.
    """

    pane: str
    selection: Selection = NOTHING
    zooms: bool = False


def evidence_of(summary: JobSummary, rank: int, part: str, step: int | None = None) -> Evidence:
    """Returns the evidence of a part of a rank's time, the largest single piece of it.

    Args:
        summary: The analyses.
        rank: Whose time.
        part: ``"computing"``, ``"waiting"``, ``"transfer"``, ``"communication"``, ``"overlap"``, ``"idle"`` or
            ``"step"``.
        step: Index of the only step to look at; None for all.
    """
    match part:
        case "waiting":
            return _collective(summary, rank, step, lambda item: item.wait_ns or 0)
        case "transfer":
            return _collective(summary, rank, step, lambda item: item.transfer_ns or 0)
        case "communication":
            return _collective(summary, rank, step, lambda item: item.exposed_ns)
        case "overlap":
            return _collective(summary, rank, step, lambda item: item.elapsed_ns - item.exposed_ns)
        case "idle":
            return _idle(summary, rank, step)
        case "computing" if step is None:
            operators = summary.rank(rank).operators
            return Evidence("timeline", OperatorSelection(rank, operators[0].type) if operators else NOTHING)
    return _step(summary, rank, step)


def _collective(summary: JobSummary, rank: int, step: int | None, size_ns: Callable[[Collective], int]) -> Evidence:
    collectives = summary.communication.collectives.get(rank, ())
    window = summary.rank(rank).steps[step].range if step is not None else None
    inside = [
        index
        for index, item in enumerate(collectives)
        if window is None or window.start_ns <= item.start_ns < window.end_ns
    ]
    if not inside:
        return Evidence("communication")
    largest = max(inside, key=lambda index: size_ns(collectives[index]))
    return Evidence("communication", CollectiveSelection(rank, largest))


def _idle(summary: JobSummary, rank: int, step: int | None) -> Evidence:
    gaps = summary.rank(rank).idle
    window = summary.rank(rank).steps[step].range if step is not None else None
    inside = [
        index for index, gap in enumerate(gaps) if window is None or window.start_ns <= gap.start_ns < window.end_ns
    ]
    if not inside:
        return _step(summary, rank, step)
    largest = max(inside, key=lambda index: gaps[index].end_ns - gaps[index].start_ns)
    return Evidence("timeline", IdleSelection(rank, largest), zooms=True)


def _step(summary: JobSummary, rank: int, step: int | None) -> Evidence:
    steps = summary.rank(rank).steps
    if step is None and len(steps) == 1:
        step = 0
    return Evidence("timeline") if step is None else Evidence("timeline", StepSelection(rank, step), zooms=True)
