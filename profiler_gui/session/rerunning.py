"""Reruns in the worker: what is asked for, what comes back, and how timelines are handed over.

The functions named ``…_in_worker`` run in the worker process. It keeps the capture or scenario it was asked about last,
with its baseline, so that only the first answer waits for these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler_gui.session.document import Document
from profiler_gui.session.toggles import Chosen, text_of

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from engine.core.progress import CancelToken, Progress
    from engine.optimizations.fitting import Platform
    from engine.optimizations.interface import Applicability
    from engine.trace import Job
    from engine.whatif.results import Side, WhatIf
    from profiler_gui.session.worker import JobContext

OPENING_SHARE = 0.2
"""Part of the progress bar that the first look at a subject takes."""
RERUN_SHARE = 0.8
"""Part after which timelines are written."""
_KEPT = "subject of reruns"
_KEPT_TIMELINE = "timeline of the subject as it is"


@dataclass(frozen=True, slots=True)
class SubjectPlace:
    """What is rerun, as another process finds it.

    Attributes:
        paths: A scenario file, or the files and directories of a capture.
        captures: The files and directories that are open: of a scenario those its run has written.
        key: Names what they held.
        cache_directory: Where traces already read are kept, and timelines are handed over.
    """

    paths: tuple[Path, ...]
    captures: tuple[Path, ...]
    key: str
    cache_directory: Path

    @property
    def is_scenario(self) -> bool:
        """Whether it is a simulated job."""
        return self.paths[0].suffix == ".toml"


def place_of(document: Document, cache_directory: Path) -> SubjectPlace:
    """Returns what a rerun of a document starts from: its scenario where that is known, else its captures."""
    captures = tuple(path.absolute() for path in document.paths)
    paths = (document.scenario.absolute(),) if document.scenario is not None else captures
    return SubjectPlace(paths, captures, document.key, cache_directory)


@dataclass(frozen=True, slots=True)
class RerunRequest:
    """A run to be tried.

    Attributes:
        place: What is rerun.
        chosen: What is on.
    """

    place: SubjectPlace
    chosen: Chosen


@dataclass(frozen=True, slots=True)
class Described:
    """What does something to the subject.

    Attributes:
        applicability: By id, at default parameters.
        environment: Environment variables of the recorded job, for conflicts.
        platform: What it runs on, for switches; None for all of them.
    """

    applicability: Mapping[str, Applicability]
    environment: Mapping[str, str]
    platform: Platform | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """A what-if without what cannot leave the worker.

    Attributes:
        chosen: What was on.
        answer: Its figures; ``enabled`` is empty and its sides record nothing.
    """

    chosen: Chosen
    answer: WhatIf


@dataclass(frozen=True, slots=True)
class StoredTimeline:
    """Traces in the cache.

    Attributes:
        entries: Where each rank's lies, by rank.
        label: What was on, "" for nothing.
    """

    entries: Mapping[int, Path]
    label: str


@dataclass(frozen=True, slots=True)
class TimelinesStored:
    """Both timelines of a rerun.

    Attributes:
        chosen: What was on.
        baseline: The run as it is.
        candidate: The run with ``chosen``.
    """

    chosen: Chosen
    baseline: StoredTimeline
    candidate: StoredTimeline


@dataclass(frozen=True, slots=True, eq=False)
class TimelinesMapped:
    """Both timelines, mapped into memory.

    Attributes:
        chosen: What was on.
        baseline: The run as it is; None where it cannot be read.
        candidate: The run with ``chosen``; None where it cannot be read.
    """

    chosen: Chosen
    baseline: Document | None
    candidate: Document | None


def describe_in_worker(context: JobContext, place: SubjectPlace) -> Described:
    """Returns what does something to a subject. Raises as ``open_subject``."""
    return _described(opened_subject(context, place))


def rerun_in_worker(context: JobContext, request: RerunRequest) -> TimelinesStored | None:
    """Reruns a subject, delivers what is known of it and the answer, then stores both timelines.

    Returns:
        Where the timelines are; None where there are none, as after a refusal.

    Raises:
        EngineError: The subject cannot be read or run.
        OperationCancelled: Cancelled.
    """
    from engine.core.progress import part_of
    from engine.optimizations.catalogue import optimization_registry
    from engine.optimizations.selection import enabled
    from engine.whatif.run import what_if

    is_new = _KEPT not in context.kept or context.kept[_KEPT][0] != request.place
    subject = opened_subject(context, request.place)
    if is_new:
        context.deliver(_described(subject))
    registry = optimization_registry()
    progress = part_of(context.progress, OPENING_SHARE if is_new else 0.0, RERUN_SHARE)
    answer = what_if(subject, enabled(request.chosen, registry), registry, progress, context.cancel)
    context.deliver(Answered(request.chosen, _portable(answer)))
    if answer.refused:
        return None
    writing = part_of(context.progress, RERUN_SHARE, 1.0)
    baseline = _stored_baseline(context, request, answer.baseline, part_of(writing, 0.0, 0.5))
    candidate = _stored(request, request.chosen, answer.candidate, part_of(writing, 0.5, 1.0), context.cancel)
    return TimelinesStored(request.chosen, baseline, candidate) if baseline.entries and candidate.entries else None


def mapped(stored: TimelinesStored) -> TimelinesMapped:
    """Returns stored timelines, their columns mapped into memory."""
    return TimelinesMapped(stored.chosen, _document(stored.baseline), _document(stored.candidate))


def opened_subject(context: JobContext, place: SubjectPlace) -> Any:
    """Returns the engine's subject at a place, opened once as long as no other is asked about."""
    from engine.core.progress import part_of
    from engine.formats import TraceCache
    from engine.whatif.subject import open_subject

    kept = context.kept.get(_KEPT)
    if kept is None or kept[0] != place:
        context.kept.pop(_KEPT, None)  # two captures at once may be too much for the machine
        opening = part_of(context.progress, 0.0, OPENING_SHARE)
        cache = TraceCache(place.cache_directory)
        kept = (place, open_subject(place.paths, None, opening, context.cancel, cache=cache))
        context.kept[_KEPT] = kept
    return kept[1]


