"""Collects what a reader finds, in file order and absolute time, and turns it into a Trace."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.core.units import NS_PER_S
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.nesting import nest, nesting_order
from engine.trace.strings import ABSENT, StringInterner
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
    empty_columns,
)
from engine.trace.trace import ArgumentDecoder, Origin, Source, TimeRange, Trace, TraceMetadata
from engine.trace.tracks import Track

OUTLIER_GAP_NS = 3600 * NS_PER_S
"""Events further than this from every other event cannot belong to one profiled window: a stray ``ts: 0`` must not
make the real data one pixel wide."""

_EVENT_DTYPES = {
    "start_ns": np.int64,
    "duration_ns": np.int64,
    "track": np.int32,
    "name": np.int32,
    "category": np.int32,
    "correlation": np.int64,
    "args_offset": np.int64,
    "flags": np.uint8,
}
_TIME_COLUMNS = {"start_ns", "time_ns", "allocated_at_ns", "freed_at_ns", "released_at_ns"}
Table = TypeVar("Table")


@dataclass(eq=False)
class TraceBuilder:
    """Everything is given in absolute ns (usually since the epoch); ``build`` makes times relative.

    Event ids handed out by ``add_events`` are provisional (file order); wherever an ``event`` column or a flow names
    an event, it names the provisional id, and ``build`` translates it.

    Attributes:
        strings: Shared by all columns.
        slack_ns: Rounding of the file's times, for nesting.
        diagnostics: What the reader could not use.
    """

    strings: StringInterner = field(default_factory=StringInterner)
    slack_ns: int = 0
    diagnostics: DiagnosticLog = field(default_factory=DiagnosticLog)
    tracks: list[Track] = field(default_factory=list)
    kernels: KernelTable | None = None
    collectives: CollectiveTable | None = None
    links: LinkTable | None = None
    allocations: AllocationTable | None = None
    curves: list[MemoryCurve] = field(default_factory=list)
    counters: list[CounterSeries] = field(default_factory=list)
    tables: dict[str, RecordedTable] = field(default_factory=dict)
    _event_batches: list[dict[str, AnyArray]] = field(default_factory=list)
    _event_count: int = 0
    _flows: list[tuple[Int64Array, Int64Array, Int32Array]] = field(default_factory=list)

    def add_track(self, track: Track) -> int:
        """Adds a track and returns its index."""
        self.tracks.append(track)
        return len(self.tracks) - 1

    @property
    def event_count(self) -> int:
        """How many events were added; also the next provisional id."""
        return self._event_count

    def add_events(
        self,
        *,
        start_ns: Int64Array,
        duration_ns: Int64Array,
        track: Int32Array | int,
        name: Int32Array | int,
        category: Int32Array | int = ABSENT,
        correlation: Int64Array | int = ABSENT,
        args_offset: Int64Array | int = ABSENT,
        flags: AnyArray | int = 0,
    ) -> int:
        """Adds a batch (columns of equal length or scalars) and returns the provisional id of its first event."""
        count = len(start_ns)
        given = {
            "start_ns": start_ns,
            "duration_ns": duration_ns,
            "track": track,
            "name": name,
            "category": category,
            "correlation": correlation,
            "args_offset": args_offset,
            "flags": flags,
        }
        batch = {}
        for key, dtype in _EVENT_DTYPES.items():
            batch[key] = np.ascontiguousarray(np.broadcast_to(np.asarray(given[key], dtype=dtype), (count,)))
        first = self._event_count
        self._event_batches.append(batch)
        self._event_count += count
        return first

    def add_flows(self, source: Int64Array, target: Int64Array, kind: str) -> None:
        """Adds arrows between provisional event ids."""
        ids = np.full(len(source), self.strings.intern(kind), dtype=np.int32)
        self._flows.append((np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64), ids))

    def columns(self) -> Mapping[str, AnyArray]:
        """Returns the event columns so far, in provisional order and absolute time."""
        if len(self._event_batches) != 1:
            merged = {
                key: np.concatenate([batch[key] for batch in self._event_batches] or [np.empty(0, dtype=dtype)])
                for key, dtype in _EVENT_DTYPES.items()
            }
            self._event_batches = [merged]
        return self._event_batches[0]

    def build(
        self,
        *,
        origin: Origin,
        source: Source,
        metadata: TraceMetadata,
        clock_is_unix: bool,
        argument_decoder: ArgumentDecoder | None = None,
    ) -> Trace:
        """Returns the finished trace: sorted, nested, relative to its start, strings frozen.

        Args:
            origin: Measured or simulated.
            source: Files the trace came from.
            metadata: Its ``epoch_ns`` is filled here where the clock is Unix time.
            clock_is_unix: Whether absolute times are ns since the Unix epoch.
            argument_decoder: Reads arguments on demand.
        """
        columns = dict(self.columns())
        self._event_batches = []
        origin_ns, time_range = self._clock(columns["start_ns"], columns["duration_ns"])
        order = nesting_order(columns["track"], columns["start_ns"], columns["duration_ns"])
        if order is not None:
            columns = {key: column[order] for key, column in columns.items()}
        columns["start_ns"] = columns["start_ns"] - origin_ns
        depth, parent = nest(columns["track"], columns["start_ns"], columns["duration_ns"], self.slack_ns)
        position = _positions(order, len(depth))
        return Trace(
            origin=origin,
            source=source,
            metadata=replace(metadata, epoch_ns=origin_ns) if clock_is_unix else metadata,
            time_range=time_range,
            strings=self.strings.table(),
            tracks=tuple(self.tracks),
            events=EventTable(depth=depth, parent=parent, **columns),
            flows=self._build_flows(position),
            kernels=_sorted_by(_finish(self.kernels, KernelTable, position, origin_ns), "event"),
            collectives=_finish(self.collectives, CollectiveTable, position, origin_ns),
            links=_finish(self.links, LinkTable, position, origin_ns),
            memory=MemoryLog(
                _finish(self.allocations, AllocationTable, position, origin_ns),
                tuple(_shifted(curve, origin_ns) for curve in self.curves),
            ),
            counters=tuple(_shifted(series, origin_ns) for series in self.counters),
            tables=dict(self.tables),
            diagnostics=self.diagnostics.diagnostics(),
            argument_decoder=argument_decoder,
        )

    def _clock(self, start_ns: Int64Array, duration_ns: Int64Array) -> tuple[int, TimeRange]:
        """Returns the absolute time of ns 0 and the range to show, leaving out far outliers."""
        if len(start_ns) == 0:
            samples = [curve.time_ns for curve in self.curves] + [series.time_ns for series in self.counters]
            if self.allocations is not None:
                born = self.allocations.allocated_at_ns
                samples.append(born[born != ABSENT])
            moments = np.concatenate([*samples, np.empty(0, dtype=np.int64)])
            if len(moments) == 0:
                return 0, TimeRange(0, 0)
            low = int(moments.min())
            return low, TimeRange(0, int(moments.max()) - low + 1)
        low, high = _main_cluster(start_ns)
        outside = int(np.count_nonzero((start_ns < low) | (start_ns > high)))
        self.diagnostics.add(
            "timestamp-far-outside",
            Severity.NOTICE,
            "events lie more than an hour from all others; they are kept, out of the first view and of device times",
            count=outside,
        )
        inside = (start_ns >= low) & (start_ns <= high)
        end = int((start_ns[inside] + duration_ns[inside]).max())
        return low, TimeRange(0, max(end - low, 1))

    def _build_flows(self, position: Int32Array) -> FlowTable:
        if not self._flows:
            return FlowTable(**empty_columns(FlowTable))
        source, target, kind = (np.concatenate(parts) for parts in zip(*self._flows, strict=True))
        return FlowTable(position[source], position[target], kind)


def _main_cluster(start_ns: Int64Array) -> tuple[int, int]:
    low, high = int(start_ns.min()), int(start_ns.max())
    if high - low <= OUTLIER_GAP_NS:
        return low, high
    ordered = np.sort(start_ns)
    cuts = np.flatnonzero(np.diff(ordered) > OUTLIER_GAP_NS) + 1
    bounds = np.concatenate(([0], cuts, [len(ordered)]))
    largest = int(np.argmax(np.diff(bounds)))
    return int(ordered[bounds[largest]]), int(ordered[bounds[largest + 1] - 1])


def _positions(order: Int64Array | None, count: int) -> Int32Array:
    if order is None:
        return np.arange(count, dtype=np.int32)
    position = np.empty(count, dtype=np.int32)
    position[order] = np.arange(count, dtype=np.int32)
    return position


def _shifted(table: Table, origin_ns: int) -> Table:
    """Returns a table with its absolute times made relative; absent times (−1) stay absent."""
    changes: dict[str, Any] = {}
    for item in fields(table):  # type: ignore[arg-type]  # every table is a dataclass
        if item.name in _TIME_COLUMNS:
            column = getattr(table, item.name)
            changes[item.name] = np.where(column == ABSENT, ABSENT, column - origin_ns)
    return replace(table, **changes)  # type: ignore[type-var]


def _finish(table: Table | None, table_type: type[Table], position: Int32Array, origin_ns: int) -> Table:
    """Returns the table with relative times and final event rows; an empty one where there is none."""
    if table is None:
        return table_type(**empty_columns(table_type))
    shifted = _shifted(table, origin_ns)
    event = getattr(table, "event", None)
    if event is None or len(event) == 0:
        return shifted
    known = event >= 0
    rows = np.full(len(event), ABSENT, dtype=np.int32)
    rows[known] = position[event[known]]
    return replace(shifted, event=rows)  # type: ignore[type-var]


def _sorted_by(table: KernelTable, column: str) -> KernelTable:
    order = np.argsort(getattr(table, column), kind="stable")
    return take(table, order)


def take(table: Table, rows: AnyArray) -> Table:
    """Returns the given rows of a table as a table of the same type."""
    changes = {
        item.name: getattr(table, item.name)[rows]
        for item in fields(table)  # type: ignore[arg-type]
        if isinstance(getattr(table, item.name), np.ndarray)
    }
    return replace(table, **changes)  # type: ignore[type-var]


def concatenate(tables: Iterable[Table]) -> Table:
    """Returns the rows of several tables of one type, one after another."""
    parts = list(tables)
    changes = {
        item.name: np.concatenate([getattr(part, item.name) for part in parts])
        for item in fields(parts[0])  # type: ignore[arg-type]
        if isinstance(getattr(parts[0], item.name), np.ndarray)
    }
    return replace(parts[0], **changes)  # type: ignore[type-var]
