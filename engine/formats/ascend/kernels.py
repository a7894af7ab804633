"""kernel_details.csv (torch_npu) and op_summary_*.csv (msprof): the device's tasks as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.core.errors import SourcePosition, TraceReadError
from engine.core.units import MAX_DURATION_NS, NS_PER_US
from engine.formats.ascend.layout import NO_ID
from engine.formats.reader import ReadContext
from engine.formats.tables.csv_table import CellKind, Column, TableColumns, read_columns
from engine.trace.builder import take
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT, StringInterner
from engine.trace.tables import KernelTable

COMMUNICATION_CORES = ("HCCL", "COMMUNICATION")
"""What the table calls the core of communication operators: HCCL up to CANN 8.1, COMMUNICATION later."""

_COLUMNS = (
    Column("start", CellKind.DECIMAL, {"Start Time(us)": NS_PER_US, "Task Start Time(us)": NS_PER_US}, needed=True),
    Column("duration", CellKind.DECIMAL, {"Duration(us)": NS_PER_US, "Task Duration(us)": NS_PER_US}, needed=True),
    Column("name", CellKind.TEXT, {"Name": 1, "Op Name": 1}, needed=True),
    Column("op_type", CellKind.TEXT_OR_NONE, {"Type": 1, "OP Type": 1}),
    Column("core_type", CellKind.TEXT_OR_NONE, {"Accelerator Core": 1, "Task Type": 1}),
    Column("stream", CellKind.DECIMAL, {"Stream ID": 1}),
    Column("task", CellKind.DECIMAL, {"Task ID": 1}),
    Column("device", CellKind.DECIMAL, {"Device_id": 1}),
    Column("step", CellKind.DECIMAL, {"Step Id": 1}),
    Column("block_count", CellKind.DECIMAL, {"Block Dim": 1, "Block Num": 1}),
    Column("input_shapes", CellKind.TEXT_OR_NONE, {"Input Shapes": 1}, strip='"'),
    Column("input_types", CellKind.TEXT_OR_NONE, {"Input Data Types": 1}, strip='"'),
    Column("output_shapes", CellKind.TEXT_OR_NONE, {"Output Shapes": 1}, strip='"'),
    Column("output_types", CellKind.TEXT_OR_NONE, {"Output Data Types": 1}, strip='"'),
)
_ROW_COLUMNS = ("start_ns", "duration_ns", "name", "stream", "device", "is_communication", "row")
_TEXTS = ("op_type", "core_type", "input_shapes", "input_types", "output_shapes", "output_types")


@dataclass(frozen=True, slots=True, eq=False)
class KernelRows:
    """Device tasks in file order, one entry per usable row of all slices. All columns shape (n,).

    Attributes:
        start_ns: int64, absolute.
        duration_ns: int64, ≥ 0.
        name: int32 string id.
        stream: int64, −1 where the table has none.
        device: int32, −1 where the table has none.
        is_communication: bool: a communication operator, which stands on no stream.
        row: int64: number of the row among the complete rows of all slices.
        table: Everything else; its ``event`` column is −1.
    """

    start_ns: Int64Array
    duration_ns: Int64Array
    name: Int32Array
    stream: Int64Array
    device: Int32Array
    is_communication: BoolArray
    row: Int64Array
    table: KernelTable

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, index: Int64Array) -> "KernelRows":
        """Returns the given rows."""
        columns = {key: getattr(self, key)[index] for key in _ROW_COLUMNS}
        return KernelRows(**columns, table=take(self.table, index))


def read_kernels(
    paths: Sequence[Path], strings: StringInterner, log: DiagnosticLog, context: ReadContext
) -> KernelRows | None:
    """Returns the rows of one kernel table in one or several slices; None where there is none.

    A slice that cannot be read is an ERROR diagnostic; the others are used.
    """
    parts: list[TableColumns] = []
    first_rows: list[int] = []
    complete_rows = 0
    for path, stage in zip(paths, context.parts(len(paths)), strict=True):
        try:
            part = read_columns(path, _COLUMNS, strings, log, stage)
        except (TraceReadError, OSError) as error:
            log.add("unreadable-file", Severity.ERROR, str(error), position=SourcePosition(path))
            continue
        parts.append(part)
        first_rows.append(complete_rows)
        complete_rows += part.complete_rows
    if not parts:
        return None
    rows = _merge(parts, first_rows, strings, log)
    _look_for_spreadsheet_times(rows, paths[0], log)
    return rows


def _merge(parts: list[TableColumns], first_rows: list[int], strings: StringInterner, log: DiagnosticLog) -> KernelRows:
    def decimal(key: str) -> Int64Array:
        return np.concatenate([part.decimal(key) for part in parts])

    def number(key: str) -> Int32Array:
        return np.concatenate([part.number(key) for part in parts])

    texts = {key: np.concatenate([part.text(key) for part in parts]) for key in _TEXTS}
    duration_ns = decimal("duration")
    log.add(
        "negative-duration",
        Severity.NOTICE,
        "device tasks have a negative duration, taken as 0",
        count=int(np.count_nonzero(duration_ns < 0)),
    )
    endless = duration_ns > MAX_DURATION_NS
    message = "device tasks have a duration longer than any trace, taken as 0"
    log.add("unusable-duration", Severity.NOTICE, message, count=int(np.count_nonzero(endless)))
    cores = [strings.intern(word) for word in COMMUNICATION_CORES]
    count = len(duration_ns)
    return KernelRows(
        start_ns=decimal("start"),
        duration_ns=np.where(endless, 0, np.maximum(duration_ns, 0)),
        name=np.concatenate([part.text("name") for part in parts]),
        stream=_ids(number("stream")).astype(np.int64),
        device=_ids(number("device")),
        is_communication=np.isin(texts["core_type"], cores),
        row=np.concatenate([first + part.row for first, part in zip(first_rows, parts, strict=True)]),
        table=KernelTable(
            event=np.full(count, ABSENT, dtype=np.int32),
            block_count=number("block_count"),
            step=number("step"),
            **texts,
        ),
    )


def _ids(column: Int32Array) -> Int32Array:
    """Returns ids with −1 for the all-ones 16-bit word; the 32-bit one is beyond int32 and absent already."""
    return np.where(column == NO_ID, ABSENT, column).astype(np.int32)


def _look_for_spreadsheet_times(rows: KernelRows, path: Path, log: DiagnosticLog) -> None:
    """Counts a table whose times were rounded by a spreadsheet: ``1.69512E+15`` gives all rows the same start."""
    if len(rows) > 2 and np.all(rows.start_ns == rows.start_ns[0]):
        log.add(
            "rounded-times",
            Severity.DATA_LOSS,
            "all rows of the kernel table start at the same time: a spreadsheet rounded them; open the original file",
            count=len(rows),
            position=SourcePosition(path),
        )
