"""The host of a rank whose capture has no host rows: known where the device ran dry, spread evenly in between."""

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.core.units import NS_PER_US
from engine.graph.task_graph import TaskKind
from engine.replay.device_tasks import DeviceTasks
from engine.replay.dispatch import Dispatch
from engine.trace.strings import ABSENT

STARVED_NS = 2 * NS_PER_US
"""The device had nothing to do for longer than it takes to switch tasks: the next one had not been launched."""


def starved(tasks: DeviceTasks) -> BoolArray:
    """Returns before which tasks the whole device was idle, bool, shape (n,): they started when they were launched."""
    order = np.argsort(tasks.start_ns, kind="stable")
    start_ns, end_ns = tasks.start_ns[order], tasks.end_ns[order]
    reach_ns = np.maximum.accumulate(end_ns)
    answer = np.zeros(len(tasks), dtype=np.bool_)
    answer[order[1:]] = start_ns[1:] - reach_ns[:-1] > STARVED_NS
    answer[order[:1]] = True
    return answer


def spread_chain(tasks: DeviceTasks) -> Dispatch:
    """Returns a chain with one launch per device task."""
    order = np.argsort(tasks.start_ns, kind="stable")
    dry = starved(tasks)[order]
    start_ns = tasks.start_ns[order]
    anchors = np.flatnonzero(dry)
    index = np.arange(len(order))
    even_ns = np.interp(index, anchors, start_ns[anchors]).astype(np.int64)
    launched_ns: Int64Array = np.maximum.accumulate(np.minimum(even_ns, start_ns))
    launched_by = np.empty(len(order), dtype=np.int32)
    launched_by[order] = index
    return Dispatch(
        kind=np.full(len(order), TaskKind.HOST, dtype=np.uint8),
        end_ns=launched_ns,
        event=np.full(len(order), ABSENT, dtype=np.int32),
        awaited=np.full(len(order), ABSENT, dtype=np.int32),
        inferred=np.zeros(len(order), dtype=np.uint8),
        launched_by=launched_by,
        latency_ns=0,
        switch_ns=0,
    )
