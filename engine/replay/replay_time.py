"""Runs a capture's tasks and compares the times with the recorded ones."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.replay.capture_graph import CaptureGraph
from engine.runtime.scheduler import Schedule, schedule

_NOT_DEVICE = (TaskKind.HOST, TaskKind.SYNCHRONIZE, TaskKind.GAP)


@dataclass(frozen=True, slots=True, eq=False)
class ReplayedTime:
    """A run of a capture's tasks. int64 columns, shape (rows,), one row per recorded rank and step, as in ``steps``.

    Attributes:
        capture: What was recorded.
        graph: What ran: the capture's tasks, or what optimizations made of them.
        schedule: When.
        start_ns: First device task of each row's step, run ns.
        end_ns: Last one's end; equal to ``start_ns`` where a step has no task left.
    """

    capture: CaptureGraph
    graph: TaskGraph
    schedule: Schedule
    start_ns: Int64Array
    end_ns: Int64Array

    @property
    def step(self) -> Int32Array:
        """int32, shape (steps,): the distinct steps, ascending."""
        return np.unique(self.capture.steps.step)

    @property
    def step_ns(self) -> Int64Array:
        """int64, shape (steps,): replayed time of each step, of the slowest rank."""
        return _slowest(self.capture, self.end_ns - self.start_ns)

    @property
    def recorded_step_ns(self) -> Int64Array:
        """int64, shape (steps,): recorded time of each step, of the slowest rank."""
        return _slowest(self.capture, self.capture.steps.end_ns - self.capture.steps.start_ns)

    @property
    def error_ratio(self) -> float | None:
        """Replayed ÷ recorded mean step − 1; None where the recorded steps have no length."""
        recorded = int(self.recorded_step_ns.sum())
        return int(self.step_ns.sum()) / recorded - 1 if recorded else None


def _slowest(capture: CaptureGraph, span_ns: Int64Array) -> Int64Array:
    numbers, index = np.unique(capture.steps.step, return_inverse=True)
    longest = np.zeros(len(numbers), dtype=np.int64)
    np.maximum.at(longest, index, span_ns)
    return longest


def replay_time(
    capture: CaptureGraph,
    graph: TaskGraph | None = None,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> ReplayedTime:
    """Returns when every task runs and how long each recorded step takes then.

    Args:
        capture: The recorded job.
        graph: Its tasks as rewritten; as recorded where None.
        progress: Told the share of tasks done.
        cancel: Looked at every few tens of ms.

    Raises:
        OperationCancelled: Cancelled.
    """
    chosen = capture.graph if graph is None else graph
    result = schedule(chosen, progress=progress, cancel=cancel)
    start_ns, end_ns = _step_bounds(capture, chosen, result)
    return ReplayedTime(capture, chosen, result, start_ns, end_ns)


def _step_bounds(capture: CaptureGraph, graph: TaskGraph, result: Schedule) -> tuple[Int64Array, Int64Array]:
    """Returns the first start and the last end of every recorded row's device tasks, run ns."""
    steps = capture.steps
    device: BoolArray = ~np.isin(graph.kind, _NOT_DEVICE) & result.ended
    shift = int(max(graph.step.max(initial=0), steps.step.max(initial=0))) + 2
    keys = steps.rank.astype(np.int64) * shift + steps.step + 1
    order = np.argsort(keys)
    task = np.flatnonzero(device)
    whole = np.isin(graph.rank[task], steps.rank[steps.step < 0])
    number = np.where(whole, -1, graph.step[task])
    own = graph.rank[task].astype(np.int64) * shift + number + 1
    place = np.minimum(np.searchsorted(keys[order], own), len(keys) - 1)
    fits = keys[order][place] == own
    row = order[place[fits]]
    start_ns = np.full(len(steps), np.iinfo(np.int64).max)
    end_ns = np.full(len(steps), np.iinfo(np.int64).min)
    np.minimum.at(start_ns, row, result.start_ns[task[fits]])
    np.maximum.at(end_ns, row, result.end_ns[task[fits]])
    empty = end_ns < start_ns
    return np.where(empty, 0, start_ns), np.where(empty, 0, end_ns)
