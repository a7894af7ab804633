"""The questions: which optimizations apply to a job, and what do they make of it."""

from collections.abc import Sequence
from dataclasses import replace

from engine.core.errors import EngineError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.core.registry import Registry
from engine.optimizations.answers import unknown
from engine.optimizations.catalogue import in_order
from engine.optimizations.interface import Applicability, Optimization
from engine.optimizations.selection import Enabled
from engine.whatif.capture_what_if import capture_what_if
from engine.whatif.results import WhatIf
from engine.whatif.scenario_what_if import scenario_what_if
from engine.whatif.subject import CaptureSubject, Subject
from engine.whatif.trial import ordered


def what_if(
    subject: Subject,
    chosen: Sequence[Enabled],
    registry: Registry[Optimization],
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> WhatIf:
    """Returns a job beside the same with optimizations switched on.

    Args:
        subject: The job.
        chosen: What is switched on; applied in the order of the catalogue, whatever order they are given in.
        registry: All optimizations.
        progress: Told what is done.
        cancel: Looked at between and inside runs.

    Raises:
        ScenarioError: The job as it is cannot run.
        OperationCancelled: Cancelled.
    """
    in_turn = ordered(chosen, registry)
    if isinstance(subject, CaptureSubject):
        result = capture_what_if(subject, in_turn, progress, cancel)
    else:
        result = scenario_what_if(subject, in_turn, registry, progress, cancel)
    return replace(result, platform=subject.platform)


def applicability(
    subject: Subject, registry: Registry[Optimization], cancel: CancelToken = NEVER_CANCELLED
) -> dict[str, Applicability]:
    """Returns whether each optimization, with its defaults and by itself, does something to a job; by id, in order."""
    found = {}
    for item in in_order(registry):
        cancel.check()
        try:
            found[item.id] = _answer(subject, item)
        except EngineError as error:
            found[item.id] = unknown(str(error))
    return found


def _answer(subject: Subject, item: Optimization) -> Applicability:
    if isinstance(subject, CaptureSubject):
        return item.check_capture(subject.plan, item.defaults)
    return item.check_scenario(subject.scenario, item.defaults)
