"""The profiler's steps as the host saw them, and which step each device task belongs to."""

import re
from dataclasses import dataclass

import numpy as np

from engine.analyses.launches import launch_events
from engine.analyses.name_search import names_holding
from engine.core.arrays import AnyArray, BoolArray, Int32Array
from engine.trace.strings import ABSENT
from engine.trace.trace import TimeRange, Trace
from engine.trace.tracks import TrackKind

_STEP_NAME = re.compile(r"^ProfilerStep\s*#\s*(\d+)")


@dataclass(frozen=True, slots=True)
class HostStep:
    """One ``ProfilerStep#N`` of the host.

    Attributes:
        number: N.
        range: From its start to its end on the host.
    """

    number: int
    range: TimeRange


def host_steps(trace: Trace) -> tuple[HostStep, ...]:
    """Returns the steps annotated on host threads, by start.

    Copies on the device's annotation rows begin later and are not steps; several host rows of one number that overlap
    (one per thread, or an operator and its annotation) are one step.
    """
    numbers = {}
    for name in names_holding(trace.strings, ("profilerstep",)).tolist():
        match = _STEP_NAME.match(trace.strings.text(name))
        if match is not None:
            numbers[name] = int(match[1])
    rows = trace.events_of(TrackKind.HOST_THREAD)
    rows = rows[np.isin(trace.events.name[rows], np.array(list(numbers), dtype=np.int32))]
    found: list[HostStep] = []
    # A capture has a handful of steps, each with one or two rows.
    for row in rows[np.argsort(trace.events.start_ns[rows], kind="stable")].tolist():
        if trace.category(row).startswith("gpu_"):
            continue
        number = numbers[int(trace.events.name[row])]
        span = TimeRange(int(trace.events.start_ns[row]), int(trace.events.end_ns[row]))
        twin = next((index for index, step in enumerate(found) if step.number == number and _meet(step, span)), None)
        if twin is None:
            found.append(HostStep(number, span))
        else:
            whole = TimeRange(found[twin].range.start_ns, max(found[twin].range.end_ns, span.end_ns))
            found[twin] = HostStep(number, whole)
    return tuple(found)


def steps_of_tasks(trace: Trace, rows: AnyArray, steps: tuple[HostStep, ...]) -> Int32Array:
    """Returns for each device task the index into ``steps`` of the step that launched it, int32, shape of ``rows``.

    A task whose launch was not recorded follows the last task before it on its stream, because a stream keeps its
    order; one before every launched task was launched before the capture and belongs to no step (−1). Where no launch
    at all is known, the step running on the host when the task starts is taken.
    """
    launch = launch_events(trace)[rows]
    launched = launch != ABSENT
    if not np.any(launched):
        return _step_at(trace.events.start_ns[rows], steps)
    result = np.full(len(rows), ABSENT, dtype=np.int32)
    result[launched] = _step_at(trace.events.start_ns[launch[launched]], steps)
    return _follow_stream(trace, rows, launched, result)


def _follow_stream(trace: Trace, rows: AnyArray, launched: BoolArray, step: Int32Array) -> Int32Array:
    """Fills tasks without a launch from the task before them (rows ascend: by track, then by start)."""
    position = np.where(launched, np.arange(len(rows)), -1)
    last = np.maximum.accumulate(position)
    track = trace.events.track[rows]
    same_stream = (last >= 0) & (track[np.maximum(last, 0)] == track)
    filled: Int32Array = np.where(same_stream, step[np.maximum(last, 0)], np.int32(ABSENT))
    return filled


def _step_at(moment_ns: AnyArray, steps: tuple[HostStep, ...]) -> Int32Array:
    """Returns the index of the latest begun step that has not ended at each moment, or −1."""
    start_ns = np.array([step.range.start_ns for step in steps], dtype=np.int64)
    end_ns = np.array([step.range.end_ns for step in steps], dtype=np.int64)
    index = np.searchsorted(start_ns, moment_ns, side="right") - 1
    inside = (index >= 0) & (moment_ns < end_ns[np.maximum(index, 0)])
    found: Int32Array = np.where(inside, index, ABSENT).astype(np.int32)
    return found


def _meet(step: HostStep, span: TimeRange) -> bool:
    return span.start_ns < step.range.end_ns
