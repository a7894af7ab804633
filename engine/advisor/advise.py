"""Advice on a job: rules find losses, remedies are rerun, what wins is recommended."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from engine.advisor.combination import combined_gain
from engine.advisor.examination import Examination, examine_job
from engine.advisor.findings import WORTH_RATIO, Action, Finding, Severity, Toggle
from engine.advisor.gains import Laboratory, Trial, changed_gain, estimated_gain, rerun_gain
from engine.advisor.losses import Loss, loss_of
from engine.advisor.path_shares import path_shares
from engine.advisor.ranking import ranked
from engine.advisor.recommendations import (
    Advice,
    GainMethod,
    NotChecked,
    Passed,
    PredictedGain,
    Recommendation,
)
from engine.advisor.rules import Rule
from engine.core.errors import MissingDataError
from engine.core.number_format import format_duration_ns
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.core.registry import Registry
from engine.optimizations.fitting import fitting
from engine.optimizations.interface import Optimization, Verdict
from engine.optimizations.selection import Enabled, refusals
from engine.trace.job import Job
from engine.whatif.run import applicability
from engine.whatif.subject import CaptureSubject, Subject
from engine.workloads.results import RunStatus

_UNANSWERED = (Verdict.NEEDS_TWIN, Verdict.UNKNOWN)


@dataclass(slots=True)
class _Remedy:
    """A remedy with everything it is good for."""

    remedy: Toggle | Action
    findings: list[Finding] = field(default_factory=list)


def advise(
    examination: Examination,
    subject: Subject | None,
    rules: Registry[Rule],
    optimizations: Registry[Optimization],
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
    *,
    laboratory: Laboratory | None = None,
) -> Advice:
    """Returns the advice on a job.

    Args:
        examination: The job with its analyses.
        subject: What can be rerun of it; None where gains can only be reckoned.
        rules: What to look for.
        optimizations: What can be switched on.
        progress: Told what is done.
        cancel: Looked at between rules and inside reruns.
        laboratory: Where the job is rerun; what was tried there is not run again. One of its own where left out.

    Raises:
        OperationCancelled: Cancelled.
    """
    findings, fine, not_checked = _checked(examination, rules, cancel)
    laboratory = laboratory or Laboratory(subject, optimizations, cancel)
    recommendations: list[Recommendation] = []
    passed: list[Passed] = []
    remedies = _remedies(findings)
    for done, item in enumerate(remedies):
        cancel.check()
        part = part_of(progress, done / len(remedies), (done + 1) / len(remedies))
        part(0.0, f"trying {item.remedy.optimization if isinstance(item.remedy, Toggle) else item.remedy.id}")
        answer = _judged(examination, laboratory, item, part)
        if isinstance(answer, Recommendation):
            recommendations.append(answer)
        else:
            passed.append(answer)
    passed += _already_on(laboratory, {item.id for item in passed}, cancel)
    order = ranked(recommendations)
    return Advice(
        examination=examination,
        recommendations=order,
        findings=tuple(findings),
        checked_and_fine=tuple(fine),
        not_checked=tuple(not_checked),
        passed=tuple(passed),
        combined=combined_gain(examination, laboratory, order),
        path=path_shares(subject),
    )


def examine(subject: Subject, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> Examination:
    """Returns what rules look at: a capture, or the profiled steps of a simulated job after its run.

    Args:
        subject: The job.
        progress: Told what is done.
        cancel: Looked at inside.

    Raises:
        ScenarioError: The simulated job cannot run.
        OperationCancelled: Cancelled.
    """
    if isinstance(subject, CaptureSubject):
        return examine_job(subject.job, progress=progress, cancel=cancel)
    side = subject.baseline(part_of(progress, 0.0, 0.6), cancel)
    if side.run is not None and not side.run.profiled.steps:
        # The run ended before a step that is profiled: what ended it is all there is to look at.
        return examine_job(Job("", ()), subject.scenario, side, subject.name, cancel=cancel)
    recorded = side.record(part_of(progress, 0.6, 0.8), cancel)
    return examine_job(recorded, subject.scenario, side, subject.name, part_of(progress, 0.8, 1.0), cancel)


def _checked(
    examination: Examination, rules: Registry[Rule], cancel: CancelToken
) -> tuple[list[Finding], list[str], list[NotChecked]]:
    findings: list[Finding] = []
    fine: list[str] = []
    not_checked: list[NotChecked] = []
    for rule in rules:
        cancel.check()
        if rule.of_services != examination.is_service or (rule.ascend_only and not examination.is_ascend):
            continue
        try:
            found = rule.check(examination)
        except MissingDataError as error:
            not_checked.append(NotChecked(rule.id, str(error)))
            continue
        findings += found
        if not found and examination.pace_rank is None:
            not_checked.append(NotChecked(rule.id, "no step was recorded"))
        elif not found:
            fine.append(rule.id)
    findings.sort(key=lambda item: (not item.stops_run, item.severity is not Severity.HIGH, -(item.cost_ns or 0.0)))
    return findings, fine, not_checked


def _remedies(findings: Sequence[Finding]) -> list[_Remedy]:
    """Returns each remedy once, with all findings it is good for; parameter sets of one optimization are joined."""
    found: dict[str, _Remedy] = {}
    for finding in findings:
        for remedy in finding.remedies:
            key = remedy.id or remedy.optimization if isinstance(remedy, Toggle) else remedy.id
            found.setdefault(key, _Remedy(remedy)).findings.append(finding)
    return list(found.values())


def _judged(
    examination: Examination, laboratory: Laboratory, item: _Remedy, progress: Progress
) -> Recommendation | Passed:
    remedy = item.remedy
    if isinstance(remedy, Action):
        return _action(examination, laboratory, remedy, item.findings, progress)
    if remedy.optimization not in laboratory.optimizations:
        if remedy.estimate is None:
            return Passed(remedy.optimization, "cannot be answered", "the catalogue does not have it")
        gain = estimated_gain(examination, remedy.estimate, "the catalogue does not have it, so it was not rerun")
        return _toggle(examination, remedy, None, None, item.findings, gain)
    optimization = laboratory.optimizations[remedy.optimization]
    if examination.is_recorded and optimization.simulator_only:
        return Passed(optimization.id, "simulator only", "no public documentation knows it: never advised on a capture")
    refused = _forbidden(examination, optimization)
    if refused:
        return Passed(optimization.id, "conflicts", refused)
    cure = laboratory.cure_of(item.findings)
    if remedy.only_if_needed and cure:
        return Passed(optimization.id, "not needed", f"{cure} cures it by itself")
    trial = laboratory.try_toggle(remedy, progress)
    laboratory.note_cures(trial, item.findings)
    return _tried(examination, remedy, optimization, trial, item.findings)


def _already_on(laboratory: Laboratory, told: set[str], cancel: CancelToken) -> list[Passed]:
    """Returns what the job runs with already, of all optimizations not told of yet: advice must not miss it."""
    if laboratory.subject is None:
        return []
    untold = Registry(item for item in laboratory.optimizations if item.id not in told)
    return [
        Passed(identifier, answer.verdict.value, answer.reason)
        for identifier, answer in applicability(laboratory.subject, untold, cancel).items()
        if answer.verdict is Verdict.ALREADY_ON
    ]


def _forbidden(examination: Examination, optimization: Optimization) -> str:
    """Returns why the capture's environment forbids an optimization, "" where it does not."""
    alone = replace(optimization, needs=())
    found = refusals([Enabled(alone, alone.defaults)], examination.environment)
    return found[0].reason if found else ""


