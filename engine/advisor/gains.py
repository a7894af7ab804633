"""Predicted gains: a rerun where the job can be rerun, what a rule reckoned where it cannot, nothing where neither."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.advisor.cures import is_cured
from engine.advisor.examination import Examination
from engine.advisor.findings import Estimate, Finding, Toggle
from engine.advisor.recommendations import GainMethod, PredictedGain
from engine.analyses.fusion import Range3
from engine.core.errors import ScenarioError
from engine.core.number_format import format_duration_ns
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.core.registry import Registry
from engine.optimizations.interface import Applicability, Optimization, ParameterValue, Verdict
from engine.optimizations.selection import Enabled, Refusal, enabled
from engine.whatif.results import Side
from engine.whatif.run import what_if
from engine.whatif.scenario_side import scenario_side
from engine.whatif.scenario_what_if import EXACT, saved_ns
from engine.whatif.subject import CaptureSubject, ScenarioSubject, Subject
from engine.whatif.trial import trial
from engine.workloads.results import RunStatus
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_checks import check_scenario


@dataclass(frozen=True, slots=True, eq=False)
class Rerun:
    """A job beside the same with optimizations switched on.

    Attributes:
        baseline: As it is.
        candidate: With what applies.
        gain_ns: Saved per step.
        applicability: Of each that was asked for, by id.
        refused: What cannot be; then nothing was rerun.
        assumptions: What the gain rests on.
        weak: Whether it is a weak prediction.
    """

    baseline: Side
    candidate: Side
    gain_ns: Range3
    applicability: Mapping[str, Applicability]
    refused: tuple[Refusal, ...]
    assumptions: tuple[str, ...]
    weak: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """An optimization tried on a job.

    Attributes:
        item: What was switched on.
        needed: What had to be on with it.
        result: The rerun.
    """

    item: Enabled
    needed: tuple[Enabled, ...]
    result: Rerun

    @property
    def chosen(self) -> tuple[Enabled, ...]:
        """Everything that was on."""
        return (*self.needed, self.item)

    @property
    def refusal(self) -> str | None:
        """Why it cannot be on, None where it can."""
        return self.result.refused[0].reason if self.result.refused else None

    @property
    def verdict(self) -> Verdict:
        """Whether it does something."""
        answer = self.result.applicability.get(self.item.id)
        return Verdict.UNKNOWN if answer is None else answer.verdict

    @property
    def reason(self) -> str:
        """Why, one sentence."""
        answer = self.result.applicability.get(self.item.id)
        return "" if answer is None else answer.reason

    @property
    def cures(self) -> bool:
        """Whether the job runs to its end with it and does not without."""
        ended = self.result.candidate.status is RunStatus.DONE
        return ended and self.result.baseline.status is not RunStatus.DONE


class Laboratory:
    """A job and everything that can be tried on it; the same choice is tried once.

    Args:
        subject: The job, None where it can only be looked at.
        optimizations: The catalogue.
        cancel: Looked at inside reruns.
    """

    def __init__(
        self,
        subject: Subject | None,
        optimizations: Registry[Optimization],
        cancel: CancelToken = NEVER_CANCELLED,
    ) -> None:
        self.subject = subject
        self.optimizations = optimizations
        self._cancel = cancel
        self._known: dict[tuple[str, ...], Rerun] = {}
        self._cures: dict[str, str] = {}

    def rerun(self, chosen: Sequence[Enabled], progress: Progress = no_progress) -> Rerun:
        """Returns the job with ``chosen``. Raises ScenarioError, OperationCancelled."""
        if self.subject is None:
            message = "there is nothing to rerun"
            raise AssertionError(message)
        key = tuple(sorted(item.text for item in chosen))
        if key not in self._known:
            run = _of_capture if isinstance(self.subject, CaptureSubject) else _of_scenario
            self._known[key] = run(self.subject, chosen, self.optimizations, progress, self._cancel)
        return self._known[key]

    def cure_of(self, findings: Sequence[Finding]) -> str:
        """Returns what cured all of these findings when it was tried, "" where nothing did."""
        found = {self._cures.get(finding.rule, "") for finding in findings}
        return "" if "" in found else next(iter(found), "")

    def note_cures(self, tried: Trial | None, findings: Sequence[Finding]) -> None:
        """Remembers which findings a trial is rid of."""
        if tried is None or tried.refusal is not None or tried.verdict is not Verdict.APPLIES:
            return
        for finding in findings:
            if is_cured(finding, tried.result.candidate):
                self._cures.setdefault(finding.rule, tried.item.id)

    def changed(
        self, change: Callable[[Scenario], Scenario], progress: Progress = no_progress
    ) -> tuple[Side, Side] | None:
        """Returns a simulated job and the same after a change; None for a capture, or where it cannot run so.

        Raises:
            OperationCancelled: Cancelled.
        """
        if not isinstance(self.subject, ScenarioSubject):
            return None
        baseline = self.subject.baseline(progress, self._cancel)
        try:
            scenario = change(self.subject.scenario)
            check_scenario(scenario)
            side = scenario_side(scenario, progress, self._cancel)
        except ScenarioError:
            return None
        return (baseline, side) if side.status is RunStatus.DONE else None

    def try_toggle(self, toggle: Toggle, progress: Progress = no_progress) -> Trial | None:
        """Returns the best of a toggle's alternatives: of those that apply the one that wins most.

        None where the catalogue does not have it or nothing can be rerun. Raises OperationCancelled.
        """
        if self.subject is None or toggle.optimization not in self.optimizations:
            return None
        trials = []
        for parameters in toggle.alternatives:
            self._cancel.check()
            trial = self._trial(toggle.optimization, parameters, progress)
            if trial is not None:
                trials.append(trial)
        return max(trials, key=_merit, default=None)

    def needed(self, identifier: str) -> tuple[str, ...]:
        """Returns what must be on with an optimization, and what that needs in turn."""
        found: list[str] = []
        pending = list(self.optimizations[identifier].needs)
        while pending:
            needed = pending.pop()
            if needed not in found and needed in self.optimizations:
                found.append(needed)
                pending += self.optimizations[needed].needs
        return tuple(found)

    def _trial(self, identifier: str, parameters: Mapping[str, ParameterValue], progress: Progress) -> Trial | None:
        item = self.optimizations[identifier]
        names = {parameter.name for parameter in item.parameters}
        if not set(parameters) <= names:
            return None
        chosen: dict[str, Mapping[str, ParameterValue]] = {needed: {} for needed in self.needed(identifier)}
        switched = enabled({**chosen, identifier: dict(parameters)}, self.optimizations)
        own = next(each for each in switched if each.id == identifier)
        others = tuple(each for each in switched if each.id != identifier)
        return Trial(own, others, self.rerun(switched, progress))


def _merit(trial: Trial) -> tuple[bool, bool, float]:
    return trial.refusal is None and trial.verdict is Verdict.APPLIES, trial.cures, trial.result.gain_ns.expected


def _of_scenario(
    subject: Subject,
    chosen: Sequence[Enabled],
    registry: Registry[Optimization],
    progress: Progress,
    cancel: CancelToken,
) -> Rerun:
    """Returns one run beside the baseline: a simulated job leaves nothing to chance, so the gain has no spread."""
    baseline = subject.baseline(progress, cancel)
    tried = trial(subject, chosen, registry, progress, cancel)
    saved = saved_ns(baseline, tried.side)
    return Rerun(baseline, tried.side, Range3(saved, saved, saved), tried.applicability, tried.refused, (EXACT,))


def _of_capture(
    subject: Subject,
    chosen: Sequence[Enabled],
    registry: Registry[Optimization],
    progress: Progress,
    cancel: CancelToken,
) -> Rerun:
    """Returns the replay with its range, and what makes the prediction less certain."""
    found = what_if(subject, chosen, registry, progress, cancel)
    told = [*found.assumptions, *found.notes]
    if found.replay_error_ratio is not None:
        told.append(f"replaying the unchanged capture errs by {found.replay_error_ratio:+.1%}")
    if found.inferred_share_ratio:
        told.append(f"{found.inferred_share_ratio:.0%} of the gain rests on inferred dependencies")
    if found.weak:
        told.append(f"weak prediction: {found.weak}")
    gain = Range3(found.gain.low_ns, found.gain.expected_ns, found.gain.high_ns)
    weak = found.weak is not None
    return Rerun(found.baseline, found.candidate, gain, found.applicability, found.refused, _distinct(told), weak)


def rerun_gain(examination: Examination, result: Rerun) -> PredictedGain:
    """Returns the gain of a rerun, as the advisor tells it."""
    if result.baseline.status is not RunStatus.DONE:
        # A job that did not run has no step time to win against.
        step = format_duration_ns(result.candidate.mean_step_ns)
        told = f"with it the job runs to its end: {step} per step"
        return PredictedGain(None, None, None, GainMethod.RERUN, (told, *result.assumptions))
    before, after = result.baseline.worst_reserved_bytes, result.candidate.worst_reserved_bytes
    memory = None
    if before is not None and after is not None and before != after:
        saved = float(before - after)
        memory = Range3(saved, saved, saved)
    # Recorded steps count with what lies between them; of a simulated run the gain is won of all its steps.
    ratio = (
        _ratio(examination, result.gain_ns)
        if examination.is_recorded
        else _of_step(result.gain_ns, result.baseline.mean_step_ns)
    )
    return PredictedGain(result.gain_ns, ratio, memory, GainMethod.RERUN, result.assumptions, result.weak)


def changed_gain(baseline: Side, candidate: Side) -> PredictedGain | None:
    """Returns the gain of a changed job at equal tokens, None where one of both has no throughput."""
    before, after = baseline.tokens_per_s, candidate.tokens_per_s
    if not before or not after:
        return None
    saved = baseline.mean_step_ns * (1 - before / after)
    time_ns = Range3(saved, saved, saved)
    told = ("per step of as many tokens as before", EXACT)
    return PredictedGain(time_ns, _of_step(time_ns, baseline.mean_step_ns), None, GainMethod.RERUN, told)


def estimated_gain(examination: Examination, estimate: Estimate | None, reason: str = "") -> PredictedGain:
    """Returns the gain a rule reckoned, or that it cannot be said.

    Args:
        examination: For the step's length.
        estimate: Of the rule.
        reason: Why there was no rerun.
    """
    why = (reason,) if reason else ()
    if estimate is None or (estimate.time_ns is None and estimate.memory_bytes is None):
        told = () if estimate is None else estimate.assumptions
        return PredictedGain(None, None, None, GainMethod.NOT_QUANTIFIABLE, _distinct((*told, *why)))
    ratio = None if estimate.time_ns is None else _ratio(examination, estimate.time_ns)
    assumptions = _distinct((*estimate.assumptions, *why))
    return PredictedGain(estimate.time_ns, ratio, estimate.memory_bytes, GainMethod.ANALYTIC, assumptions)


def _ratio(examination: Examination, time_ns: Range3) -> Range3 | None:
    """Returns a gain as share of the step, None where no step was recorded."""
    if examination.pace_rank is None:
        return None
    return _of_step(time_ns, examination.step_ns)


def _of_step(time_ns: Range3, step_ns: float) -> Range3 | None:
    """Returns a gain as share of the step it was won of, None where that has no length."""
    if not step_ns:
        return None
    return Range3(time_ns.low / step_ns, time_ns.expected / step_ns, time_ns.high / step_ns)


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
