"""The event loop of the device model, compiled.

Only the first unfinished task of a queue can run, so each queue has at most one pending end, and a heap of queues by
the time of that end is all the future there is. A task whose predecessors are not through is hung on the first of them
and looked at again when that one ends; a member of a collective counts itself in, and the last one starts the transfer
for all. Among ends of one moment the lower queue number comes first, so equal graphs give equal schedules.

While a transfer of its rank is under way, a task that the transfer slows advances at 1 ÷ (1 + its slowdown ratio) of
its speed: when the first transfer of a rank begins, or the last one ends, what the rank's running tasks still have to
do is counted and their ends are moved.

What belongs to one task stands in one record, because the loop visits tasks in an order no cache foresees.
"""

from dataclasses import dataclass

import numba
import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array

TASK = np.dtype(
    [
        ("duration_ns", np.int64),
        ("start_ns", np.int64),
        ("end_ns", np.int64),
        ("slowdown_ratio", np.float64),
        ("next_predecessor", np.int32),
        ("stop_predecessor", np.int32),
        ("queue", np.int32),
        ("next_task", np.int32),
        ("instance", np.int32),
        ("waiter", np.int32),
        ("waiter_after", np.int32),
    ],
    align=True,
)
"""``next_predecessor`` … ``stop_predecessor``: those not yet known to have ended. ``waiter``: first of the tasks hung
on this one; ``waiter_after``: the next in the list this one hangs in."""

QUEUE = np.dtype(
    [
        ("due_ns", np.int64),
        ("counted_at_ns", np.int64),
        ("remaining_ns", np.float64),
        ("running", np.int32),
        ("place", np.int32),
        ("rank", np.int32),
    ],
    align=True,
)
"""``remaining_ns`` of full-speed work of the ``running`` task as of ``counted_at_ns``; its end; place in the heap."""

INSTANCE = np.dtype(
    [
        ("transfer_ns", np.int64),
        ("first", np.int32),
        ("stop", np.int32),
        ("expected", np.int32),
        ("arrived", np.int32),
    ],
    align=True,
)
"""A collective: its members are ``members[first:stop]``; when its transfer began, −1 before that."""

RANK = np.dtype([("first_queue", np.int32), ("stop_queue", np.int32), ("transfers", np.int32)], align=True)

HEAP_SIZE, ENDED = 0, 1
"""Entries of ``Machine.totals``."""


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """The whole state of a run.

    Attributes:
        tasks: TASK records.
        queues: QUEUE records.
        instances: INSTANCE records.
        ranks: RANK records.
        predecessors: int32, all tasks' predecessors one after another.
        members: int32, all collectives' members one after another.
        heap: int32 queues that run something, by end.
        totals: int64: queues in the heap, tasks that ended.
    """

    tasks: AnyArray
    queues: AnyArray
    instances: AnyArray
    ranks: AnyArray
    predecessors: Int32Array
    members: Int32Array
    heap: Int32Array
    totals: Int64Array

    @property
    def ended_count(self) -> int:
        """Tasks that ended so far."""
        return int(self.totals[ENDED])

    def begin(self, first_task: Int32Array) -> None:
        """Lets the first task of every queue try to start at ns 0."""
        shared = (self.predecessors, self.members, self.heap, self.totals)
        _begin(self.tasks, self.queues, self.instances, self.ranks, *shared, first_task)

    def advance(self, most: int) -> bool:
        """Runs until about ``most`` further tasks have ended; returns whether anything is still to come."""
        shared = (self.predecessors, self.members, self.heap, self.totals)
        return bool(_advance(self.tasks, self.queues, self.instances, self.ranks, *shared, most))


@numba.njit(cache=True)
def _begin(
    tasks: AnyArray,
    queues: AnyArray,
    instances: AnyArray,
    ranks: AnyArray,
    predecessors: Int32Array,
    members: Int32Array,
    heap: Int32Array,
    totals: Int64Array,
    first_task: Int32Array,
) -> None:
    for queue in range(len(first_task)):
        _try_start(tasks, queues, instances, ranks, predecessors, members, heap, totals, first_task[queue], 0)


