"""A trace as a directory of ``.npy`` columns and one JSON header: written whole, re-opened memory-mapped.

This is how a trace crosses from the importing process to the window, and how a second opening is fast. It is a
private format of this release (``STORAGE_VERSION``), never an interchange format.
"""

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from engine.core.arrays import AnyArray
from engine.core.errors import SourcePosition
from engine.trace.diagnostics import Diagnostic, Severity
from engine.trace.strings import StringTable
from engine.trace.tables import (
    AllocationTable,
    CollectiveTable,
    CounterSeries,
    EventTable,
    FlowTable,
    KernelTable,
    LinkTable,
    MemoryCurve,
    MemoryLog,
    RecordedTable,
)
from engine.trace.trace import Origin, ParallelGroup, Source, TimeRange, Trace, TraceMetadata
from engine.trace.tracks import Track, TrackKind

STORAGE_VERSION = 1
UNFINISHED_PREFIX = ".writing-"
"""How names begin of directories that are still being written, or were left behind by a process that was killed."""
_HEADER = "trace.json"
Table = TypeVar("Table")


def save_trace(trace: Trace, directory: Path) -> None:
    """Writes ``trace`` to ``directory``, which appears complete or not at all.

    Raises OSError where the place cannot be written.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=UNFINISHED_PREFIX, dir=directory.parent))
    try:
        _write(trace, scratch)
        if directory.exists():
            shutil.rmtree(directory)
        scratch.replace(directory)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def load_trace(directory: Path) -> Trace:
    """Returns the trace stored in ``directory``, its columns memory-mapped, without an argument decoder.

    Raises OSError or ValueError where the directory is missing, incomplete or of another version.
    """
    header = json.loads((directory / _HEADER).read_text(encoding="utf-8"))
    if header["version"] != STORAGE_VERSION:
        message = f"stored trace has version {header['version']}, not {STORAGE_VERSION}"
        raise ValueError(message)
    columns = _Columns(directory)
    return Trace(
        origin=Origin(header["origin"]),
        source=Source(header["source"]["path"], header["source"]["format"], tuple(header["source"]["files"])),
        metadata=_metadata(header["metadata"]),
        time_range=TimeRange(*header["time_range"]),
        strings=StringTable(columns["strings.data"], columns["strings.offsets"]),
        tracks=tuple(Track(**{**track, "kind": TrackKind(track["kind"])}) for track in header["tracks"]),
        events=columns.table(EventTable, "events"),
        flows=columns.table(FlowTable, "flows"),
        kernels=columns.table(KernelTable, "kernels"),
        collectives=columns.table(CollectiveTable, "collectives"),
        links=columns.table(LinkTable, "links"),
        memory=MemoryLog(
            columns.table(AllocationTable, "allocations"),
            tuple(
                columns.table(MemoryCurve, f"curve{index}", **scalars) for index, scalars in enumerate(header["curves"])
            ),
        ),
        counters=tuple(
            columns.table(CounterSeries, f"counter{index}", **scalars)
            for index, scalars in enumerate(header["counters"])
        ),
        tables={
            item["name"]: RecordedTable(
                item["name"],
                {title: columns[f"table{index}.number{column}"] for column, title in enumerate(item["numbers"])},
                {title: columns[f"table{index}.text{column}"] for column, title in enumerate(item["texts"])},
                tuple(item["columns"]),
            )
            for index, item in enumerate(header["tables"])
        },
        diagnostics=tuple(_diagnostic(item) for item in header["diagnostics"]),
    )


class _Columns(Mapping[str, AnyArray]):
    """Memory-maps the columns of a stored trace by name. Empty columns live in memory: they cannot be mapped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __getitem__(self, name: str) -> AnyArray:
        path = self._directory / f"{name}.npy"
        try:
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError:
            return np.asarray(np.load(path, allow_pickle=False))

    def __iter__(self) -> Any:
        return (path.stem for path in self._directory.glob("*.npy"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def table(self, table_type: type[Table], name: str, /, **scalars: Any) -> Table:
        """Returns a table whose array columns are mapped and whose other fields are given."""
        arrays = {
            item.name: self[f"{name}.{item.name}"]
            for item in fields(table_type)  # type: ignore[arg-type]  # every table is a dataclass
            if item.name not in scalars
        }
        return table_type(**arrays, **scalars)


def _write(trace: Trace, directory: Path) -> None:
    def save(name: str, column: AnyArray) -> None:
        np.save(directory / f"{name}.npy", column, allow_pickle=False)

    def save_table(name: str, table: Any) -> dict[str, Any]:
        scalars = {}
        for item in fields(table):
            value = getattr(table, item.name)
            if isinstance(value, np.ndarray):
                save(f"{name}.{item.name}", value)
            else:
                scalars[item.name] = value
        return scalars

    save("strings.data", trace.strings.data)
    save("strings.offsets", trace.strings.offsets)
    save_table("events", trace.events)
    save_table("flows", trace.flows)
    save_table("kernels", trace.kernels)
    save_table("collectives", trace.collectives)
    save_table("links", trace.links)
    save_table("allocations", trace.memory.allocations)
    for index, table in enumerate(trace.tables.values()):
        for column, values in enumerate(table.numbers.values()):
            save(f"table{index}.number{column}", values)
        for column, ids in enumerate(table.texts.values()):
            save(f"table{index}.text{column}", ids)
    header = {
        "version": STORAGE_VERSION,
        "origin": trace.origin,
        "source": asdict(trace.source),
        "metadata": asdict(trace.metadata),
        "time_range": [trace.time_range.start_ns, trace.time_range.end_ns],
        "tracks": [asdict(track) for track in trace.tracks],
        "curves": [save_table(f"curve{index}", curve) for index, curve in enumerate(trace.memory.curves)],
        "counters": [save_table(f"counter{index}", series) for index, series in enumerate(trace.counters)],
        "tables": [
            {
                "name": name,
                "numbers": list(table.numbers),
                "texts": list(table.texts),
                "columns": list(table.columns),
            }
            for name, table in trace.tables.items()
        ],
        "diagnostics": [asdict(item) for item in trace.diagnostics],
    }
    (directory / _HEADER).write_text(json.dumps(header, default=str), encoding="utf-8")


def _metadata(stored: dict[str, Any]) -> TraceMetadata:
    groups = tuple(
        ParallelGroup(group["id"], group["name"], tuple(group["ranks"])) for group in stored.pop("parallel_groups")
    )
    return TraceMetadata(parallel_groups=groups, **stored)


def _diagnostic(stored: dict[str, Any]) -> Diagnostic:
    position = stored.pop("position")
    path = position.pop("path")
    return Diagnostic(
        severity=Severity(stored.pop("severity")),
        position=SourcePosition(path=Path(path) if path else None, **position),
        **stored,
    )
