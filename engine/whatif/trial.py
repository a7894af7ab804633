"""One set of optimizations tried on a job: what applies, what is refused, what comes out; no parts and no range."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.core.registry import Registry
from engine.optimizations.catalogue import in_order
from engine.optimizations.interface import Applicability, Optimization
from engine.optimizations.selection import Enabled, Refusal, refusals
from engine.whatif.capture_changes import changed_capture
from engine.whatif.capture_side import capture_run, capture_side
from engine.whatif.results import Side
from engine.whatif.scenario_changes import changed
from engine.whatif.scenario_side import scenario_side
from engine.whatif.scenario_what_if import scenario_refusals
from engine.whatif.subject import CaptureSubject, ScenarioSubject, Subject


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What a set of optimizations makes of a job.

    Attributes:
        side: The job with what applies; as it is where nothing does, or where something is refused.
        applied: What was switched on, in order.
        applicability: Of each that was asked for, by id.
        refused: What cannot be.
    """

    side: Side
    applied: tuple[Enabled, ...]
    applicability: Mapping[str, Applicability]
    refused: tuple[Refusal, ...] = ()


def ordered(chosen: Sequence[Enabled], registry: Registry[Optimization]) -> list[Enabled]:
    """Returns what is switched on in the order it is applied."""
    order = [item.id for item in in_order(registry)]
    return sorted(chosen, key=lambda item: order.index(item.id))


def trial(
    subject: Subject,
    chosen: Sequence[Enabled],
    registry: Registry[Optimization],
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Trial:
    """Returns what ``chosen`` makes of a job; what cannot run is refused with the reason.

    Raises:
        ScenarioError: The job as it is cannot run.
        OperationCancelled: Cancelled.
    """
    if isinstance(subject, CaptureSubject):
        return _capture_trial(subject, ordered(chosen, registry), progress, cancel)
    return _scenario_trial(subject, ordered(chosen, registry), registry, progress, cancel)


def _scenario_trial(
    subject: ScenarioSubject,
    chosen: Sequence[Enabled],
    registry: Registry[Optimization],
    progress: Progress,
    cancel: CancelToken,
) -> Trial:
    baseline = subject.baseline(progress, cancel)
    changes = changed(subject.scenario, chosen)
    refused = scenario_refusals(subject.scenario, chosen, registry) or changes.refused
    if refused or not changes.applied:
        return Trial(baseline, (), changes.applicability, refused)
    try:
        side = scenario_side(changes.scenario, progress, cancel)
    except ScenarioError as error:
        return Trial(baseline, (), changes.applicability, (Refusal(changes.applied[-1].id, str(error)),))
    return Trial(side, changes.applied, changes.applicability)


def _capture_trial(
    subject: CaptureSubject, chosen: Sequence[Enabled], progress: Progress, cancel: CancelToken
) -> Trial:
    baseline = subject.baseline_run(progress, cancel)
    refused = refusals(chosen, subject.environment)
    changes = changed_capture(baseline.plan, chosen, cancel)
    if refused or not changes.applied:
        return Trial(subject.baseline(progress, cancel), (), changes.applicability, refused)
    run = capture_run(changes.plan, baseline, progress, cancel)
    return Trial(capture_side(run), changes.applied, changes.applicability)
