"""Ranks whose captures show collectives and nothing else: what they did in between follows a rank that ran the same.

A shadow's collective begins some time after its twin (a rank of the same pipeline stage whose kernels are recorded)
finished a kernel. Making it wait for that kernel keeps the recorded moment and lets a change of the twin's kernels
reach the shadow, which ran the same program. All of these waits count as inferred.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.analyses.communication.collective_matching import MAX_EARLY_LEAVE_NS
from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.replay.dependencies import Waits
from engine.replay.device_tasks import DeviceTasks
from engine.replay.dispatch import LONG_AGO_NS, Dispatch


@dataclass(frozen=True, slots=True, eq=False)
class TwinWaits:
    """Waits of one rank's tasks for another rank's. Columns of shape (n,).

    Attributes:
        before: int32 device task of the twin.
        after: int32 device task of the shadow.
        end_ns: int64, when ``before`` ended, in the shadow's trace time.
    """

    before: Int32Array
    after: Int32Array
    end_ns: Int64Array

    def latest_end_ns(self, count: int) -> Int64Array:
        """Returns when the last of what each of ``count`` tasks waits for ended, int64; LONG_AGO_NS for none."""
        latest_ns = np.full(count, LONG_AGO_NS, dtype=np.int64)
        np.maximum.at(latest_ns, self.after, self.end_ns)
        return latest_ns


def no_host(tasks: DeviceTasks) -> Dispatch:
    """Returns the chain of a rank whose host is not known at all."""
    nothing = np.empty(0, dtype=np.int32)
    return Dispatch(
        kind=nothing.astype(np.uint8),
        end_ns=nothing.astype(np.int64),
        event=nothing,
        awaited=nothing,
        inferred=nothing.astype(np.uint8),
        launched_by=np.full(len(tasks), -1, dtype=np.int32),
        latency_ns=0,
        switch_ns=0,
    )


def program_order(tasks: DeviceTasks) -> Waits:
    """Returns that each collective waits for the one before it, of whatever group, if that had ended."""
    order = np.argsort(tasks.start_ns, kind="stable")
    before, after = order[:-1], order[1:]
    fits = (tasks.end_ns[before] <= tasks.start_ns[after]) & (tasks.queue[before] != tasks.queue[after])
    return Waits(before[fits].astype(np.int32), after[fits].astype(np.int32), np.ones(int(fits.sum()), dtype=np.uint8))


def twin_of(rank: int, stages: Mapping[int, int], shown: Mapping[int, bool]) -> int | None:
    """Returns the nearest rank of the same stage whose kernels are recorded, None where there is none.

    Args:
        rank: A shadow.
        stages: Pipeline stage by rank.
        shown: By rank: whether its kernels are recorded.
    """
    fits = [other for other, kernels in shown.items() if kernels and stages.get(other) == stages.get(rank)]
    return min(fits, key=lambda other: (abs(other - rank), other), default=None)


def twin_waits(shadow: DeviceTasks, twin: DeviceTasks, computes: BoolArray, shift_ns: int) -> TwinWaits:
    """Returns for each collective of a shadow the last kernel its twin had finished when it began.

    Args:
        shadow: Its tasks.
        twin: Tasks of the rank it follows.
        computes: bool, shape (twin's tasks,): which of them run on the cores.
        shift_ns: Shadow's trace time less the twin's.
    """
    kernels = np.flatnonzero(computes)
    kernels = kernels[np.argsort(twin.end_ns[kernels], kind="stable")]
    ends_ns = twin.end_ns[kernels] + shift_ns
    # A kernel that waited for the collective itself may seem to end before it begins: clocks are joined with an error.
    place = np.searchsorted(ends_ns, shadow.start_ns - MAX_EARLY_LEAVE_NS, side="right") - 1
    after = np.flatnonzero(place >= 0)
    return TwinWaits(kernels[place[after]].astype(np.int32), after.astype(np.int32), ends_ns[place[after]])
