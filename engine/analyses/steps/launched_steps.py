"""Step times of traces whose format defines none (Kineto): what the step's own launches did on the device."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity, activities
from engine.analyses.steps.profiler_steps import HostStep, host_steps, steps_of_tasks
from engine.core.arrays import AnyArray, UInt8Array
from engine.trace.intervals import Intervals, difference, join, union
from engine.trace.trace import TimeRange, Trace


@dataclass(frozen=True, slots=True)
class LaunchedTotals:
    """Unions over the tasks one step launched, ns.

    Attributes:
        step: The host's step, or None for a trace without steps.
        range: First to last device work of the step.
    """

    step: HostStep | None
    range: TimeRange
    computing_ns: int
    communication_ns: int
    communication_not_overlapped_ns: int
    free_ns: int


def launched_totals(trace: Trace) -> tuple[LaunchedTotals, ...]:
    """Returns the totals of every step that launched device work; one entry where the trace has no steps.

    A task belongs to the step that launched it, wherever it runs: with a full queue the device is a step behind the
    host. Free is the part of the step's device range with neither computing nor communication of the step.
    """
    kinds = activities(trace)
    rows = np.flatnonzero((kinds != Activity.NONE) & (kinds != Activity.SYNCHRONIZATION))
    if len(rows) == 0:
        return ()
    hosts = host_steps(trace)
    if not hosts:
        return (_totals(trace, kinds, rows, None),)
    index = steps_of_tasks(trace, rows, hosts)
    order = np.argsort(index, kind="stable")
    bounds = np.searchsorted(index[order], np.arange(len(hosts) + 1))
    parts = [rows[order[bounds[step] : bounds[step + 1]]] for step in range(len(hosts))]
    return tuple(_totals(trace, kinds, part, step) for part, step in zip(parts, hosts, strict=True) if len(part))


def _totals(trace: Trace, kinds: UInt8Array, rows: AnyArray, step: HostStep | None) -> LaunchedTotals:
    start_ns, end_ns = trace.events.start_ns[rows], trace.events.end_ns[rows]

    def union_of(activity: Activity) -> Intervals:
        chosen = kinds[rows] == activity
        return union(start_ns[chosen], end_ns[chosen])

    computing, communication = union_of(Activity.COMPUTING), union_of(Activity.COMMUNICATION)
    covered = TimeRange(int(start_ns.min()), int(end_ns.max()))
    return LaunchedTotals(
        step=step,
        range=covered,
        computing_ns=computing.total_ns,
        communication_ns=communication.total_ns,
        communication_not_overlapped_ns=difference(communication, computing).total_ns,
        free_ns=covered.duration_ns - join(computing, communication).total_ns,
    )