def _tried(
    examination: Examination,
    remedy: Toggle,
    optimization: Optimization,
    trial: Trial | None,
    findings: Sequence[Finding],
) -> Recommendation | Passed:
    if trial is None and remedy.estimate is None:
        return Passed(optimization.id, "cannot be answered", "nothing of this capture can be rerun")
    if trial is None:
        gain = estimated_gain(examination, remedy.estimate, "it was not rerun")
        return _toggle(examination, remedy, optimization, None, findings, gain)
    if trial.refusal is not None:
        return Passed(optimization.id, "conflicts", trial.refusal)
    if trial.verdict in _UNANSWERED:
        if remedy.estimate is None:
            return Passed(optimization.id, trial.verdict.value, trial.reason)
        gain = estimated_gain(examination, remedy.estimate, trial.reason)
        return _toggle(examination, remedy, optimization, trial, findings, gain)
    if trial.verdict is not Verdict.APPLIES:
        return Passed(optimization.id, trial.verdict.value, trial.reason)
    gain = rerun_gain(examination, trial.result)
    if not fitting(remedy.how_to_apply or optimization.switches, examination.platform):
        return Passed(
            optimization.id, "no switch", "nothing public switches it on with this job's devices and framework"
        )
    if trial.result.baseline.status is not RunStatus.DONE and not trial.cures:
        ran = len(trial.result.candidate.step_ns)
        return Passed(optimization.id, "not enough", f"the job still ends after {ran} steps with it")
    if not _is_worth(examination, trial, gain, findings):
        won = "" if gain.time_ns is None else f": a rerun gives {format_duration_ns(gain.time_ns.expected)} per step"
        return Passed(optimization.id, "gains too little", f"{trial.reason}{won}")
    return _toggle(examination, remedy, optimization, trial, findings, gain)


