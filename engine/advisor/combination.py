"""The recommended set rerun together: overlapping gains never add up."""

from collections.abc import Sequence

from engine.advisor.bottlenecks import LOSSY
from engine.advisor.examination import Examination
from engine.advisor.gains import Laboratory, rerun_gain
from engine.advisor.recommendations import Combined, GainMethod, Recommendation
from engine.core.errors import ScenarioError
from engine.core.progress import Progress, no_progress
from engine.optimizations.selection import Enabled, enabled_from_texts, refusals
from engine.workloads.results import RunStatus


def combined_gain(
    examination: Examination,
    laboratory: Laboratory,
    order: Sequence[Recommendation],
    progress: Progress = no_progress,
) -> Combined | None:
    """Returns what everything that was rerun and fits together wins; None where fewer than two do.

    Taken in the order of the recommendations, without what changes the numbers that are computed (fewer bits) and what
    only saves memory: those are decisions of their own. What conflicts with something before it is left out. Raises
    OperationCancelled.
    """
    if laboratory.subject is None:
        return None
    chosen: dict[str, str] = {}
    for item in order:
        if item.optimization is None or item.gain.method is not GainMethod.RERUN:
            continue
        identifier = item.optimization.partition(":")[0]
        if identifier in LOSSY or not _wins_time(item):
            continue
        texts = {**{needed: needed for needed in laboratory.needed(identifier)}, **chosen}
        tried = {**texts, identifier: item.optimization}
        if identifier not in chosen and not refusals(_items(laboratory, tried), examination.environment):
            chosen = tried
    if len(chosen) < 2:
        return None
    try:
        result = laboratory.rerun(_items(laboratory, chosen), progress)
    except ScenarioError:
        return None
    if result.refused or result.baseline.status is not RunStatus.DONE:
        return None
    gains = [item.gain.time_ns.expected for item in order if item.optimization in chosen.values() and item.gain.time_ns]
    return Combined(tuple(chosen.values()), rerun_gain(examination, result), sum(gains))


def _wins_time(item: Recommendation) -> bool:
    """Returns whether it makes the step shorter, or lets the job run at all; what only saves memory costs time."""
    stops = any(finding.stops_run for finding in item.findings)
    return stops or (item.gain.time_ns is not None and item.gain.time_ns.expected > 0)


def _items(laboratory: Laboratory, texts: dict[str, str]) -> tuple[Enabled, ...]:
    return enabled_from_texts(texts.values(), laboratory.optimizations)
