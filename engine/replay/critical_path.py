"""The chain of waits that ends with the last task of a schedule: what a run could not have been shorter than."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.runtime.scheduler import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """Tasks one after another without a gap from the first start to the last end. Columns of shape (n,), by time.

    Attributes:
        task: int32.
        start_ns: int64: when the task began to matter (of a collective, when its last member arrived).
        end_ns: int64: when the next one on the path could go on.
    """

    task: Int32Array
    start_ns: Int64Array
    end_ns: Int64Array

    def __len__(self) -> int:
        return len(self.task)

    @property
    def length_ns(self) -> int:
        """From the first start to the last end, which is the makespan of the schedule."""
        return int((self.end_ns - self.start_ns).sum())

    def by_kind(self, graph: TaskGraph) -> Mapping[TaskKind, int]:
        """Returns the time of each kind of task on the path in ns, the largest first."""
        kinds = graph.kind[self.task]
        sums = {kind: int((self.end_ns - self.start_ns)[kinds == kind].sum()) for kind in TaskKind}
        return dict(sorted(((kind, ns) for kind, ns in sums.items() if ns), key=lambda item: -item[1]))

    def by_rank(self, graph: TaskGraph) -> Mapping[int, int]:
        """Returns the time the path spends on each rank in ns, the largest first."""
        ranks = graph.rank[self.task]
        sums = {rank: int((self.end_ns - self.start_ns)[ranks == rank].sum()) for rank in np.unique(ranks).tolist()}
        return dict(sorted(sums.items(), key=lambda item: -item[1]))


def critical_path(graph: TaskGraph, schedule: Schedule) -> CriticalPath:
    """Returns the critical path of a schedule of ``graph``; empty where no task ended.

    Walks back from the task that ends last: each task began when the last of what it waits for ended (the task before
    it on its queue, its predecessors), a collective when its last member arrived; that one is gone on from. Of several
    that ended at once a predecessor is taken rather than the queue.
    """
    if len(graph) == 0 or schedule.makespan_ns == 0:
        nothing = np.empty(0, dtype=np.int64)
        return CriticalPath(nothing.astype(np.int32), nothing, nothing)
    before = _tasks_before(schedule)
    start_ns, transfer_ns, end_ns = schedule.start_ns, schedule.transfer_ns, schedule.end_ns
    tasks: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    current, until_ns = int(np.argmax(end_ns)), schedule.makespan_ns
    # A loop along the path, not over all tasks: each step depends on the one before.
    while current >= 0:
        begin_ns = int(transfer_ns[current])
        tasks.append(current)
        starts.append(begin_ns)
        ends.append(until_ns)
        if int(schedule.meetings.instance[current]) >= 0:
            current = _last_arrival(schedule, current)
        begin_ns = int(start_ns[current])
        current, until_ns = _blocker(graph, end_ns, before, current), begin_ns
    order = slice(None, None, -1)
    return CriticalPath(
        np.array(tasks[order], dtype=np.int32),
        np.array(starts[order], dtype=np.int64),
        np.array(ends[order], dtype=np.int64),
    )


def _tasks_before(schedule: Schedule) -> Int32Array:
    """Returns the task before each one on its queue, −1 for the first."""
    following = schedule.chains.next_task
    before = np.full(len(following), -1, dtype=np.int32)
    has_next = np.flatnonzero(following >= 0)
    before[following[has_next]] = has_next
    return before


def _last_arrival(schedule: Schedule, task: int) -> int:
    members = schedule.meetings.members(int(schedule.meetings.instance[task]))
    return int(members[np.argmax(schedule.start_ns[members])])


def _blocker(graph: TaskGraph, end_ns: Int64Array, before: Int32Array, task: int) -> int:
    """Returns what ended last of everything a task waits for, −1 where it waits for nothing."""
    candidates = graph.predecessors_of(task)
    best = int(candidates[np.argmax(end_ns[candidates])]) if len(candidates) else -1
    previous = int(before[task])
    if previous >= 0 and (best < 0 or end_ns[previous] > end_ns[best]):
        return previous
    return best
