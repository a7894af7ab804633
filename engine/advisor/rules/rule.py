"""What a rule is, and the few lines all of them share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.advisor.examination import Examination
from engine.advisor.findings import Action, Category, Estimate, Evidence, Finding, Severity, Toggle, severity_of
from engine.analyses.fusion import Range3


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that is looked for.

    Attributes:
        id: Stable, ``"family.what"``.
        title: What is checked, for people.
        check: Returns what it found, () where all is well. Raises MissingDataError where the job lacks what it needs:
            then it is listed as not checked, never as fine.
        ascend_only: Whether it speaks of what only Ascend devices have; other jobs are not looked at with it.
        of_services: Whether it looks at simulated services; all others look at training jobs and captures.
    """

    id: str
    title: str
    check: Callable[[Examination], Sequence[Finding]]
    ascend_only: bool = False
    of_services: bool = False


def at_best(cost_ns: float) -> Estimate:
    """Returns the gain of taking a stretch of exposed time out altogether: nothing at least, all of it at most.

    All of it is expected too, because such time is either there or not; what then limits the step is not known, which
    the low end stands for.
    """
    return Estimate(
        Range3(0.0, cost_ns, cost_ns),
        None,
        ("all of this time is won where it goes; low: something else then takes as long",),
    )


def loss(
    examination: Examination,
    rule: str,
    category: Category,
    problem: str,
    root_cause: str,
    cost_ns: float,
    evidence: Sequence[Evidence],
    remedies: Sequence[Toggle | Action] = (),
    warnings: Sequence[str] = (),
) -> Finding:
    """Returns a finding that costs time; its severity is its share of the step."""
    share = examination.share(cost_ns)
    return Finding(
        rule=rule,
        category=category,
        problem=problem,
        root_cause=root_cause,
        cost_ns=cost_ns,
        share_ratio=share,
        severity=severity_of(share),
        evidence=tuple(evidence),
        remedies=tuple(remedies),
        warnings=tuple(warnings),
    )


def danger(
    rule: str,
    category: Category,
    problem: str,
    root_cause: str,
    evidence: Sequence[Evidence],
    remedies: Sequence[Toggle | Action] = (),
    *,
    stops_run: bool = False,
    severity: Severity = Severity.HIGH,
) -> Finding:
    """Returns a finding that costs memory or safety rather than time."""
    return Finding(
        rule=rule,
        category=category,
        problem=problem,
        root_cause=root_cause,
        cost_ns=None,
        share_ratio=0.0,
        severity=severity,
        evidence=tuple(evidence),
        remedies=tuple(remedies),
        stops_run=stops_run,
    )
