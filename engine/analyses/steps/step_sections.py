"""Step times as Ascend's profiler defines them: whole sections, counted in the step where they start.

The sections are those of the overlap lanes, recomputed from the device tasks: the unions of computing and of
communication, communication without computing, and what is left between the first and the last of them. Section 3 of
the file reference and the profiler's ``_trace_step_time_parser`` are the source of the definitions.
"""

import itertools
import re
from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity, activities
from engine.analyses.device import device_work
from engine.analyses.name_search import names_holding
from engine.analyses.steps.profiler_steps import HostStep, host_steps, steps_of_tasks
from engine.core.arrays import Int64Array, UInt8Array
from engine.trace.intervals import EMPTY, Intervals, difference, join, single, union
from engine.trace.strings import ABSENT
from engine.trace.trace import TimeRange, Trace
from engine.trace.tracks import TrackKind

_RECEIVE = re.compile(r"^hcom_receive", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StepWindow:
    """Where sections are counted as a step's.

    Attributes:
        number: The profiler's, or None for a capture without steps.
        range: First task of the step … the later of its last task and the step's end on the host.
        host_start_ns: Start on the host, or None where there are no host rows.
    """

    number: int | None
    range: TimeRange
    host_start_ns: int | None


@dataclass(frozen=True, slots=True)
class SectionTotals:
    """Sums over one step's sections, ns; ``range`` covers them."""

    window: StepWindow
    range: TimeRange
    computing_ns: int
    communication_ns: int
    communication_not_overlapped_ns: int
    free_ns: int
    bubble_ns: int
    first_work_ns: int | None


def section_totals(trace: Trace) -> tuple[SectionTotals, ...]:
    """Returns the sums of every step, in order; nothing where the trace has no device work."""
    kinds = activities(trace)
    work = device_work(trace, kinds)
    working = join(work.computing, work.communication)
    if len(working) == 0:
        return ()
    observed = _observed(trace, working)
    windows = _windows(trace, kinds, observed)
    free = difference(single(observed.start_ns, observed.end_ns), working)
    exposed = difference(work.communication, work.computing)
    kinds_of_sections = (work.computing, work.communication, exposed, free, _receives(trace, kinds))
    counted = [_by_window(sections, windows) for sections in kinds_of_sections]
    return tuple(_totals(window, *sections) for window, *sections in zip(windows, *counted, strict=True))


def _totals(
    window: StepWindow,
    computing: Intervals,
    communication: Intervals,
    exposed: Intervals,
    free: Intervals,
    receives: Intervals,
) -> SectionTotals:
    start_ns = np.concatenate([part.start_ns for part in (computing, communication, free)])
    end_ns = np.concatenate([part.end_ns for part in (computing, communication, free)])
    first_work = np.concatenate((computing.start_ns[:1], communication.start_ns[:1]))
    covered = TimeRange(int(start_ns.min()), int(end_ns.max())) if len(start_ns) else window.range
    return SectionTotals(
        window=window,
        range=covered,
        computing_ns=computing.total_ns,
        communication_ns=communication.total_ns,
        communication_not_overlapped_ns=exposed.total_ns,
        free_ns=free.total_ns,
        bubble_ns=receives.total_ns,
        first_work_ns=int(first_work.min()) if len(first_work) else None,
    )


def _by_window(sections: Intervals, windows: tuple[StepWindow, ...]) -> list[Intervals]:
    """Returns for each window (by start) the sections that start in it and in no earlier one.

    Windows may overlap where streams of two steps do. The first window that ends after a section's start is the only
    candidate: it holds the start, or it and all later ones begin behind it.
    """
    begins = np.array([window.range.start_ns for window in windows], dtype=np.int64)
    reach = np.maximum.accumulate(np.array([window.range.end_ns for window in windows], dtype=np.int64))
    candidate = np.searchsorted(reach, sections.start_ns, side="right")
    held = candidate < len(windows)
    held &= sections.start_ns >= begins[np.minimum(candidate, len(windows) - 1)]
    start_ns, end_ns, index = sections.start_ns[held], sections.end_ns[held], candidate[held]
    bounds = np.searchsorted(index, np.arange(len(windows) + 1))
    return [Intervals(start_ns[low:high], end_ns[low:high]) for low, high in itertools.pairwise(bounds)]


def _observed(trace: Trace, working: Intervals) -> TimeRange:
    """Returns the range Free is taken of: the device work, widened by the profiler's own Free lane.

    Which tasks before the first kernel open a Free section depends on the profiler's release (CANN 8.0 ignores a
    leading copy, later ones do not), and only its lane tells.
    """
    low_ns, high_ns = int(working.start_ns[0]), int(working.end_ns[-1])
    rows = trace.events_of(TrackKind.OVERLAP)
    rows = rows[trace.events.name[rows] == trace.strings.id_of("Free")]
    if len(rows):
        low_ns = min(low_ns, int(trace.events.start_ns[rows].min()))
        high_ns = max(high_ns, int(trace.events.end_ns[rows].max()))
    return TimeRange(low_ns, high_ns)


def _receives(trace: Trace, kinds: UInt8Array) -> Intervals:
    """Returns the receives from another pipeline stage: what the profiler calls the bubble.

    They run one after another on their group, so their union has the sum of their durations.
    """
    candidates = names_holding(trace.strings, ("hcom_receive",)).tolist()
    names = [name for name in candidates if _RECEIVE.match(trace.strings.text(name))]
    if not names:
        return EMPTY
    rows = np.flatnonzero((kinds == Activity.COMMUNICATION) & np.isin(trace.events.name, np.array(names)))
    return union(trace.events.start_ns[rows], trace.events.end_ns[rows])


def _windows(trace: Trace, kinds: UInt8Array, observed: TimeRange) -> tuple[StepWindow, ...]:
    """Returns one window per step, by start; a capture without steps is one window."""
    hosts = host_steps(trace)
    rows = np.flatnonzero((kinds != Activity.NONE) & (kinds != Activity.SYNCHRONIZATION))
    number = _numbers_of_tasks(trace, rows, hosts)
    by_number = {step.number: step for step in hosts}
    windows = []
    for step in sorted(set(by_number) | set(np.unique(number[number != ABSENT]).tolist())):
        tasks = rows[number == step]
        host = by_number.get(step)
        if len(tasks):
            start_ns = int(trace.events.start_ns[tasks].min())
            end_ns = max(int(trace.events.end_ns[tasks].max()), host.range.end_ns if host else 0)
            windows.append(StepWindow(step, TimeRange(start_ns, end_ns), host.range.start_ns if host else None))
        elif host is not None:
            windows.append(StepWindow(step, host.range, host.range.start_ns))
    if not windows:
        return (StepWindow(None, observed, _first_operator_ns(trace)),)
    return tuple(sorted(windows, key=lambda window: window.range.start_ns))


def _numbers_of_tasks(trace: Trace, rows: Int64Array, hosts: tuple[HostStep, ...]) -> Int64Array:
    """Returns each task's step number: what the capture's tables say, else the step that launched it, else −1."""
    number = np.full(len(rows), ABSENT, dtype=np.int64)
    if hosts:
        index = steps_of_tasks(trace, rows, hosts)
        numbers = np.array([step.number for step in hosts], dtype=np.int64)
        number[index != ABSENT] = numbers[index[index != ABSENT]]
    recorded = np.full(len(trace.events), ABSENT, dtype=np.int64)
    for table in (trace.collectives, trace.kernels):
        known = (table.event != ABSENT) & (table.step != ABSENT)
        recorded[table.event[known]] = table.step[known]
    return np.where(recorded[rows] != ABSENT, recorded[rows], number)


def _first_operator_ns(trace: Trace) -> int | None:
    """Returns when the framework began: without steps, preparing is counted from its first operator."""
    rows = trace.events_of(TrackKind.HOST_THREAD)
    rows = rows[trace.events.category[rows] == trace.strings.id_of("cpu_op")]
    return int(trace.events.start_ns[rows].min()) if len(rows) else None
