"""What a device task waited for beside its stream and its launch."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.core.units import NS_PER_US
from engine.graph.task_graph import Stream, TaskKind
from engine.replay.device_tasks import DeviceTasks
from engine.replay.dispatch import Dispatch

COINCIDENCE_NS = 2 * NS_PER_US
"""A task that starts this soon after one on another stream ended, though it could have run before, waited for it."""
_CANDIDATES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """Pairs of device tasks. int32 columns, shape (n,), by ``after``.

    Attributes:
        before: Must have ended.
        after: Waits.
        inferred: uint8, 1 where the times alone say so.
    """

    before: Int32Array
    after: Int32Array
    inferred: UInt8Array

    def latest_end_ns(self, tasks: DeviceTasks) -> Int64Array:
        """Returns when the last of what each task waits for ended, int64, shape (tasks,); far past for none."""
        latest_ns = np.full(len(tasks), np.iinfo(np.int64).min // 2, dtype=np.int64)
        np.maximum.at(latest_ns, self.after, tasks.end_ns[self.before])
        return latest_ns


def inferred_waits(tasks: DeviceTasks, dispatch: Dispatch, computes: BoolArray) -> Waits:
    """Returns the waits that coincident ends and the frameworks' way of ordering collectives suggest.

    Args:
        tasks: The rank's tasks.
        dispatch: Its host.
        computes: bool, shape (tasks,): which tasks run on the cores.
    """
    pairs = (_coincident(tasks, dispatch), _before_collectives(tasks, dispatch, computes))
    before = np.concatenate([pair[0] for pair in pairs])
    after = np.concatenate([pair[1] for pair in pairs])
    keys = np.unique(after.astype(np.int64) * max(len(tasks), 1) + before)
    after, before = np.divmod(keys, max(len(tasks), 1))
    return Waits(before.astype(np.int32), after.astype(np.int32), np.ones(len(keys), dtype=np.uint8))


def _coincident(tasks: DeviceTasks, dispatch: Dispatch) -> tuple[Int64Array, Int64Array]:
    """Returns tasks of another stream that ended just before a task started that was ready earlier."""
    could_ns = np.where(tasks.is_first, np.iinfo(np.int64).min // 2, tasks.previous_end_ns + dispatch.switch_ns)
    could_ns = np.maximum(could_ns, dispatch.ready_ns())
    waiting = np.flatnonzero(tasks.start_ns - could_ns > COINCIDENCE_NS)
    by_end = np.argsort(tasks.end_ns, kind="stable")
    ends_ns = tasks.end_ns[by_end]
    place = np.searchsorted(ends_ns, tasks.start_ns[waiting], side="right") - 1
    found = np.full(len(waiting), -1, dtype=np.int64)
    # A few tasks may end at once, those of the own stream among them; each turn looks at the next earlier end.
    for back in range(_CANDIDATES):
        candidate = by_end[np.maximum(place - back, 0)]
        fits = (found < 0) & (place >= back) & (tasks.queue[candidate] != tasks.queue[waiting])
        fits &= tasks.start_ns[candidate] < tasks.start_ns[waiting]
        fits &= tasks.start_ns[waiting] - tasks.end_ns[candidate] <= COINCIDENCE_NS
        found[fits] = candidate[fits]
    known = found >= 0
    return found[known], waiting[known]


def _before_collectives(tasks: DeviceTasks, dispatch: Dispatch, computes: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Returns for each collective the last computing task launched before it, unless it ended later than that began.

    The process groups of NCCL and HCCL make their stream wait for the stream that computes before every operator.
    """
    rows = np.flatnonzero((tasks.collective >= 0) & (tasks.queue != Stream.COMPUTE))
    kernels = np.flatnonzero(computes & (tasks.queue == Stream.COMPUTE))
    if len(rows) == 0 or len(kernels) == 0:
        return rows[:0], rows[:0]
    order_of = np.where(dispatch.launched_by >= 0, dispatch.launched_by.astype(np.int64), -1)
    reach = np.maximum.accumulate(order_of[kernels])
    last = np.searchsorted(reach, order_of[rows], side="left") - 1
    # Where the launch is unknown, the last kernel that had begun.
    unknown = order_of[rows] < 0
    last[unknown] = np.searchsorted(tasks.start_ns[kernels], tasks.start_ns[rows[unknown]], side="left") - 1
    before = kernels[np.maximum(last, 0)]
    agrees = (
        (last >= 0) & (tasks.end_ns[before] <= tasks.start_ns[rows]) & (tasks.start_ns[before] < tasks.start_ns[rows])
    )
    return before[agrees], rows[agrees]


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
    for column in range(len(bounds) - 1):
        first, stop = bounds[column], bounds[column + 1]
        launched = np.maximum.accumulate(dispatch.launched_by[first:stop])
        place = np.searchsorted(launched, calls, side="left") - 1
        last[:, column] = np.where(place >= 0, first + place, -1)
    fits = (last >= 0) & (tasks.end_ns[last] <= dispatch.end_ns[calls][:, None] + slack_ns)
    ends_ns = np.where(fits, tasks.end_ns[last], np.iinfo(np.int64).min)
    latest = ends_ns == ends_ns.max(axis=1, keepdims=True, initial=np.iinfo(np.int64).min)
    chosen = fits & (latest | whole_device[calls][:, None])
    told = dispatch.awaited[calls] >= 0
    row, queue = np.nonzero(chosen & ~told[:, None])
    before = np.concatenate((last[row, queue], dispatch.awaited[calls[told]])).astype(np.int32)
    after = np.concatenate((calls[row], calls[told])).astype(np.int32)
    return Waits(before, after, dispatch.inferred[after])
