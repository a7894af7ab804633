"""Idle time of one cause on the rank that has most of it: what the rules about the host share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Evidence, Finding, Unit
from engine.advisor.rules.rule import at_best, loss
from engine.analyses.idle import IdleCause, IdleGap
from engine.core.number_format import format_duration_ns, format_ratio
from engine.trace.trace import TimeRange

_LISTED_GAPS = 12


@dataclass(frozen=True, slots=True)
class Idle:
    """Gaps of some causes on the rank that has most of them.

    Attributes:
        rank: Which.
        gaps: Inside its measured steps.
        cost_ns: Their time per step.
    """

    rank: int
    gaps: tuple[IdleGap, ...]
    cost_ns: float


def idle_finding(
    examination: Examination,
    cause: IdleCause,
    rule: str,
    category: Category,
    what: str,
    why: str,
    action: Action,
    *,
    wins_all: bool = False,
) -> Sequence[Finding]:
    """Returns the finding of one cause with one remedy, () where it is not worth a sentence.

    Args:
        examination: The job.
        cause: Of the gaps.
        rule: Its id.
        category: Part of the run.
        what: What the rank does, after "Rank 3" (``"waits for data"``).
        why: The root cause.
        action: What to do.
        wins_all: Whether the action takes such time out altogether at best, which then is its estimate.
    """
    idle = worst_idle(examination, cause)
    if idle is None:
        return ()
    return [
        loss(
            examination,
            rule,
            category,
            f"Rank {idle.rank} {what}: {format_duration_ns(idle.cost_ns)} of the step "
            f"({format_ratio(examination.share(idle.cost_ns))})",
            why,
            idle.cost_ns,
            idle_evidence(idle, cause.value.replace("_", " ")),
            (replace(action, estimate=at_best(idle.cost_ns)) if wins_all else action,),
        )
    ]


def worst_idle(examination: Examination, *causes: IdleCause) -> Idle | None:
    """Returns the gaps on the rank that has most, None where they are not worth a sentence."""
    best = None
    for entry in examination.with_kernels():
        window = examination.windows[entry.rank].range
        gaps = tuple(
            gap for gap in entry.idle if gap.cause in causes and window.start_ns <= gap.start_ns < window.end_ns
        )
        start_ns = np.array([gap.start_ns for gap in gaps], dtype=np.int64)
        length_ns = np.array([gap.end_ns - gap.start_ns for gap in gaps], dtype=np.int64)
        cost_ns = examination.per_step(entry.rank, start_ns, length_ns)
        if best is None or cost_ns > best.cost_ns:
            best = Idle(entry.rank, gaps, cost_ns)
    return best if best is not None and examination.share(best.cost_ns) >= WORTH_RATIO else None


def idle_evidence(idle: Idle, what: str) -> tuple[Evidence, ...]:
    """Returns time, number and longest of the gaps; ``what`` names the time."""
    longest = _longest_gaps(idle)
    first = longest[0]
    events = tuple(dict.fromkeys(gap.evidence for gap in longest if gap.evidence >= 0))
    return (
        Evidence(
            what,
            idle.cost_ns,
            Unit.NS,
            rank=idle.rank,
            range=TimeRange(first.start_ns, first.end_ns),
            events=events,
            how="device gaps of 20 µs and more with this cause, per step; the range is the longest one",
        ),
        Evidence("gaps", float(len(idle.gaps)), Unit.COUNT, rank=idle.rank, how="all recorded steps"),
        Evidence("longest gap", float(first.end_ns - first.start_ns), Unit.NS, rank=idle.rank),
    )


def longest_calls(examination: Examination, idle: Idle) -> str:
    """Returns the calls behind the longest gaps."""
    trace = examination.trace(idle.rank)
    names = dict.fromkeys(trace.name(gap.evidence) for gap in _longest_gaps(idle) if gap.evidence >= 0)
    return ", ".join(list(names)[:3])


def _longest_gaps(idle: Idle) -> list[IdleGap]:
    return sorted(idle.gaps, key=lambda gap: gap.start_ns - gap.end_ns)[:_LISTED_GAPS]
