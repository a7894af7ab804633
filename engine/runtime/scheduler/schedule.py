"""Runs a task graph on the device model.

Rules: a queue runs its tasks one after another in program order; a task starts when the one before it and all its
predecessors have ended; a member of a collective takes its queue from its arrival on, the transfer starts at the last
arrival and ends for all members at once; computing beside a transfer of its own rank is slowed by the stated ratio for
exactly as long as both last. Nothing else moves: given durations, the schedule is determined.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Float64Array, Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.graph.streams import StreamChains, stream_chains
from engine.graph.task_graph import TaskGraph
from engine.runtime.scheduler.kernel import INSTANCE, QUEUE, RANK, TASK, Machine
from engine.runtime.scheduler.meetings import MeetingFault, Meetings, find_meetings

_ENDS_PER_CALL = 100_000
"""About 30 ms of work between two looks at the cancel token."""


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """When each task ran. int64 columns, shape (tasks,), ns from the start of the run; −1 for what never happened.

    Attributes:
        start_ns: When the task took its queue; of a member of a collective, its arrival.
        transfer_ns: When the work itself began: of a collective the last arrival, of other tasks ``start_ns``.
        end_ns: When it ended.
        meetings: The collective instances.
        chains: The queues.
    """

    start_ns: Int64Array
    transfer_ns: Int64Array
    end_ns: Int64Array
    meetings: Meetings
    chains: StreamChains

    @property
    def ended(self) -> BoolArray:
        """bool, shape (tasks,): which tasks ended."""
        return self.end_ns >= 0

    @property
    def is_complete(self) -> bool:
        """Whether every task ended; otherwise the run is in a deadlock."""
        return bool(self.ended.all())

    @property
    def makespan_ns(self) -> int:
        """When the last task that ended did, 0 where none did."""
        return max(int(self.end_ns.max(initial=0)), 0)


def schedule(
    graph: TaskGraph,
    slowdown_ratio: Float64Array | float = 0.0,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Schedule:
    """Returns when each task of ``graph`` runs. Tasks that can never start are left at −1; nothing hangs.

    Args:
        graph: The tasks with their durations.
        slowdown_ratio: float64, shape (tasks,) or one number: how much longer a task takes beside a transfer of its
            own rank (see ``interference``).
        progress: Told the share of tasks done.
        cancel: Looked at every few tens of ms.

    Raises:
        OperationCancelled: Cancelled.
    """
    chains = stream_chains(graph)
    meetings = find_meetings(graph)
    machine = _machine(graph, chains, meetings, slowdown_ratio)
    machine.begin(chains.first_task)
    while machine.advance(_ENDS_PER_CALL):
        cancel.check()
        progress(machine.ended_count / len(graph), "scheduling")
    start_ns, transfer_ns = machine.tasks["start_ns"].copy(), machine.tasks["start_ns"].copy()
    transfer_ns[meetings.task] = np.repeat(machine.instances["transfer_ns"], np.diff(meetings.offsets))
    return Schedule(start_ns, transfer_ns, machine.tasks["end_ns"].copy(), meetings, chains)


def _machine(
    graph: TaskGraph, chains: StreamChains, meetings: Meetings, slowdown_ratio: Float64Array | float
) -> Machine:
    tasks = np.empty(len(graph), dtype=TASK)
    for name in ("start_ns", "end_ns", "waiter", "waiter_after"):
        tasks[name] = -1
    tasks["duration_ns"] = graph.duration_ns
    tasks["slowdown_ratio"] = slowdown_ratio
    tasks["next_predecessor"] = graph.predecessor_offsets[:-1]
    tasks["stop_predecessor"] = graph.predecessor_offsets[1:]
    tasks["queue"] = chains.queue
    tasks["next_task"] = chains.next_task
    tasks["instance"] = meetings.instance
    queues = np.zeros(len(chains), dtype=QUEUE)
    queues["running"] = -1
    queues["rank"] = chains.rank
    instances = np.zeros(len(meetings.expected_count), dtype=INSTANCE)
    instances["transfer_ns"] = -1
    instances["first"] = meetings.offsets[:-1]
    instances["stop"] = meetings.offsets[1:]
    # One more than can ever come: the members that are there wait for ever.
    unreachable = np.diff(meetings.offsets) + 1
    impossible = meetings.fault != MeetingFault.NONE
    instances["expected"] = np.where(impossible, unreachable, meetings.expected_count)
    bounds = np.searchsorted(chains.rank, np.arange(int(graph.rank.max(initial=-1)) + 2))
    ranks = np.zeros(len(bounds) - 1, dtype=RANK)
    ranks["first_queue"] = bounds[:-1]
    ranks["stop_queue"] = bounds[1:]
    heap = np.empty(len(chains), dtype=np.int32)
    totals = np.zeros(2, dtype=np.int64)
    return Machine(tasks, queues, instances, ranks, graph.predecessors, meetings.task, heap, totals)