@numba.njit(cache=True)
def _advance(
    tasks: AnyArray,
    queues: AnyArray,
    instances: AnyArray,
    ranks: AnyArray,
    predecessors: Int32Array,
    members: Int32Array,
    heap: Int32Array,
    totals: Int64Array,
    most: int,
) -> bool:
    stop = totals[ENDED] + most
    while totals[HEAP_SIZE] > 0 and totals[ENDED] < stop:
        queue = heap[0]
        now_ns = queues[queue].due_ns
        task = queues[queue].running
        queues[queue].running = -1
        _remove_top(queues, heap, totals)
        instance = tasks[task].instance
        if instance < 0:
            _end(tasks, queues, instances, ranks, predecessors, members, heap, totals, task, now_ns)
            continue
        # A collective is one entry of the heap, in the queue of the member that came last.
        first, past = instances[instance].first, instances[instance].stop
        if now_ns > instances[instance].transfer_ns:
            _end_transfer(tasks, queues, ranks, members, heap, totals, first, past, now_ns)
        for index in range(first, past):
            _end(tasks, queues, instances, ranks, predecessors, members, heap, totals, members[index], now_ns)
    return bool(totals[HEAP_SIZE] > 0)


@numba.njit(cache=True)
def _end(
    tasks: AnyArray,
    queues: AnyArray,
    instances: AnyArray,
    ranks: AnyArray,
    predecessors: Int32Array,
    members: Int32Array,
    heap: Int32Array,
    totals: Int64Array,
    task: int,
    now_ns: int,
) -> None:
    """Ends a task: the next one of its queue and everything hung on it may start."""
    tasks[task].end_ns = now_ns
    totals[ENDED] += 1
    if tasks[task].next_task >= 0:
        _try_start(tasks, queues, instances, ranks, predecessors, members, heap, totals, tasks[task].next_task, now_ns)
    waiter = tasks[task].waiter
    while waiter >= 0:
        after = tasks[waiter].waiter_after
        _try_start(tasks, queues, instances, ranks, predecessors, members, heap, totals, waiter, now_ns)
        waiter = after


@numba.njit(cache=True)
def _try_start(
    tasks: AnyArray,
    queues: AnyArray,
    instances: AnyArray,
    ranks: AnyArray,
    predecessors: Int32Array,
    members: Int32Array,
    heap: Int32Array,
    totals: Int64Array,
    task: int,
    now_ns: int,
) -> None:
    """Starts the task at the head of its queue, or hangs it on the first predecessor that has not ended."""
    for index in range(tasks[task].next_predecessor, tasks[task].stop_predecessor):
        before = predecessors[index]
        if tasks[before].end_ns < 0:
            tasks[task].next_predecessor = index + 1
            tasks[task].waiter_after = tasks[before].waiter
            tasks[before].waiter = task
            return
    tasks[task].start_ns = now_ns
    queue = tasks[task].queue
    instance = tasks[task].instance
    if instance >= 0:
        instances[instance].arrived += 1
        if instances[instance].arrived < instances[instance].expected:
            return
        instances[instance].transfer_ns = now_ns
        first, stop = instances[instance].first, instances[instance].stop
        duration_ns = _begin_transfer(tasks, queues, ranks, members, heap, totals, first, stop, now_ns)
    else:
        duration_ns = tasks[task].duration_ns
        queues[queue].remaining_ns = duration_ns
        queues[queue].counted_at_ns = now_ns
        if ranks[queues[queue].rank].transfers > 0:
            duration_ns = _slowed(duration_ns, tasks[task].slowdown_ratio)
    queues[queue].running = task
    queues[queue].due_ns = now_ns + duration_ns
    _insert(queues, heap, totals, queue)


@numba.njit(cache=True)
def _slowed(remaining_ns: float, slowdown_ratio: float) -> int:
    return int(np.rint(remaining_ns * (1.0 + slowdown_ratio)))


