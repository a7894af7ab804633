"""Profiler steps and where each one's time went, by the formats' own definitions."""

from dataclasses import dataclass, replace
from typing import Any

from engine.analyses.steps.launched_steps import LaunchedTotals, launched_totals
from engine.analyses.steps.profiler_steps import HostStep, host_steps
from engine.analyses.steps.recorded_steps import RecordedStep, recorded_steps
from engine.analyses.steps.step_sections import SectionTotals, section_totals
from engine.trace.trace import TimeRange, Trace
from engine.trace.tracks import TrackKind

_LAUNCH_FORMATS = frozenset(("kineto", "chrome"))
"""Formats without step times of their own: there a step owns what it launched."""

_VALUES = (
    "computing",
    "communication",
    "communication_not_overlapped",
    "overlapped",
    "free",
    "stage",
    "bubble",
    "preparing",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One profiler step; times in ns, None where the format does not define the value.

    Attributes:
        step: The profiler's number, or None for a capture without steps.
        range: What the step spans on the device (host where there is no device).
        computing_ns: |computing|.
        communication_ns: |communication|.
        communication_not_overlapped_ns: |communication − computing|.
        overlapped_ns: communication − not overlapped.
        free_ns: Neither computing nor communicating.
        stage_ns: Device span − bubble.
        bubble_ns: Receiving from another pipeline stage.
        preparing_ns: Step start on the host to the first device work.
        wait_ns: Communication spent waiting for members that had not arrived; None while unsplit.
        transfer_ns: Communication after the last member's arrival; None while unsplit.
        from_file: Names of the values (JSON keys of CLI.md, e.g. ``"preparing_us"``) that were taken from the
            capture's own table because they cannot be recomputed.
    """

    step: int | None
    range: TimeRange
    computing_ns: float | None
    communication_ns: float | None
    communication_not_overlapped_ns: float | None
    overlapped_ns: float | None
    free_ns: float | None
    stage_ns: float | None
    bubble_ns: float | None
    preparing_ns: float | None
    wait_ns: float | None = None
    transfer_ns: float | None = None
    from_file: tuple[str, ...] = ()


def steps(trace: Trace) -> tuple[Step, ...]:
    """Returns the steps of the trace in order; a capture without steps is one step without a number.

    Ascend captures follow their profiler's definitions (``step_sections``); what the capture's events do not hold is
    taken from its own table and named in ``from_file``. Kineto and Chrome traces define no step times: computing,
    communication and free are unions over what the step launched, ``preparing`` runs from the step's start on the host
    to its first device work, and ``stage`` and ``bubble`` stay None.
    """
    if trace.source.format in _LAUNCH_FORMATS:
        return _launched(trace)
    recorded = recorded_steps(trace)
    measured = [_from_sections(totals) for totals in section_totals(trace)]
    if not trace.events_of(TrackKind.DEVICE_STREAM).size:
        measured = [_communication_only(step) for step in measured]
    if not measured:
        measured = [replace(_blank(trace, host.number), range=host.range) for host in host_steps(trace)]
    if len(measured) == len(recorded) == 1 and measured[0].step is None:
        measured = [replace(measured[0], step=next(iter(recorded)))]
    known = {step.step for step in measured}
    measured += [_blank(trace, number) for number in recorded if number not in known]
    return tuple(_completed(step, recorded.get(step.step, {})) for step in measured or [_blank(trace, None)])


def _launched(trace: Trace) -> tuple[Step, ...]:
    totals = {entry.step: entry for entry in launched_totals(trace)}
    if None in totals:
        return (_from_launches(totals[None]),)
    hosts = host_steps(trace)
    if not hosts:
        return (_blank(trace, None),)
    return tuple(
        _from_launches(totals[step]) if step in totals else _without_work(trace, step, has_device=bool(totals))
        for step in hosts
    )


def _from_sections(totals: SectionTotals) -> Step:
    began_ns, first_ns = totals.window.host_start_ns, totals.first_work_ns
    return Step(
        step=totals.window.number,
        range=totals.range,
        computing_ns=totals.computing_ns,
        communication_ns=totals.communication_ns,
        communication_not_overlapped_ns=totals.communication_not_overlapped_ns,
        overlapped_ns=totals.communication_ns - totals.communication_not_overlapped_ns,
        free_ns=totals.free_ns,
        stage_ns=totals.range.duration_ns - totals.bubble_ns,
        bubble_ns=totals.bubble_ns,
        preparing_ns=None if began_ns is None or first_ns is None else first_ns - began_ns,
    )


def _from_launches(totals: LaunchedTotals) -> Step:
    return Step(
        step=totals.step.number if totals.step else None,
        range=totals.range,
        computing_ns=totals.computing_ns,
        communication_ns=totals.communication_ns,
        communication_not_overlapped_ns=totals.communication_not_overlapped_ns,
        overlapped_ns=totals.communication_ns - totals.communication_not_overlapped_ns,
        free_ns=totals.free_ns,
        stage_ns=None,
        bubble_ns=None,
        preparing_ns=totals.range.start_ns - totals.step.range.start_ns if totals.step else None,
    )


def _without_work(trace: Trace, step: HostStep, *, has_device: bool) -> Step:
    """Returns a step that launched nothing: no time of work on a recorded device, nothing known without one."""
    blank = replace(_blank(trace, step.number), range=step.range)
    if not has_device:
        return blank
    return replace(blank, computing_ns=0, communication_ns=0, communication_not_overlapped_ns=0, overlapped_ns=0)


def _communication_only(step: Step) -> Step:
    """Returns the step without what needs device streams: collectives alone say nothing about computing."""
    return Step(
        step=step.step,
        range=step.range,
        computing_ns=None,
        communication_ns=step.communication_ns,
        communication_not_overlapped_ns=None,
        overlapped_ns=None,
        free_ns=None,
        stage_ns=None,
        bubble_ns=step.bubble_ns,
        preparing_ns=None,
    )


def _blank(trace: Trace, number: int | None) -> Step:
    return Step(number, trace.time_range, None, None, None, None, None, None, None, None)


def _completed(step: Step, recorded: RecordedStep) -> Step:
    """Returns the step with the values it lacks taken from the capture's own table."""
    taken = [value for value in _VALUES if getattr(step, f"{value}_ns") is None and value in recorded]
    values: dict[str, Any] = {f"{value}_ns": recorded[value] for value in taken}
    return replace(step, **values, from_file=tuple(f"{value}_us" for value in taken))
