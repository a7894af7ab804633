"""Switching optimizations on in a recorded job, one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.optimizations.interface import Applicability, Bound, CapturePlan, Verdict
from engine.optimizations.selection import Enabled
from engine.trace.job import Job


@dataclass(frozen=True, slots=True, eq=False)
class CaptureChanges:
    """A recorded job with optimizations switched on.

    Attributes:
        prefixes: Without anything, then after each of ``applied``; the last one has everything that applies.
        applied: What was switched on, in order.
        applicability: Of each that was asked for, by id, as things stood at its turn.
    """

    prefixes: tuple[CapturePlan, ...]
    applied: tuple[Enabled, ...]
    applicability: dict[str, Applicability]

    @property
    def plan(self) -> CapturePlan:
        """With everything that applies, as expected."""
        return self.prefixes[-1]


def changed_capture(
    plan: CapturePlan, chosen: Sequence[Enabled], cancel: CancelToken = NEVER_CANCELLED
) -> CaptureChanges:
    """Returns a recorded job with ``chosen`` switched on in that order, without those that would change nothing.

    Raises:
        OperationCancelled: Cancelled.
    """
    prefixes = [plan]
    applied: list[Enabled] = []
    applicability: dict[str, Applicability] = {}
    for item in chosen:
        cancel.check()
        verdict = item.optimization.check_capture(prefixes[-1], item.parameters)
        applicability[item.id] = verdict
        if verdict.verdict is Verdict.APPLIES:
            cancel.check()
            prefixes.append(item.optimization.on_capture(prefixes[-1], item.parameters, Bound.EXPECTED))
            applied.append(item)
    return CaptureChanges(tuple(prefixes), tuple(applied), applicability)


def at_bound(plan: CapturePlan, applied: Sequence[Enabled], bound: Bound) -> CapturePlan:
    """Returns a recorded job with what applies switched on, at one end of its range."""
    for item in applied:
        plan = item.optimization.on_capture(plan, item.parameters, bound)
    return plan


def recorded_environment(job: Job) -> Mapping[str, str]:
    """Returns the environment variables that ranks had set; where they differ, the lowest one's."""
    merged: dict[str, str] = {}
    for entry in job.ranks:
        for name, value in entry.trace.metadata.environment.items():
            if value.strip():
                merged.setdefault(name, value)
    return merged