@numba.njit(cache=True)
def _begin_transfer(
    tasks: AnyArray,
    queues: AnyArray,
    ranks: AnyArray,
    members: Int32Array,
    heap: Int32Array,
    totals: Int64Array,
    first: int,
    stop: int,
    now_ns: int,
) -> int:
    """Starts a collective at its last arrival and returns its time, ns: that of its slowest member's part."""
    duration_ns = 0
    for index in range(first, stop):
        duration_ns = max(duration_ns, tasks[members[index]].duration_ns)
    if duration_ns > 0:
        for index in range(first, stop):
            rank = queues[tasks[members[index]].queue].rank
            ranks[rank].transfers += 1
            if ranks[rank].transfers == 1:
                _change_speed(tasks, queues, ranks, heap, totals, rank, now_ns, True)
    return duration_ns


@numba.njit(cache=True)
def _end_transfer(
    tasks: AnyArray,
    queues: AnyArray,
    ranks: AnyArray,
    members: Int32Array,
    heap: Int32Array,
    totals: Int64Array,
    first: int,
    stop: int,
    now_ns: int,
) -> None:
    """Gives the members' ranks their speed back."""
    for index in range(first, stop):
        rank = queues[tasks[members[index]].queue].rank
        ranks[rank].transfers -= 1
        if ranks[rank].transfers == 0:
            _change_speed(tasks, queues, ranks, heap, totals, rank, now_ns, False)


@numba.njit(cache=True)
def _change_speed(
    tasks: AnyArray,
    queues: AnyArray,
    ranks: AnyArray,
    heap: Int32Array,
    totals: Int64Array,
    rank: int,
    now_ns: int,
    slower: bool,
) -> None:
    """Counts what the running tasks of a rank did at the old speed and moves their ends to where the new one leads."""
    for queue in range(ranks[rank].first_queue, ranks[rank].stop_queue):
        task = queues[queue].running
        if task < 0 or tasks[task].instance >= 0 or tasks[task].slowdown_ratio <= 0.0:
            continue
        elapsed_ns = np.float64(now_ns - queues[queue].counted_at_ns)
        if not slower:
            elapsed_ns /= 1.0 + tasks[task].slowdown_ratio
        remaining_ns = max(0.0, queues[queue].remaining_ns - elapsed_ns)
        queues[queue].remaining_ns = remaining_ns
        queues[queue].counted_at_ns = now_ns
        queues[queue].due_ns = now_ns + _slowed(remaining_ns, tasks[task].slowdown_ratio if slower else 0.0)
        _sift_up(queues, heap, queues[queue].place)
        _sift_down(queues, heap, totals, queues[queue].place)


@numba.njit(cache=True)
def _comes_first(queues: AnyArray, one: int, other: int) -> bool:
    if queues[one].due_ns != queues[other].due_ns:
        return bool(queues[one].due_ns < queues[other].due_ns)
    return one < other


@numba.njit(cache=True)
def _insert(queues: AnyArray, heap: Int32Array, totals: Int64Array, queue: int) -> None:
    place = totals[HEAP_SIZE]
    totals[HEAP_SIZE] += 1
    heap[place] = queue
    _sift_up(queues, heap, place)


@numba.njit(cache=True)
def _remove_top(queues: AnyArray, heap: Int32Array, totals: Int64Array) -> None:
    totals[HEAP_SIZE] -= 1
    if totals[HEAP_SIZE] > 0:
        heap[0] = heap[totals[HEAP_SIZE]]
        _sift_down(queues, heap, totals, 0)


@numba.njit(cache=True)
def _sift_up(queues: AnyArray, heap: Int32Array, place: int) -> None:
    queue = heap[place]
    while place > 0:
        parent = (place - 1) >> 1
        if not _comes_first(queues, queue, heap[parent]):
            break
        heap[place] = heap[parent]
        queues[heap[place]].place = place
        place = parent
    heap[place] = queue
    queues[queue].place = place


@numba.njit(cache=True)
def _sift_down(queues: AnyArray, heap: Int32Array, totals: Int64Array, place: int) -> None:
    queue = heap[place]
    while True:
        child = 2 * place + 1
        if child >= totals[HEAP_SIZE]:
            break
        if child + 1 < totals[HEAP_SIZE] and _comes_first(queues, heap[child + 1], heap[child]):
            child += 1
        if not _comes_first(queues, heap[child], queue):
            break
        heap[place] = heap[child]
        queues[heap[place]].place = place
        place = child
    heap[place] = queue
    queues[queue].place = place
