"""The host of one rank as one chain: what it did between two launches, and where it waited for the device."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int32Array, Int64Array, UInt8Array
from engine.core.units import NS_PER_US
from engine.replay.device_tasks import DeviceTasks

SWITCH_LIMIT_NS = 200 * NS_PER_US
"""Longer gaps between two queued tasks are no switching (87–112 µs on a 910B that collects L2 cache hits)."""
LONG_AGO_NS = int(np.iinfo(np.int64).min // 2)
"""Of what holds nothing back; sums with it do not overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """The chain of one rank, in device time: the host's clock less the clocks' difference.

    Times are later than on the host by the launch latency, so that a task whose stream is idle starts when its HOST
    task ends. Columns of shape (host tasks,) unless said otherwise.

    Attributes:
        kind: uint8, HOST or SYNCHRONIZE.
        end_ns: int64 trace time; a host task starts where the one before it ended.
        event: int32 event row of the call, −1 where none is recorded.
        awaited: int32 device task a SYNCHRONIZE waits for where the call says which, −1 otherwise.
        inferred: uint8, 1 for a wait of the host that was inferred.
        launched_by: int32, shape (device tasks,): index of the HOST task that launched each, −1 where unknown.
        latency_ns: From a launch to the start of its task on an idle stream.
        switch_ns: From the end of a task to the start of a queued one on its stream.
        shift_ns: What makes a time of the host's clock one of the chain.
    """

    kind: UInt8Array
    end_ns: Int64Array
    event: Int32Array
    awaited: Int32Array
    inferred: UInt8Array
    launched_by: Int32Array
    latency_ns: int
    switch_ns: int
    shift_ns: int = 0

    def __len__(self) -> int:
        return len(self.kind)

    def ready_ns(self) -> Int64Array:
        """Returns when each device task was on its stream, int64, shape (device tasks,); LONG_AGO_NS where unknown."""
        known = self.launched_by >= 0
        ready_ns = np.full(len(known), LONG_AGO_NS, dtype=np.int64)
        ready_ns[known] = self.end_ns[self.launched_by[known]]
        return ready_ns


def switch_time_ns(tasks: DeviceTasks, ready_ns: Int64Array) -> int:
    """Returns the median time between a task and the next of its stream, of those that were queued before it ended."""
    gap_ns = tasks.start_ns - tasks.previous_end_ns
    queued = ~tasks.is_first & (ready_ns < tasks.previous_end_ns) & (gap_ns >= 0) & (gap_ns < SWITCH_LIMIT_NS)
    return int(np.median(gap_ns[queued])) if np.any(queued) else 0
