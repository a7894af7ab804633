"""The PyTorch profiler's ``[memory]`` instants as allocations and curves of totals."""

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.core.errors import SourcePosition
from engine.formats.events.trace_events import ABSENT_TIME_NS, MemoryInstants
from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import Severity
from engine.trace.tables import AllocationTable, MemoryCurve

_HOST_TYPE = 0
_DEVICE_TYPES = (1, 6, 12, 19, 20)
"""CUDA, HIP, XPU, MTIA, and PrivateUse1, which is the NPU (torch/headeronly/core/DeviceType.h)."""
COMPONENT = "PTA"
NET_COMPONENT = "PTA net change"


def add_memory(
    builder: TraceBuilder,
    memory: MemoryInstants,
    time_ns: Int64Array,
    event: Int64Array,
    operator: Int32Array,
    position: SourcePosition,
) -> None:
    """Adds allocations and curves to ``builder``.

    Args:
        builder: Receives them.
        memory: The instants in file order, which is per thread.
        time_ns: int64, shape (n,), absolute time of each, ABSENT_TIME_NS where it has none.
        event: int64, shape (n,), provisional id of the innermost operator around each, or −1.
        operator: int32, shape (n,), its name, or −1.
        position: Where to say problems were found.
    """
    on_device = np.isin(memory.device_type, _DEVICE_TYPES)
    usable = (on_device | (memory.device_type == _HOST_TYPE)) & (time_ns != ABSENT_TIME_NS) & (memory.bytes != 0)
    message = "memory events of an unknown device type, or without time or size"
    builder.diagnostics.add(
        "unusable-memory-event",
        Severity.DATA_LOSS,
        message,
        count=int(np.count_nonzero(~usable)),
        position=position,
    )
    device = np.where(on_device, memory.device, -1)
    rows = np.flatnonzero(usable)
    rows = rows[np.argsort(time_ns[rows], kind="stable")]
    for number in np.unique(device[rows]).tolist():
        chosen = rows[device[rows] == number]
        builder.curves.append(_curve(builder, memory, chosen, time_ns[chosen], number, position))
    builder.allocations = _allocations(builder, memory, rows, device, time_ns, event, operator, position)


def _curve(
    builder: TraceBuilder,
    memory: MemoryInstants,
    rows: Int64Array,
    time_ns: Int64Array,
    device: int,
    position: SourcePosition,
) -> MemoryCurve:
    """Returns the recorded totals; traces of 2021 record none, their sizes only give the change since the start."""
    allocated = memory.total_allocated_bytes[rows]
    reserved = memory.total_reserved_bytes[rows]
    absent = np.full(len(rows), -1, dtype=np.int64)
    if np.any(allocated >= 0):
        return MemoryCurve(COMPONENT, device, time_ns, allocated, reserved if device >= 0 else absent, absent)
    net = np.cumsum(memory.bytes[rows])
    message = "memory events state no totals; the curve is the change in use, its lowest point drawn as 0"
    builder.diagnostics.add("memory-without-totals", Severity.NOTICE, message, count=len(rows), position=position)
    return MemoryCurve(NET_COMPONENT, device, time_ns, net - min(int(net.min()), 0), absent, absent)


def _allocations(
    builder: TraceBuilder,
    memory: MemoryInstants,
    rows: Int64Array,
    device: Int64Array,
    time_ns: Int64Array,
    event: Int64Array,
    operator: Int32Array,
    position: SourcePosition,
) -> AllocationTable:
    """Pairs allocations and frees by device and address, in time order.

    A free without an allocation is a block older than the capture; an address handed out again although its free was
    not recorded was free by then.
    """
    rows = rows[memory.address[rows] != -1]
    order = rows[np.lexsort((np.arange(len(rows)), memory.address[rows], device[rows]))]
    is_allocation = memory.bytes[order] > 0
    same_block = _same_as_next(memory.address[order]) & _same_as_next(device[order])
    next_ns = np.append(time_ns[order][1:], -1)
    follows_allocation = np.append(False, (same_block & is_allocation)[:-1]) if len(order) else is_allocation
    freed = is_allocation & same_block
    reused = freed & np.append(is_allocation[1:], False)
    older = ~is_allocation & ~follows_allocation
    for code, message, count in (
        ("memory-free-not-recorded", "blocks whose address was handed out again without a recorded free", reused),
        ("memory-older-than-capture", "blocks freed in the capture and allocated before it", older),
    ):
        number = int(np.count_nonzero(count))
        builder.diagnostics.add(code, Severity.NOTICE, message, count=number, position=position)
    kept = is_allocation | older
    chosen = order[kept]
    freed_at_ns = np.where(is_allocation, np.where(freed, next_ns, -1), time_ns[order])[kept]
    born = np.where(is_allocation, time_ns[order], -1)[kept]
    by_birth = np.argsort(born, kind="stable")
    chosen, freed_at_ns, born = chosen[by_birth], freed_at_ns[by_birth], born[by_birth]
    absent = np.full(len(chosen), -1, dtype=np.int64)
    allocated_here = born != -1
    return AllocationTable(
        address=memory.address[chosen],
        size_bytes=np.abs(memory.bytes[chosen]),
        requested_bytes=absent,
        allocated_at_ns=born,
        freed_at_ns=freed_at_ns,
        released_at_ns=absent,
        operator=np.where(allocated_here, operator[chosen], -1).astype(np.int32),
        event=np.where(allocated_here, event[chosen], -1).astype(np.int32),
        stream=absent,
        device=device[chosen].astype(np.int32),
    )


def _same_as_next(column: Int64Array) -> BoolArray:
    """Returns whether each entry equals the next one; False for the last."""
    same: BoolArray = np.append(column[1:] == column[:-1], np.zeros(min(len(column), 1), dtype=np.bool_))
    return same
