"""The columns of a trace: frozen tables over read-only numpy arrays.

Times are int64 ns from the trace start, ranges half-open. Absent index = −1. Text is an int32 id into the trace's
string table. Every table can be memory-mapped: its columns are its dataclass fields that hold arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from engine.core.arrays import AnyArray, Float64Array, Int32Array, Int64Array, UInt8Array, read_only

INSTANT = np.uint8(1)
"""Event flag: a point in time, not a slice of zero length."""
UNFINISHED = np.uint8(2)
"""Event flag: the end was not recorded; the duration reaches to the end of the trace."""


class _Columns:
    """Gives a frozen dataclass of equally long columns a length, and makes the columns read-only."""

    __slots__ = ()

    def __post_init__(self) -> None:
        lengths = set()
        for item in fields(self):  # type: ignore[arg-type]  # mixed into dataclasses only
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, item.name, read_only(value))
                lengths.add(len(value))
        if len(lengths) > 1:
            message = f"{type(self).__name__} has columns of different lengths: {sorted(lengths)}"
            raise ValueError(message)

    def __len__(self) -> int:
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                return len(value)
        return 0


@dataclass(frozen=True, slots=True, eq=False)
class EventTable(_Columns):
    """Slices and instants, sorted by (track, start, −duration, file order). All columns shape (n,).

    Attributes:
        start_ns: int64, from the trace start.
        duration_ns: int64, ≥ 0; 0 for instants.
        track: int32, index into ``Trace.tracks``.
        depth: int32, row inside the track: 0 outermost; slices that overlap without nesting get rows of their own.
        parent: int32, event index of the innermost slice of the same track that contains this one, or −1.
        name: int32 string id.
        category: int32 string id of the source's own word (``"cpu_op"``, ``"kernel"``, ``"AI_CORE"``), or −1.
        correlation: int64, equal on a launch and the device tasks it launched, or −1.
        args_offset: int64, opaque key for ``Trace.arguments``, or −1.
        flags: uint8, INSTANT | UNFINISHED.
    """

    start_ns: Int64Array
    duration_ns: Int64Array
    track: Int32Array
    depth: Int32Array
    parent: Int32Array
    name: Int32Array
    category: Int32Array
    correlation: Int64Array
    args_offset: Int64Array
    flags: UInt8Array

    @property
    def end_ns(self) -> Int64Array:
        """int64, shape (n,): the first ns after each event (computed)."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True, slots=True, eq=False)
