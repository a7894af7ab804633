"""Advice and tuning in the worker of reruns: what comes back of them, and reports written there.

The functions named ``…_in_worker`` run in the worker process, on the subject it keeps for reruns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler_gui.session.rerunning import SubjectPlace, opened_subject, portable_side

if TYPE_CHECKING:  # the advisor is imported after the first paint
    from engine.advisor.recommendations import Advice, Combined, Recommendation
    from engine.advisor.tuning import Round
    from engine.whatif.results import Side
    from profiler_gui.session.worker import JobContext

EXAMINED_SHARE = 0.3
"""Part of the progress bar that looking at the job takes; the rest are reruns."""
_KEPT_ADVICE = "advice on the subject"


@dataclass(frozen=True, slots=True, eq=False)
class Advised:
    """An advice without the job it was given on.

    Attributes:
        recommendations: The best first.
        fine: Titles of rules that found nothing.
        not_checked: Titles of rules the job lacks something for, each with what is missing.
        passed: Titles of optimizations considered and not recommended, each with why.
        combined: The recommended set rerun together, None where fewer than two can be.
        notes: What makes the predictions less certain.
    """

    recommendations: tuple[Recommendation, ...]
    fine: tuple[str, ...]
    not_checked: tuple[str, ...]
    passed: tuple[str, ...]
    combined: Combined | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportWritten:
    """A report on the advice.

    Attributes:
        path: Where it is.
    """

    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class TuningBegun:
    """The job before the first round.

    Attributes:
        baseline: Its figures.
    """

    baseline: Side


@dataclass(frozen=True, slots=True, eq=False)
class TuningRound:
    """One round, as soon as it is found.

    Attributes:
        round: The engine's; its side records nothing.
    """

    round: Round


@dataclass(frozen=True, slots=True)
class TuningEnded:
    """Nothing gives enough any more, or as many rounds were made as asked for.

    Attributes:
        reasons: What was tried in vain at the end (as ``--enable`` takes it) → why it was not kept.
    """

    reasons: Mapping[str, str]


def advise_in_worker(context: JobContext, place: SubjectPlace, afresh: bool) -> Advised:
    """Returns the advice on a subject; every gain is a rerun.

    Args:
        context: Of the worker.
        place: Of the subject.
        afresh: Whether an advice given before is given up.

    Raises:
        EngineError: The subject cannot be read or run.
        OperationCancelled: Cancelled.
    """
    from engine.advisor.rules import rule_registry
    from engine.optimizations.catalogue import optimization_registry

    if afresh:
        context.kept.pop(_KEPT_ADVICE, None)
    advice = _advice(context, place)
    titles = {item.id: item.title for item in (*rule_registry(), *optimization_registry())}
    return Advised(
        recommendations=advice.recommendations,
        fine=tuple(titles.get(rule, rule) for rule in advice.checked_and_fine),
        not_checked=tuple(f"{titles.get(item.rule, item.rule)}: {item.reason}" for item in advice.not_checked),
        passed=tuple(f"{titles.get(item.id, item.id)}: {item.verdict}: {item.reason}" for item in advice.passed),
        combined=advice.combined,
        notes=advice.notes,
    )


def report_in_worker(context: JobContext, place: SubjectPlace, path: Path) -> ReportWritten:
    """Writes the advice on a subject to a file of the kind its name ends with.

    Raises:
        ExportError: It cannot be written, or no report is of that kind.
    """
    from engine.report.advice_export import check_advice_path, write_advice

    check_advice_path(path)
    write_advice(_advice(context, place), path)
    return ReportWritten(path)


def tune_in_worker(context: JobContext, place: SubjectPlace, rounds: int) -> TuningEnded:
    """Tunes a subject and delivers every round as soon as it is found. Raises as ``open_subject``."""
    from engine.advisor.tuning import tune
    from engine.optimizations.catalogue import optimization_registry

    subject = opened_subject(context, place)
    context.deliver(TuningBegun(portable_side(subject.baseline(context.progress, context.cancel))))
    turns = tune(subject, optimization_registry(), rounds, progress=context.progress, cancel=context.cancel)
    while True:
        try:
            found = next(turns)
        except StopIteration as end:
            return TuningEnded({attempt.text: attempt.reason for attempt in end.value})
        context.deliver(TuningRound(replace(found, side=portable_side(found.side))))


def _advice(context: JobContext, place: SubjectPlace) -> Advice:
    """Returns the advice, given once as long as no other subject is asked about."""
    from engine.advisor.advise import advise
    from engine.advisor.rules import rule_registry
    from engine.core.progress import part_of
    from engine.optimizations.catalogue import optimization_registry

    kept = context.kept.get(_KEPT_ADVICE)
    if kept is None or kept[0] != place:
        subject = opened_subject(context, place)
        examination = _examined(context, place, subject)
        trying = part_of(context.progress, EXAMINED_SHARE, 1.0)
        kept = (place, advise(examination, subject, rule_registry(), optimization_registry(), trying, context.cancel))
        context.kept[_KEPT_ADVICE] = kept
    advice: Advice = kept[1]
    return advice


def _examined(context: JobContext, place: SubjectPlace, subject: Any) -> Any:
    """Returns what rules look at: the captures that are open, so that evidence is found in them again."""
    from engine.advisor.examination import examine_job
    from engine.core.progress import part_of
    from engine.formats import TraceCache, open_job
    from engine.formats.readers import built_in_readers

    progress = part_of(context.progress, 0.0, EXAMINED_SHARE)
    if not place.is_scenario:
        return examine_job(subject.job, progress=progress, cancel=context.cancel)
    side = subject.baseline(part_of(progress, 0.0, 0.6), context.cancel)
    cache = TraceCache(place.cache_directory)
    job = open_job(place.captures, built_in_readers(), cache=cache, cancel=context.cancel)
    rest = part_of(progress, 0.6, 1.0)
    return examine_job(job, subject.scenario, side, subject.name, rest, context.cancel)