def _described(subject: Any) -> Described:
    from engine.optimizations.catalogue import optimization_registry
    from engine.whatif.run import applicability

    found = applicability(subject, optimization_registry())
    return Described(dict(found), dict(subject.environment), subject.platform)


def _portable(answer: WhatIf) -> WhatIf:
    """Returns an answer that can be pickled."""
    return replace(
        answer,
        enabled=(),
        baseline=portable_side(answer.baseline),
        candidate=portable_side(answer.candidate),
        applicability=dict(answer.applicability),
    )


def portable_side(side: Side) -> Side:
    """Returns a side without what only the worker has: its timeline, and the whole run behind it."""
    return replace(side, record=recorded_elsewhere, run=None, service=None, operator_ns=dict(side.operator_ns))


def recorded_elsewhere(progress: Progress, cancel: CancelToken) -> Job:
    """Stands for the timeline of a side that has left the worker; the timeline comes by another way."""
    from engine.core.errors import MissingDataError

    del progress, cancel
    raise MissingDataError("a timeline", "it was recorded in the worker")


def _stored_baseline(context: JobContext, request: RerunRequest, side: Side, progress: Progress) -> StoredTimeline:
    """Stores the run as it is, once as long as no other subject is asked about."""
    kept = context.kept.get(_KEPT_TIMELINE)
    if kept is None or kept[0] != request.place or not all(path.is_dir() for path in kept[1].entries.values()):
        kept = (request.place, _stored(request, {}, side, progress, context.cancel))
        context.kept[_KEPT_TIMELINE] = kept
    timeline: StoredTimeline = kept[1]
    return timeline


def _stored(
    request: RerunRequest, chosen: Chosen, side: Side, progress: Progress, cancel: CancelToken
) -> StoredTimeline:
    """Stores the traces of a side; none where nothing ran."""
    from engine.formats import TraceCache

    label = text_of(chosen)
    if not len(side.step_ns):
        return StoredTimeline({}, label)
    cache = TraceCache(request.place.cache_directory)
    job = side.record(progress, cancel)
    entries = {}
    for entry in job.ranks:
        cancel.check()
        key = f"rerun {request.place.key} {request.place.paths} {label} {entry.rank}"
        entries[entry.rank] = cache.directory / hashlib.sha256(key.encode()).hexdigest()[:32]
        cache.store(entries[entry.rank], entry.trace)
    return StoredTimeline(entries, label)


def _document(stored: StoredTimeline) -> Document | None:
    from engine.formats import TraceCache
    from engine.trace import align

    traces = []
    for entry in stored.entries.values():
        trace = TraceCache(entry.parent).load(entry)
        if trace is None:
            return None
        traces.append(trace)
    return Document((), stored.label, align(stored.label, traces), None, 0)