class FlowTable(_Columns):
    """Arrows between events. int32 columns, shape (n,).

    Attributes:
        source: Event index.
        target: Event index.
        kind: String id of the flow category (``"async_npu"``, ``"HostToDevice"``, ``"ac2g"``, ``"fwdbwd"`` …).
    """

    source: Int32Array
    target: Int32Array
    kind: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class KernelTable(_Columns):
    """What a capture says of device kernels beyond their times. Shape (n,), one row per described event.

    Attributes:
        event: int32 event index; ascending.
        op_type: int32 string id (``"MatMulV3"``), or −1.
        core_type: int32 string id of the accelerator core as the kernel table spells it, or −1.
        input_shapes: int32 string id of the source text (``"4096,3072;1024,3072"``), or −1.
        input_types: int32 string id (``"DT_BF16;DT_BF16"``), or −1.
        output_shapes: int32 string id, or −1.
        output_types: int32 string id, or −1.
        block_count: int32 cores used, or −1.
        step: int32 profiler step, or −1.
    """

    event: Int32Array
    op_type: Int32Array
    core_type: Int32Array
    input_shapes: Int32Array
    input_types: Int32Array
    output_shapes: Int32Array
    output_types: Int32Array
    block_count: Int32Array
    step: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveTable(_Columns):
    """Communication operators as the capture describes them. Shape (n,), by start.

    Attributes:
        event: int32 event index on the timeline, or −1.
        name: int32 string id (``"hcom_allReduce__271_0_1"``).
        group: int32 string id of the communication group (hash or name), or −1.
        start_ns: int64.
        elapsed_ns: int64, from the start on this rank to the end.
        bytes: int64 payload, or −1.
        vendor_transit_ns: int64, the profiler's own split, or −1.
        vendor_wait_ns: int64, or −1.
        vendor_synchronization_ns: int64, or −1.
        vendor_idle_ns: int64, or −1.
        step: int32 profiler step, or −1.
    """

    event: Int32Array
    name: Int32Array
    group: Int32Array
    start_ns: Int64Array
    elapsed_ns: Int64Array
    bytes: Int64Array
    vendor_transit_ns: Int64Array
    vendor_wait_ns: Int64Array
    vendor_synchronization_ns: Int64Array
    vendor_idle_ns: Int64Array
    step: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class LinkTable(_Columns):
    """What collectives moved over each kind of link. Shape (n,).

    Attributes:
        collective: int32 index into the CollectiveTable.
        link: int32 string id (``"HCCS"``, ``"RDMA"``, ``"SDMA"`` …).
        bytes: int64.
        transit_ns: int64.
        large_packet_ratio: float64, share of transfers above the vendor's threshold; NaN where absent.
    """

    collective: Int32Array
    link: Int32Array
    bytes: Int64Array
    transit_ns: Int64Array
    large_packet_ratio: Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class AllocationTable(_Columns):
    """Blocks handed out by the framework's allocator, by allocation time. Shape (n,).

    Attributes:
        address: int64, or −1 where the source records none.
        size_bytes: int64, as the allocator rounded it.
        requested_bytes: int64, as asked for, or −1.
        allocated_at_ns: int64, or −1 for blocks older than the capture with an unknown birth.
        freed_at_ns: int64, when the framework freed it; −1 while alive at the end.
        released_at_ns: int64, when the block was reusable again; −1 where unknown or alive.
        operator: int32 string id of the innermost operator, or −1.
        event: int32 event index of that operator, or −1.
        stream: int64 stream id or pointer, or −1.
        device: int32 device number, or −1 for the host.
    """

    address: Int64Array
    size_bytes: Int64Array
    requested_bytes: Int64Array
    allocated_at_ns: Int64Array
    freed_at_ns: Int64Array
    released_at_ns: Int64Array
    operator: Int32Array
    event: Int32Array
    stream: Int64Array
    device: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCurve(_Columns):
    """One recorded history of totals, by time. int64 columns, shape (n,); −1 where the source left a cell empty.

    Attributes:
        component: ``"PTA"`` (the PyTorch allocator), ``"GE"``, ``"PTA+GE"``, ``"APP"`` (the process as the driver
            sees it), ``"WORKSPACE"``; allocators of other frameworks keep their names.
        device: Device number, or −1 for the host.
        time_ns: From the trace start.
        allocated_bytes: In use by tensors.
        reserved_bytes: Taken from the driver.
        active_bytes: In use, or freed and waiting for another stream.
    """

    component: str
    device: int
    time_ns: Int64Array
    allocated_bytes: Int64Array
    reserved_bytes: Int64Array
    active_bytes: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class MemoryLog:
    """Everything a capture says of device memory."""

    allocations: AllocationTable
    curves: tuple[MemoryCurve, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CounterSeries(_Columns):
    """One sampled quantity over time.

    Attributes:
        track: Index of the COUNTER track it is drawn on.
        name: E.g. ``"HBM 0/Read"``.
        unit: As the source writes it, e.g. ``"MB/s"``; "" where it has none.
        time_ns: int64, shape (n,).
        value: float64, shape (n,).
    """

    track: int
    name: str
    unit: str
    time_ns: Int64Array
    value: Float64Array


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTable:
    """A summary table of the capture, as it stands in the file: for display and for checking ourselves.

    Attributes:
        name: File stem, e.g. ``"step_trace_time"``.
        numbers: Column title → float64, shape (n,); NaN for empty or N/A cells.
        texts: Column title → int32 string ids, shape (n,); −1 for empty cells.
        columns: All titles in file order.
    """

    name: str
    numbers: Mapping[str, Float64Array]
    texts: Mapping[str, Int32Array]
    columns: tuple[str, ...]

    def __len__(self) -> int:
        columns: list[AnyArray] = [*self.numbers.values(), *self.texts.values()]
        return len(columns[0]) if columns else 0


def empty_columns(table_type: type) -> dict[str, AnyArray]:
    """Returns empty arrays of the right dtype for every array field of ``table_type``."""
    empty = {}
    dtypes = {"Int64Array": np.int64, "Int32Array": np.int32, "UInt8Array": np.uint8, "Float64Array": np.float64}
    by_alias = {Int64Array: np.int64, Int32Array: np.int32, UInt8Array: np.uint8, Float64Array: np.float64}
    for item in fields(table_type):
        dtype = by_alias.get(item.type) if not isinstance(item.type, str) else dtypes.get(item.type)
        if dtype is not None:
            empty[item.name] = np.empty(0, dtype=dtype)
    return empty
