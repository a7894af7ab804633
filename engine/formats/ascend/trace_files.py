"""trace_view.json in one file or in slices, as one table of events."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import SourcePosition, TraceReadError
from engine.formats.ascend.arguments import first_positions
from engine.formats.events.trace_events import DecodedRow, MemoryInstants, RawEvents, read_events
from engine.formats.reader import ReadContext
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import StringInterner


def read_trace_files(
    paths: Sequence[Path], strings: StringInterner, log: DiagnosticLog, context: ReadContext
) -> tuple[RawEvents, tuple[Path, ...]] | None:
    """Returns the events of all files, ``offset`` counted over the files laid end to end, and the files given.

    A file that cannot be read is an ERROR diagnostic; None where that is all of them.
    """
    parts: list[RawEvents] = []
    for path, first, stage in zip(paths, first_positions(paths), context.parts(len(paths)), strict=True):
        try:
            raw = read_events(path, strings, log, stage)
        except (TraceReadError, OSError) as error:
            log.add("unreadable-file", Severity.ERROR, str(error), position=SourcePosition(path))
            continue
        parts.append(replace(raw, offset=raw.offset + first))
    if not parts:
        return None
    return (parts[0] if len(parts) == 1 else _joined(parts)), tuple(paths)


def _joined(parts: Sequence[RawEvents]) -> RawEvents:
    """Returns the events of slices one after another; equal flow ids of different slices become one."""
    flow_ids = StringInterner()
    flows = []
    for part in parts:
        ids = np.append(flow_ids.intern_all(part.flow_ids), np.int32(-1))
        flows.append(ids[part.flow])
    first_rows = np.cumsum([0, *(len(part) for part in parts)])[:-1].tolist()
    columns: dict[str, Any] = {
        item.name: np.concatenate([getattr(part, item.name) for part in parts])
        for item in fields(RawEvents)
        if isinstance(getattr(parts[0], item.name), np.ndarray)
    }
    return replace(
        parts[0],
        **(columns | {"flow": np.concatenate(flows)}),
        flow_ids=flow_ids.table(),
        metadata_events=_shifted([part.metadata_events for part in parts], first_rows),
        counters=_shifted([part.counters for part in parts], first_rows),
        memory=_joined_memory([part.memory for part in parts], first_rows),
    )


def _shifted(parts: Sequence[tuple[DecodedRow, ...]], first_rows: Sequence[int]) -> tuple[DecodedRow, ...]:
    return tuple(
        DecodedRow(event.row + first, event.args)
        for part, first in zip(parts, first_rows, strict=True)
        for event in part
    )


def _joined_memory(parts: Sequence[MemoryInstants], first_rows: Sequence[int]) -> MemoryInstants:
    columns = {item.name: [getattr(part, item.name) for part in parts] for item in fields(MemoryInstants)}
    columns["row"] = [row + first for row, first in zip(columns["row"], first_rows, strict=True)]
    return MemoryInstants(**{key: np.concatenate(column) for key, column in columns.items()})