def _is_worth(examination: Examination, trial: Trial, gain: PredictedGain, findings: Sequence[Finding]) -> bool:
    """Returns whether a rerun won anything: a hundredth of the step, memory where memory is the problem, or the run."""
    if trial.cures:
        return True
    if gain.time_ns is not None and examination.share(gain.time_ns.high) >= WORTH_RATIO and gain.time_ns.expected > 0:
        return True
    about_memory = any(finding.cost_ns is None for finding in findings)
    return about_memory and gain.memory_bytes is not None and gain.memory_bytes.expected > 0


def _toggle(
    examination: Examination,
    remedy: Toggle,
    optimization: Optimization | None,
    trial: Trial | None,
    findings: Sequence[Finding],
    gain: PredictedGain,
) -> Recommendation:
    worst = findings[0]
    text = trial.item.text if trial is not None else remedy.optimization
    switches = fitting(
        remedy.how_to_apply or (() if optimization is None else optimization.switches), examination.platform
    )
    return Recommendation(
        id=remedy.id or remedy.optimization,
        title=remedy.title or ("" if optimization is None else optimization.title),
        category=worst.category,
        severity=min((item.severity for item in findings), key=list(Severity).index),
        findings=tuple(findings),
        loss=_largest_loss(examination, findings),
        optimization=text if gain.method is GainMethod.RERUN else None,
        needs=() if trial is None else tuple(item.text for item in trial.needed),
        parameters={} if trial is None else dict(trial.item.parameters),
        gain=gain,
        how_to_apply=switches,
        conflicts=() if optimization is None else optimization.conflicts,
        risk="" if optimization is None else optimization.risk,
        undo="" if optimization is None else optimization.undo,
        verify="" if optimization is None else optimization.verify,
        simulator_only=optimization is not None and optimization.simulator_only,
    )


def _action(
    examination: Examination, laboratory: Laboratory, action: Action, findings: Sequence[Finding], progress: Progress
) -> Recommendation:
    worst = findings[0]
    gain = estimated_gain(examination, action.estimate)
    sides = None if action.change is None else laboratory.changed(action.change, progress)
    if sides is not None:
        gain = changed_gain(*sides) or gain
    return Recommendation(
        id=action.id,
        title=action.title,
        category=worst.category,
        severity=min((item.severity for item in findings), key=list(Severity).index),
        findings=tuple(findings),
        loss=_largest_loss(examination, findings),
        optimization=None,
        needs=(),
        parameters={},
        gain=gain,
        how_to_apply=action.how_to_apply,
        conflicts=(),
        risk=action.risk,
        undo=action.undo,
        verify=action.verify,
    )


def _largest_loss(examination: Examination, findings: Sequence[Finding]) -> Loss:
    return max((loss_of(examination, finding) for finding in findings), key=lambda item: item.cost_ns)
