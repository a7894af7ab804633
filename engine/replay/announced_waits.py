"""Waits the host asked of a stream in captures that record the call and neither the stream nor the event.

The next launch of the same thread tells the stream that waits. What it waits for follows from how frameworks use
streams: a stream beside the computing one waits for what was launched to the computing one before (a collective for
the gradients it sends); the computing stream for what was launched last to the other one. The pairs count as inferred.
"""

import numpy as np

from engine.analyses.name_search import names_holding
from engine.core.arrays import BoolArray, Int32Array
from engine.graph.task_graph import Stream
from engine.replay.device_tasks import DeviceTasks
from engine.replay.queue_search import QueueTimes
from engine.replay.recorded_waits import Pairs
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

_CALLS = ("streamwaitevent",)


def announced_waits(trace: Trace, tasks: DeviceTasks, launch: Int32Array) -> tuple[Pairs, BoolArray]:
    """Returns the completed waits, and before which tasks the host asked for one (bool, shape (tasks,)).

    Args:
        trace: The rank.
        tasks: Its device tasks.
        launch: ``launch_events(trace)``.
    """
    told = np.zeros(len(tasks), dtype=np.bool_)
    nothing = np.empty(0, dtype=np.int64)
    rows = trace.events_of(TrackKind.HOST_THREAD, TrackKind.CANN_THREAD)
    rows = rows[np.isin(trace.events.name[rows], names_holding(trace.strings, _CALLS))]
    call = np.where(tasks.event >= 0, launch[tasks.event], -1)
    launched = np.flatnonzero(call >= 0)
    if len(rows) == 0 or len(launched) == 0:
        return Pairs(nothing, nothing), told
    # Event rows ascend by thread and start, and so do the calls: the next launch is the next larger row.
    by_call = launched[np.argsort(call[launched], kind="stable")]
    place = np.searchsorted(call[by_call], rows, side="right")
    follows = place < len(by_call)
    after = by_call[np.minimum(place, len(by_call) - 1)]
    follows &= trace.events.track[call[after]] == trace.events.track[rows]
    rows, after = rows[follows], after[follows].astype(np.int64)
    told[after] = True
    launched_ns = np.where(call >= 0, trace.events.start_ns[np.maximum(call, 0)], np.iinfo(np.int64).min // 2)
    times = QueueTimes.of(tasks, np.maximum(launched_ns, trace.events.start_ns.min(initial=0)))
    asked_ns = trace.events.start_ns[rows]
    before, waits = [], []
    beside = tasks.queue[after] != Stream.COMPUTE
    before.append(times.last_before(np.full(int(beside.sum()), int(Stream.COMPUTE)), asked_ns[beside]))
    waits.append(after[beside])
    # One turn per stream beside the computing one.
    for queue in np.unique(tasks.queue[tasks.queue != Stream.COMPUTE]).tolist():
        before.append(times.last_before(np.full(int((~beside).sum()), queue), asked_ns[~beside]))
        waits.append(after[~beside])
    pairs = Pairs.agreeing(tasks, np.concatenate(before), np.concatenate(waits))
    keys = np.unique(pairs.after * len(tasks) + pairs.before)
    return Pairs(keys % len(tasks), keys // len(tasks)), told
