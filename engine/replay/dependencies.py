"""What a device task waited for beside its stream and its launch, and what the host waited for."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.core.units import NS_PER_S, NS_PER_US
from engine.graph.task_graph import Stream, TaskKind
from engine.replay.device_tasks import DeviceTasks
from engine.replay.dispatch import LONG_AGO_NS, Dispatch
from engine.replay.recorded_waits import COINCIDENCE_NS, Pairs

ANNOUNCED_NS = 10 * NS_PER_US
"""Where the host told a stream to wait, its task starts up to 7 µs after what it waited for ended (A100 captures)."""
CHANCE_RATIO = 0.01
"""Ends of other streams fall at random into a stretch of standing still; one in a hundred falls into this share."""
_CANDIDATES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """Pairs of tasks. Columns of shape (n,).

    Attributes:
        before: int32 device task that must have ended.
        after: int32 task that waits.
        inferred: uint8, 1 where it is not recorded.
    """

    before: Int32Array
    after: Int32Array
    inferred: UInt8Array

    def latest_end_ns(self, tasks: DeviceTasks) -> Int64Array:
        """Returns when the last of what each task waits for ended, int64, shape (tasks,); LONG_AGO_NS for none."""
        latest_ns = np.full(len(tasks), LONG_AGO_NS, dtype=np.int64)
        np.maximum.at(latest_ns, self.after, tasks.end_ns[self.before])
        return latest_ns


def device_waits(
    tasks: DeviceTasks,
    dispatch: Dispatch,
    computes: BoolArray,
    family: Int32Array,
    recorded: Pairs,
    announced: Pairs,
    told: BoolArray,
) -> Waits:
    """Returns recorded waits and those the times suggest, each pair once.

    Args:
        tasks: The rank's tasks.
        dispatch: Its host.
        computes: bool, shape (tasks,): which tasks run on the cores.
        family: int32, shape (tasks,): equal for collectives of one group and operation, −1 for other tasks.
        recorded: Waits the capture names.
        announced: Waits the host asked for without saying for what, completed by the frameworks' habits.
        told: bool, shape (tasks,): before which tasks the host asked their stream to wait.
    """
    known = Waits(
        recorded.before.astype(np.int32), recorded.after.astype(np.int32), np.zeros(len(recorded.before), np.uint8)
    )
    could_ns = np.where(tasks.is_first, LONG_AGO_NS, tasks.previous_end_ns + dispatch.switch_ns)
    could_ns = np.maximum(could_ns, known.latest_end_ns(tasks) + dispatch.switch_ns)
    could_ns = np.maximum(could_ns, dispatch.ready_ns())
    # A capture that names its waits needs no guess what the host's calls are for.
    unnamed = announced if len(recorded.before) == 0 else Pairs(recorded.before[:0], recorded.after[:0])
    guessed = (
        unnamed,
        _before_collectives(tasks, dispatch, computes),
        _after_collectives(tasks, dispatch, computes, family),
        coincident(tasks, could_ns, told),
    )
    before = np.concatenate([recorded.before, *(pair.before for pair in guessed)])
    after = np.concatenate([recorded.after, *(pair.after for pair in guessed)])
    inferred = np.ones(len(before), dtype=np.uint8)
    inferred[: len(recorded.before)] = 0
    # Recorded pairs come first, so of equal pairs the recorded one stays.
    _, first = np.unique(after * max(len(tasks), 1) + before, return_index=True)
    return Waits(before[first].astype(np.int32), after[first].astype(np.int32), inferred[first])


def coincident(tasks: DeviceTasks, could_ns: Int64Array, told: BoolArray) -> Pairs:
    """Returns tasks of another stream that ended just before a task started that could have run earlier.

    Just before is COINCIDENCE_NS, or more where the task stood still so long that an end this near is no chance.

    Args:
        tasks: The rank's tasks.
        could_ns: int64, shape (tasks,): when each could have started for all that is known.
        told: bool, shape (tasks,): before which tasks the host asked their stream to wait.
    """
    still_ns = tasks.start_ns - could_ns
    waiting = np.flatnonzero(still_ns > COINCIDENCE_NS)
    by_chance_ns = (np.minimum(still_ns[waiting], NS_PER_S) * CHANCE_RATIO).astype(np.int64)
    window_ns = np.where(told[waiting], ANNOUNCED_NS, np.clip(by_chance_ns, COINCIDENCE_NS, ANNOUNCED_NS))
    by_end = np.argsort(tasks.end_ns, kind="stable")
    place = np.searchsorted(tasks.end_ns[by_end], tasks.start_ns[waiting], side="right") - 1
    found = np.full(len(waiting), -1, dtype=np.int64)
    # A few tasks may end at once, those of the own stream among them; each turn looks at the next earlier end.
    for back in range(_CANDIDATES):
        candidate = by_end[np.maximum(place - back, 0)]
        fits = (found < 0) & (place >= back) & (tasks.queue[candidate] != tasks.queue[waiting])
        fits &= tasks.start_ns[waiting] - tasks.end_ns[candidate] <= window_ns
        # What ended before the task was ready anyway held nothing back.
        fits &= tasks.end_ns[candidate] > could_ns[waiting]
        found[fits] = candidate[fits]
    known = found >= 0
    return Pairs.agreeing(tasks, found[known], waiting[known])


def _before_collectives(tasks: DeviceTasks, dispatch: Dispatch, computes: BoolArray) -> Pairs:
    """Returns for each collective the last computing task launched before it, unless it ended later than that began.

    The process groups of NCCL and HCCL make their stream wait for the stream that computes before every operator.
    """
    rows = np.flatnonzero((tasks.collective >= 0) & (tasks.queue != Stream.COMPUTE))
    kernels = np.flatnonzero(computes & (tasks.queue == Stream.COMPUTE))
    if len(rows) == 0 or len(kernels) == 0:
        return Pairs(rows[:0], rows[:0])
    order_of = dispatch.launched_by.astype(np.int64)
    reach = np.maximum.accumulate(order_of[kernels])
    last = np.searchsorted(reach, order_of[rows], side="left") - 1
    # Where the launch is unknown, the last kernel that had begun.
    unknown = order_of[rows] < 0
    last[unknown] = np.searchsorted(tasks.start_ns[kernels], tasks.start_ns[rows[unknown]], side="left") - 1
    return Pairs.agreeing(tasks, np.where(last >= 0, kernels[np.maximum(last, 0)], -1), rows)


def _after_collectives(tasks: DeviceTasks, dispatch: Dispatch, computes: BoolArray, family: Int32Array) -> Pairs:
    """Returns for each collective the next computing task launched after it, where its family is waited for.

    A family (one operation of one group) is not waited for as soon as one computing task that was launched after one of
    its collectives began before that collective ended. Where nothing was ever seen to overlap, a host that was late
    with the next launch hides whether the device would have waited; it is taken to.
    """
    rows = np.flatnonzero((tasks.collective >= 0) & (tasks.queue != Stream.COMPUTE))
    kernels = np.flatnonzero(computes & (tasks.queue == Stream.COMPUTE))
    if len(rows) == 0 or len(kernels) == 0:
        return Pairs(rows[:0], rows[:0])
    order_of = dispatch.launched_by.astype(np.int64)
    reach = np.maximum.accumulate(order_of[kernels])
    place = np.searchsorted(reach, order_of[rows], side="right")
    follows = (place < len(kernels)) & (order_of[rows] >= 0)
    rows, after = rows[follows], kernels[place[follows]]
    overlapped = np.unique(family[rows[tasks.start_ns[after] < tasks.end_ns[rows]]])
    waited = ~np.isin(family[rows], overlapped)
    return Pairs.agreeing(tasks, rows[waited], after[waited])


def awaited_by_host(tasks: DeviceTasks, dispatch: Dispatch, whole_device: BoolArray, slack_ns: int) -> Waits:
    """Returns device tasks (``before``) the host's synchronising calls (``after``, host task index) waited for.

    A call that waits for a stream or an event does not say for which: of the streams whose last task launched before
    had ended when the call returned, the one that ended last.

    Args:
        tasks: The rank's tasks.
        dispatch: Its host.
        whole_device: bool, shape (host tasks,): which synchronising calls wait for every stream.
        slack_ns: So much later than the call's return a task may seem to end: the error of joining two clocks.
    """
    calls = np.flatnonzero(dispatch.kind == TaskKind.SYNCHRONIZE)
    bounds = np.append(np.flatnonzero(tasks.is_first), len(tasks))
    last = np.full((len(calls), len(bounds) - 1), -1, dtype=np.int64)
    # One turn per stream of the device.
    for column in range(len(bounds) - 1):
        first, stop = bounds[column], bounds[column + 1]
        launched = np.maximum.accumulate(dispatch.launched_by[first:stop])
        place = np.searchsorted(launched, calls, side="left") - 1
        last[:, column] = np.where(place >= 0, first + place, -1)
    fits = (last >= 0) & (tasks.end_ns[last] <= dispatch.end_ns[calls][:, None] + slack_ns)
    ends_ns = np.where(fits, tasks.end_ns[last], LONG_AGO_NS)
    latest = ends_ns == ends_ns.max(axis=1, keepdims=True, initial=LONG_AGO_NS)
    told = dispatch.awaited[calls] >= 0
    row, queue = np.nonzero(fits & (latest | whole_device[calls][:, None]) & ~told[:, None])
    before = np.concatenate((last[row, queue], dispatch.awaited[calls[told]])).astype(np.int32)
    after = np.concatenate((calls[row], calls[told])).astype(np.int32)
    return Waits(before, after, dispatch.inferred[after])
