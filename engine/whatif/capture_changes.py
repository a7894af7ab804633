"""Switching optimizations on in a recorded job, one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.optimizations.interface import Applicability, Bound, CapturePlan, Verdict
from engine.optimizations.selection import Enabled
from engine.trace.job import Job


@dataclass(frozen=True, slots=True, eq=False)
class CaptureChanges:
    """A recorded job with optimizations switched on.

    Attributes:
        plan: With everything that applies, as expected.
        applied: What was switched on, in order.
        applicability: Of each that was asked for, by id, as things stood at its turn.
    """

    plan: CapturePlan
    applied: tuple[Enabled, ...]
    applicability: dict[str, Applicability]


def changed_capture(plan: CapturePlan, chosen: Sequence[Enabled]) -> CaptureChanges:
    """Returns a recorded job with ``chosen`` switched on in that order, without those that would change nothing."""
    applied: list[Enabled] = []
    applicability: dict[str, Applicability] = {}
    for item in chosen:
        verdict = item.optimization.check_capture(plan, item.parameters)
        applicability[item.id] = verdict
        if verdict.verdict is Verdict.APPLIES:
            plan = item.optimization.on_capture(plan, item.parameters, Bound.EXPECTED)
            applied.append(item)
    return CaptureChanges(plan, tuple(applied), applicability)


def at_bound(plan: CapturePlan, applied: Sequence[Enabled], bound: Bound) -> CapturePlan:
    """Returns a recorded job with what applies switched on, at one end of its range."""
    for item in applied:
        plan = item.optimization.on_capture(plan, item.parameters, bound)
    return plan


def recorded_environment(job: Job) -> Mapping[str, str]:
    """Returns the environment variables of all ranks; where ranks differ, the last one's."""
    merged: dict[str, str] = {}
    for entry in job.ranks:
        merged.update(entry.trace.metadata.environment)
    return merged
