"""The cause of each device gap of a capture without host rows, from the allocator's clock.

The framework allocates an operator's outputs on the host just before it launches the operator, so the moments of
allocations and frees show when the host was at work:

* The allocator was silent for at least 1 ms before the gap began and the device worked nearly all of that time: the
  host waited for the device (in Megatron's ``batch_p2p_sync`` the allocator is silent through every receive) and then
  had nothing queued: HOST_SYNCHRONIZATION.
* It was at work during the gap, or so shortly before that the next launch was still on its way: HOST_SLOW.
* Else UNKNOWN.
"""

import numpy as np

from engine.analyses.idle.device_gaps import DeviceGaps
from engine.analyses.idle.verdicts import IdleCause, IdleVerdicts
from engine.core.arrays import Int64Array
from engine.trace.intervals import Intervals, covered_ns
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

SILENCE_NS = 1_000_000
"""Operators that allocate follow each other by a median of 90 µs, nine in ten within 1 ms (CNN captures)."""
LAUNCH_DELAY_NS = 200_000
"""From an allocation to the next launch pass 95–125 µs at the median of the CNN captures, whose host rows show it."""
WORKED_RATIO = 0.9
_FRAMEWORK = "PTA"


def causes_from_allocations(trace: Trace, gaps: DeviceGaps) -> IdleVerdicts:
    """Returns the cause of every gap; all UNKNOWN where the capture holds no allocator history either."""
    verdicts = IdleVerdicts(len(gaps))
    moment_ns = allocator_moments(trace)
    if len(moment_ns) == 0:
        return verdicts
    none = np.full(len(gaps), ABSENT, dtype=np.int32)
    before = np.searchsorted(moment_ns, gaps.start_ns, side="left") - 1
    silent_from_ns = moment_ns[np.maximum(before, 0)]
    silence_ns = gaps.start_ns - silent_from_ns
    idle_ns = covered_ns(Intervals(gaps.start_ns, gaps.end_ns), silent_from_ns, gaps.start_ns)
    waited = (before >= 0) & (silence_ns >= SILENCE_NS) & (idle_ns <= (1 - WORKED_RATIO) * silence_ns)
    last = np.searchsorted(moment_ns, gaps.end_ns, side="left") - 1
    at_work = (last >= 0) & (moment_ns[np.maximum(last, 0)] >= gaps.start_ns - LAUNCH_DELAY_NS)
    verdicts.decide(waited, none, IdleCause.HOST_SYNCHRONIZATION)
    verdicts.decide(at_work, none, IdleCause.HOST_SLOW)
    return verdicts


def allocator_moments(trace: Trace) -> Int64Array:
    """Returns when the framework's allocator was called, int64 ns, ascending."""
    log = trace.memory
    times = [log.allocations.allocated_at_ns, log.allocations.freed_at_ns]
    times += [curve.time_ns for curve in log.curves if curve.component == _FRAMEWORK and curve.device >= 0]
    moments = np.concatenate(times)
    return np.unique(moments[moments != ABSENT])
