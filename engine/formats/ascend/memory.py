"""memory_record.csv and operator_memory.csv: the allocators' curves and every block they handed out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.core.errors import SourcePosition, TraceReadError
from engine.core.number_text import digits_to_int
from engine.core.units import KIB, MIB, NS_PER_US
from engine.formats.events.grouped_search import group_bounds, last_not_after
from engine.formats.reader import ReadContext
from engine.formats.tables.csv_table import CellKind, Column, TableColumns, read_columns
from engine.trace.builder import concatenate
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT, StringInterner
from engine.trace.tables import AllocationTable, MemoryCurve

_CURVE_COLUMNS = (
    Column("component", CellKind.TEXT, {"Component": 1}, needed=True),
    Column("time", CellKind.DECIMAL, {"Timestamp(us)": NS_PER_US}, needed=True),
    # torch_npu writes MB and means MiB, msprof writes KB and means KiB.
    Column("allocated", CellKind.DECIMAL, {"Total Allocated(MB)": MIB, "Total Allocated(KB)": KIB}),
    Column("reserved", CellKind.DECIMAL, {"Total Reserved(MB)": MIB, "Total Reserved(KB)": KIB}),
    Column("active", CellKind.DECIMAL, {"Total Active(MB)": MIB, "Total Active(KB)": KIB}),
    Column("device", CellKind.TEXT, {"Device Type": 1, "Device": 1}),
    Column("device_id", CellKind.DECIMAL, {"Device_id": 1}),
)
_BLOCK_COLUMNS = (
    Column("operator", CellKind.TEXT, {"Name": 1}),
    Column("size", CellKind.DECIMAL, {"Size(KB)": KIB, "Size(MB)": MIB}, needed=True),
    Column("allocated", CellKind.DECIMAL, {"Allocation Time(us)": NS_PER_US}),
    Column("freed", CellKind.DECIMAL, {"Release Time(us)": NS_PER_US}),
    Column("released", CellKind.DECIMAL, {"Active Release Time(us)": NS_PER_US}),
    Column("stream", CellKind.DECIMAL, {"Stream Ptr": 1}),
    Column("device", CellKind.TEXT, {"Device Type": 1, "Device": 1}),
    Column("device_id", CellKind.DECIMAL, {"Device_id": 1}),
    # Only captures of the simulated runtime have these two.
    Column("requested", CellKind.DECIMAL, {"Requested Size(KB)": KIB}),
    Column("address", CellKind.DECIMAL, {"Address": 1}),
)
_MAX_NESTED_CALLS = 16


def read_curves(
    paths: Sequence[Path], strings: StringInterner, log: DiagnosticLog, context: ReadContext
) -> list[MemoryCurve]:
    """Returns one curve per component and device, sorted by time (rows of a file stand in blocks per component)."""
    tables = _read_all(paths, _CURVE_COLUMNS, strings, log, context)
    if not tables:
        return []
    component = np.concatenate([table.text("component") for table in tables])
    device = np.concatenate([_devices(table, strings) for table in tables])
    columns = {key: _joined(tables, key) for key in ("time", "allocated", "reserved", "active")}
    words = strings.table()
    curves = []
    series = (component.astype(np.int64) << 32) | (device.astype(np.int64) + 1)
    keys, first = np.unique(series, return_index=True)
    for key in keys[np.argsort(first)]:
        context.cancel.check()
        rows = np.flatnonzero(series == key)
        name, number = words.text(component[rows[0]]), int(device[rows[0]])
        rows = rows[np.argsort(columns["time"][rows], kind="stable")]
        totals = {key: columns[key][rows] for key in ("allocated", "reserved", "active")}
        if name.startswith("MindSpore"):
            totals = {key: _mindspore_bytes(total) for key, total in totals.items()}
        curves.append(
            MemoryCurve(
                component=name,
                device=number,
                time_ns=columns["time"][rows],
                allocated_bytes=totals["allocated"],
                reserved_bytes=totals["reserved"],
                active_bytes=totals["active"],
            )
        )
    return curves


def read_allocations(
    paths: Sequence[Path], strings: StringInterner, log: DiagnosticLog, context: ReadContext
) -> AllocationTable | None:
    """Returns every block by allocation time, with absolute times and ``event`` −1; None where there is no table.

    Rows without a release are alive at the end. Rows whose allocation lies before the capture have no allocation time.
    """
    tables = _read_all(paths, _BLOCK_COLUMNS, strings, log, context)
    if not tables:
        return None
    allocations = concatenate([_blocks(table, strings, log) for table in tables])
    order = np.argsort(allocations.allocated_at_ns, kind="stable")
    return AllocationTable(**{key: getattr(allocations, key)[order] for key in AllocationTable.__dataclass_fields__})


def link_to_operators(
    allocations: AllocationTable, event: Int64Array, name: Int32Array, start_ns: Int64Array, end_ns: Int64Array
) -> Int64Array:
    """Returns the innermost operator of the right name around each allocation: provisional ids, int64, −1 for none.

    Args:
        allocations: Blocks with absolute times.
        event: int64, shape (n,): provisional ids of host operators.
        name: int32, shape (n,).
        start_ns: int64, shape (n,), absolute.
        end_ns: int64, shape (n,).
    """
    order = np.lexsort((start_ns, name))
    event, name, start_ns, end_ns = event[order], name[order], start_ns[order], end_ns[order]
    low, high = group_bounds(name, allocations.operator)
    found = np.full(len(allocations), ABSENT, dtype=np.int64)
    wanted = np.flatnonzero((high > low) & (allocations.allocated_at_ns != ABSENT))
    candidate = last_not_after(start_ns, low[wanted], high[wanted], allocations.allocated_at_ns[wanted])
    # Calls of one operator nest a few deep at most (other threads included), so the one around a moment is among the
    # last few that began before it.
    for _ in range(_MAX_NESTED_CALLS):
        inside = (candidate >= low[wanted]) & (end_ns[candidate] > allocations.allocated_at_ns[wanted])
        found[wanted[inside]] = event[candidate[inside]]
        wanted, candidate = wanted[~inside], candidate[~inside] - 1
        keep = candidate >= low[wanted]
        wanted, candidate = wanted[keep], candidate[keep]
    return found


def _read_all(
    paths: Sequence[Path],
    wanted: Sequence[Column],
    strings: StringInterner,
    log: DiagnosticLog,
    context: ReadContext,
) -> list[TableColumns]:
    tables = []
    for path, stage in zip(paths, context.parts(len(paths)), strict=True):
        try:
            tables.append(read_columns(path, wanted, strings, log, stage))
        except (TraceReadError, OSError) as error:
            log.add("unreadable-file", Severity.ERROR, str(error), position=SourcePosition(path))
    return tables


def _joined(tables: list[TableColumns], key: str) -> Int64Array:
    return np.concatenate([table.decimal(key) for table in tables])


def _mindspore_bytes(total: Int64Array) -> Int64Array:
    """Returns the bytes of MindSpore's own allocator, whose MB are KiB ÷ 1000 and were read as MiB."""
    return np.where(total == ABSENT, ABSENT, np.rint(total * (1000 / 1024)).astype(np.int64))


