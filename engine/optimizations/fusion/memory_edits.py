"""What fusing does to a rank's memory log: blocks of intermediates that are no longer asked for."""

import numpy as np

from engine.analyses.launches import operator_events
from engine.core.arrays import BoolArray, Int32Array
from engine.optimizations.interface import AllocationEdit
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace


def without_blocks_of(trace: Trace, events: Int32Array, before: AllocationEdit | None) -> AllocationEdit | None:
    """Returns the log without the blocks allocated inside the operators that launched kernels, None where none is told.

    Args:
        trace: The rank's run.
        events: int32: kernels that are gone with their results.
        before: What other optimizations have changed already.
    """
    table = trace.memory.allocations
    if len(table) == 0 or len(events) == 0:
        return before
    gone = _allocated_inside(trace, events)
    if not np.any(gone):
        return before
    sizes = table.size_bytes if before is None else before.size_bytes
    freed = table.freed_at_ns if before is None else before.freed_at_ns
    return AllocationEdit(np.where(gone, 0, sizes), freed.copy())


def _allocated_inside(trace: Trace, events: Int32Array) -> BoolArray:
    """Returns which blocks were asked for by the operator behind one of the kernels, bool, shape (blocks,)."""
    operators = operator_events(trace)
    is_gone = np.zeros(len(operators), dtype=np.bool_)
    is_gone[events] = True
    known = operators != ABSENT
    spared = np.zeros(len(operators) + 1, dtype=np.bool_)  # the last entry answers for −1
    spared[operators[is_gone & known]] = True
    # An operator that also launched a kernel that stays still needs its blocks.
    spared[operators[~is_gone & known]] = False
    return spared[trace.memory.allocations.event]
