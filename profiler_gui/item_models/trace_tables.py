"""Tables straight over the columns of a trace: events, allocations, diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.core.number_format import format_bytes, format_count, format_duration_ns
from profiler_gui.item_models.columns import Column, is_negative, number_column, string_column, text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.toolkit.time_axis import TimeUnit, time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.trace import Diagnostic, Trace


def duration_column(column_id: str, title: str, values: NDArray[Any] | Callable[[], NDArray[Any]]) -> Column:
    """Returns a column of durations in ns, −1 for none."""
    return number_column(
        column_id, title, values, lambda value: format_duration_ns(int(value)), unit="ns", absent=is_negative
    )


def moment_column(column_id: str, title: str, values: NDArray[np.int64], unit: TimeUnit, trace: Trace) -> Column:
    """Returns a column of times of a trace in ns, shown in ``unit``. Times may be negative."""
    epoch_ns = trace.metadata.epoch_ns
    return number_column(
        column_id, title, values, lambda value: time_text(int(value), unit, epoch_ns=epoch_ns), unit="ns"
    )


def bytes_column(column_id: str, title: str, values: NDArray[Any]) -> Column:
    """Returns a column of sizes in bytes, −1 for none."""
    return number_column(
        column_id, title, values, lambda value: format_bytes(int(value)), unit="bytes", absent=is_negative
    )


def event_table(trace: Trace, unit: TimeUnit = TimeUnit.AUTO) -> TableModel:
    """Returns the table of all events; the source row is the event row."""
    events = trace.events
    # Tracks are few, events many: names of tracks become strings of a small table of their own.
    names = [track.name for track in trace.tracks]
    columns = (
        string_column("name", tr("Name"), events.name, trace.strings),
        string_column("category", tr("Category"), events.category, trace.strings),
        track_column("track", tr("Track"), events.track, names),
        moment_column("start", tr("Start"), events.start_ns, unit, trace),
        duration_column("duration", tr("Duration"), events.duration_ns),
        duration_column("self", tr("Self time"), lambda: self_time_ns(trace)),
        number_column("depth", tr("Depth"), events.depth),
        number_column("correlation", tr("Correlation"), events.correlation, absent=is_negative),
    )
    return TableModel(columns, len(events))


def self_time_ns(trace: Trace) -> NDArray[np.int64]:
    """Returns each event's duration less that of its direct children, int64, shape (events,)."""
    events = trace.events
    own_ns = events.duration_ns.astype(np.int64)
    nested = events.parent >= 0
    np.subtract.at(own_ns, events.parent[nested], events.duration_ns[nested])
    return np.maximum(own_ns, 0)


def track_column(column_id: str, title: str, tracks: NDArray[np.int32], names: list[str]) -> Column:
    """Returns a column of track names; sorted in the order of the tracks."""

    def text(row: int) -> str:
        return names[int(tracks[row])]

    def matches(wanted: str) -> NDArray[np.bool_]:
        sought = wanted.casefold()
        found = np.array([sought in name.casefold() for name in names], dtype=np.bool_)
        return found[tracks]

    return Column(column_id, title, "", is_number=False, keys=lambda: tracks, text=text, raw=text, matches=matches)


def allocation_table(trace: Trace, unit: TimeUnit = TimeUnit.AUTO) -> TableModel:
    """Returns the table of all allocations; the source row is the row of the AllocationTable."""
    blocks = trace.memory.allocations
    freed = (blocks.freed_at_ns >= 0) & (blocks.allocated_at_ns >= 0)
    lifetime_ns = np.where(freed, blocks.freed_at_ns - blocks.allocated_at_ns, np.int64(-1))

    def moment(column_id: str, title: str, values: NDArray[np.int64]) -> Column:
        epoch_ns = trace.metadata.epoch_ns
        return number_column(
            column_id,
            title,
            values,
            lambda value: time_text(int(value), unit, epoch_ns=epoch_ns),
            unit="ns",
            absent=is_negative,
        )

    columns = (
        string_column("operator", tr("Operator"), blocks.operator, trace.strings),
        bytes_column("size", tr("Size"), blocks.size_bytes),
        bytes_column("requested", tr("Requested"), blocks.requested_bytes),
        moment("allocated", tr("Allocated"), blocks.allocated_at_ns),
        moment("freed", tr("Freed"), blocks.freed_at_ns),
        duration_column("lifetime", tr("Lifetime"), lifetime_ns),
        number_column("address", tr("Address"), blocks.address, lambda value: f"{int(value):#x}", absent=is_negative),
        number_column("stream", tr("Stream"), blocks.stream, absent=is_negative),
        number_column("device", tr("Device"), blocks.device, absent=is_negative),
    )
    return TableModel(columns, len(blocks))


def diagnostic_table(diagnostics: tuple[Diagnostic, ...]) -> TableModel:
    """Returns the table of what could not be used."""
    counts = np.array([item.count for item in diagnostics], dtype=np.int64)
    columns = (
        text_column("severity", tr("Severity"), [_severity(item) for item in diagnostics]),
        text_column("code", tr("Code"), [item.code for item in diagnostics]),
        number_column("count", tr("Count"), counts, lambda value: format_count(int(value))),
        text_column("message", tr("Message"), [item.message for item in diagnostics]),
        text_column("position", tr("First seen"), [str(item.position) for item in diagnostics]),
    )
    return TableModel(columns, len(diagnostics))


def _severity(diagnostic: Diagnostic) -> str:
    titles = {"error": tr("Error"), "data_loss": tr("Data loss"), "notice": tr("Notice")}
    return titles[diagnostic.severity.value]