def _devices(table: TableColumns, strings: StringInterner) -> Int32Array:
    """Returns the device number of each row: of ``NPU:0``, else of Device_id; −1 for the host or none."""
    column = table.text("device")
    numbers = table.number("device_id")
    words = strings.table()
    for word in np.unique(column).tolist():
        _, _, number = words[word].rpartition(":") if word >= 0 else ("", "", "")
        if number.isdecimal():
            numbers[column == word] = digits_to_int(number, ABSENT)
    return numbers


def _blocks(table: TableColumns, strings: StringInterner, log: DiagnosticLog) -> AllocationTable:
    allocated_ns, freed_ns = table.decimal("allocated"), table.decimal("freed")
    size_bytes = table.decimal("size")
    log.add(
        "allocated-before-capture",
        Severity.NOTICE,
        "blocks were freed in the capture and allocated before it: when is not known",
        count=int(np.count_nonzero(allocated_ns < 0)),
    )
    reversed_times = (freed_ns != ABSENT) & (allocated_ns >= 0) & (freed_ns < allocated_ns)
    log.add(
        "freed-before-allocated",
        Severity.NOTICE,
        "blocks have a release before their allocation: when they were allocated is not known",
        count=int(np.count_nonzero(reversed_times)),
    )
    count = len(table)
    return AllocationTable(
        address=table.decimal("address"),
        size_bytes=np.maximum(size_bytes, 0),
        requested_bytes=table.decimal("requested"),
        allocated_at_ns=np.where(reversed_times | (allocated_ns < 0), ABSENT, allocated_ns),
        freed_at_ns=freed_ns,
        released_at_ns=table.decimal("released"),
        operator=table.text("operator"),
        event=np.full(count, ABSENT, dtype=np.int32),
        stream=table.decimal("stream"),
        device=_devices(table, strings),
    )
