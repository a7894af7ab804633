"""What the advisor says: recommendations, ranked, and what was checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from engine.advisor.examination import Examination
from engine.advisor.findings import Category, Finding, Severity
from engine.advisor.losses import Loss
from engine.advisor.path_shares import PathShares
from engine.analyses.fusion import Range3
from engine.optimizations.interface import Conflict, ParameterValue, Switch


class GainMethod(StrEnum):
    """How a gain was found."""

    RERUN = "rerun"
    ANALYTIC = "analytic"
    NOT_QUANTIFIABLE = "not quantifiable"


@dataclass(frozen=True, slots=True)
class PredictedGain:
    """What a recommendation wins per step; None where it cannot be said, never 0 instead.

    Attributes:
        time_ns: Saved per step, negative for a loss.
        time_ratio: The same as share of the step.
        memory_bytes: Saved of the worst rank's peak reserved, negative where more is reserved.
        method: How it was found.
        assumptions: What it rests on.
        weak: The rerun itself says that it is a weak prediction; why is among the assumptions.
    """

    time_ns: Range3 | None
    time_ratio: Range3 | None
    memory_bytes: Range3 | None
    method: GainMethod
    assumptions: tuple[str, ...]
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to change. The keys of CLI.md are its fields.

    Attributes:
        id: Stable: the optimization's id, or that of the action.
        title: What to do.
        category: Of the finding behind it.
        severity: Of the worst finding behind it.
        findings: What it is good for, the costliest first.
        loss: The part of the step it treats.
        optimization: As ``--enable`` takes it; None where nothing was rerun.
        needs: What was on with it, because it needs that; likewise.
        parameters: Of the optimization.
        gain: What it wins.
        how_to_apply: Exact switches, with versions and where they are documented.
        conflicts: What cannot be on with it.
        risk: Accuracy, memory, stability.
        undo: How to turn it off.
        verify: Which number to read again.
        simulator_only: Its name or mechanism exists only in a simulator; the switches are the nearest real things.
    """

    id: str
    title: str
    category: Category
    severity: Severity
    findings: tuple[Finding, ...]
    loss: Loss
    optimization: str | None
    needs: tuple[str, ...]
    parameters: Mapping[str, ParameterValue]
    gain: PredictedGain
    how_to_apply: tuple[Switch, ...]
    conflicts: tuple[Conflict, ...]
    risk: str
    undo: str
    verify: str
    simulator_only: bool = False

    @property
    def enabled(self) -> tuple[str, ...]:
        """Everything to switch on to try it, as ``--enable`` takes it; () where nothing can be."""
        return () if self.optimization is None else (*self.needs, self.optimization)

    @property
    def problem(self) -> str:
        """One sentence: the costliest finding's."""
        return self.findings[0].problem

    @property
    def root_cause(self) -> str:
        """Why, one sentence."""
        return self.findings[0].root_cause


@dataclass(frozen=True, slots=True)
class Passed:
    """An optimization that was considered and is not recommended.

    Attributes:
        id: Of the optimization.
        verdict: In a few words (``"already on"``, ``"no effect"``, ``"conflicts"``, ``"gains nothing"``).
        reason: One sentence.
    """

    id: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A rule the job lacks something for.

    Attributes:
        rule: Its id.
        reason: What is missing and what to do.
    """

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Combined:
    """The recommended set rerun together: overlapping gains never add up.

    Attributes:
        optimizations: What was on, as ``--enable`` takes it.
        gain: Of everything together.
        sum_ns: What the single gains would add up to, to show that they do not.
    """

    optimizations: tuple[str, ...]
    gain: PredictedGain
    sum_ns: float


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """Everything there is to say about a job.

    Attributes:
        examination: What was looked at.
        recommendations: The best first.
        findings: Everything rules found, with or without a remedy.
        checked_and_fine: Rules that found nothing.
        not_checked: Rules the job lacks something for.
        passed: Optimizations considered and not recommended.
        combined: None where fewer than two recommendations can be rerun.
        path: What the critical path of a replayed capture is made of; None where there is none.
        notes: What makes the predictions less certain, for people.
    """

    examination: Examination
    recommendations: tuple[Recommendation, ...]
    findings: tuple[Finding, ...]
    checked_and_fine: tuple[str, ...]
    not_checked: tuple[NotChecked, ...]
    passed: tuple[Passed, ...]
    combined: Combined | None
    path: PathShares | None = None
    notes: tuple[str, ...] = ()

    @property
    def unanswered(self) -> tuple[Finding, ...]:
        """Findings nothing that was tried helps against."""
        answered = {id(finding) for item in self.recommendations for finding in item.findings}
        return tuple(finding for finding in self.findings if id(finding) not in answered)
