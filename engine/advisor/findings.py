"""What a rule finds: a loss, the numbers that show it, and what could be done about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.analyses.fusion import Range3
from engine.optimizations.interface import ParameterValue, Switch
from engine.trace.trace import TimeRange
from engine.workloads.scenario import Scenario

HIGH_RATIO = 0.05
"""A loss of this share of the step is of high severity: the limits msprof-analyze's advisor colours by."""
MEDIUM_RATIO = 0.03
"""Of medium severity, likewise."""
WORTH_RATIO = 0.01
"""Losses below this share of the step are not worth a sentence: the tuning loop stops at the same gain; a choice."""


class Severity(StrEnum):
    """How much of the step a finding costs."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


def severity_of(share_ratio: float) -> Severity:
    """Returns the severity of a loss of ``share_ratio`` of the step."""
    if share_ratio >= HIGH_RATIO:
        return Severity.HIGH
    return Severity.MEDIUM if share_ratio >= MEDIUM_RATIO else Severity.LOW


class Category(StrEnum):
    """What part of a run a finding is about."""

    COMPUTE = "compute"
    FUSION = "fusion"
    MEMORY = "memory"
    COMMUNICATION = "communication"
    PIPELINE = "pipeline"
    HOST = "host"
    INPUT = "io"
    CONFIGURATION = "config"
    SERVING = "serving"


class Unit(StrEnum):
    """Unit of a piece of evidence."""

    NS = "ns"
    BYTES = "bytes"
    RATIO = "ratio"
    COUNT = "count"
    BYTES_PER_S = "bytes/s"
    BYTES_PER_STEP = "bytes/step"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number behind a finding.

    Attributes:
        metric: What was measured, for people.
        value: In ``unit``.
        unit: Of value and threshold.
        threshold: What it was compared with; None where it is told for itself.
        rank: Where it was measured; None for the whole job.
        range: Trace time of that rank it stands in; None for the whole capture.
        events: Event rows of that rank, the most telling first.
        how: How it was computed.
    """

    metric: str
    value: float
    unit: Unit
    threshold: float | None = None
    rank: int | None = None
    range: TimeRange | None = None
    events: tuple[int, ...] = ()
    how: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A gain reckoned without a rerun.

    Attributes:
        time_ns: Saved per step.
        memory_bytes: Saved of the peak reserved; None where memory is not touched.
        assumptions: What it rests on.
    """

    time_ns: Range3 | None
    memory_bytes: Range3 | None = None
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Toggle:
    """An optimization of the catalogue that could help.

    Attributes:
        optimization: Its id; one the catalogue does not have is passed over.
        alternatives: Parameter sets to try; the best one is recommended. ``({},)`` for the defaults.
        id: Of the recommendation; "" for the optimization's. Remedies of one id are one recommendation.
        title: Of the recommendation; "" for the catalogue's.
        estimate: Told where the job cannot be rerun with it.
        how_to_apply: What to set or write where the catalogue's switches are those of another vendor; () for them.
        only_if_needed: It is cruder than others: not tried once one of them cures what it is for.
    """

    optimization: str
    alternatives: tuple[Mapping[str, ParameterValue], ...] = ({},)
    id: str = ""
    title: str = ""
    estimate: Estimate | None = None
    how_to_apply: tuple[Switch, ...] = ()
    only_if_needed: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do that no optimization of the catalogue stands for.

    Attributes:
        id: Stable.
        title: What to do, in the imperative.
        how_to_apply: Exact switches or code.
        estimate: What it could win; None where that cannot be said.
        risk: What could go wrong.
        undo: How to take it back.
        verify: Which number to read again, and after how many steps.
        change: What it does to a simulated job, so that it can be rerun; None where only people can do it.
    """

    id: str
    title: str
    how_to_apply: tuple[Switch, ...]
    estimate: Estimate | None
    risk: str
    undo: str
    verify: str
    change: Callable[[Scenario], Scenario] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A loss, or something that will stop the run.

    Attributes:
        rule: Id of the rule.
        category: Part of the run.
        problem: One sentence.
        root_cause: Why, one sentence.
        cost_ns: Time per step it takes; None where it costs memory or safety rather than time.
        share_ratio: cost ÷ step; 0 without a cost.
        severity: By share, or HIGH for what stops the run.
        evidence: The deciding number first.
        remedies: What could be done, in the order tried.
        stops_run: Whether the run ends because of it.
        warnings: What makes the numbers less certain.
    """

    rule: str
    category: Category
    problem: str
    root_cause: str
    cost_ns: float | None
    share_ratio: float
    severity: Severity
    evidence: tuple[Evidence, ...]
    remedies: tuple[Toggle | Action, ...] = ()
    stops_run: bool = False
    warnings: tuple[str, ...] = field(default=())
