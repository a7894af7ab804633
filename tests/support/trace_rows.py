"""Traces from rows, for what a picture cannot show: launches, flows, kernel descriptions, steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.trace import Origin, Source, Trace, TraceBuilder, TraceMetadata, Track, TrackKind
from engine.trace.tables import KernelTable, RecordedTable

US = 1_000
_KINDS = {
    "npu": TrackKind.DEVICE_STREAM,
    "gpu": TrackKind.DEVICE_STREAM,
    "host": TrackKind.HOST_THREAD,
    "cann": TrackKind.CANN_THREAD,
    "comm": TrackKind.COMMUNICATION_GROUP,
    "plane": TrackKind.COMMUNICATION_PLANE,
    "overlap": TrackKind.OVERLAP,
    "annotation": TrackKind.ANNOTATION,
}


@dataclass(frozen=True)
class Row:
    """One slice on the lane ``"npu 2"``, ``"host 1"``, ``"cann 1"`` …; times in µs."""

    lane: str
    start_us: float
    end_us: float
    name: str
    category: str = ""
    correlation: int = -1
    operator_type: str | None = None
    core_type: str | None = None
    step: int = -1


def trace_from_rows(
    rows: Sequence[Row],
    flows: Iterable[tuple[int, int, str]] = (),
    *,
    format_id: str = "ascend-text",
    tables: Mapping[str, RecordedTable] | None = None,
) -> Trace:
    """Returns the trace of ``rows``; flows are (index of the source row, index of the target row, kind)."""
    builder = TraceBuilder()
    lanes = {lane: builder.add_track(_track(lane)) for lane in dict.fromkeys(row.lane for row in rows)}
    for row in rows:
        builder.add_events(
            start_ns=np.array([round(row.start_us * US)]),
            duration_ns=np.array([round((row.end_us - row.start_us) * US)]),
            track=lanes[row.lane],
            name=builder.strings.intern(row.name),
            category=builder.strings.intern(row.category),
            correlation=row.correlation,
        )
    for source, target, kind in flows:
        builder.add_flows(np.array([source]), np.array([target]), kind)
    builder.kernels = _kernels(builder, rows)
    builder.tables = dict(tables or {})
    return builder.build(
        origin=Origin.MEASURED, source=Source("rows", format_id), metadata=TraceMetadata(), clock_is_unix=False
    )


def step_table(**columns: float) -> RecordedTable:
    """Returns a ``step_trace_time`` table of one row; underscores in titles are blanks."""
    numbers = {title.replace("_", " "): np.array([value]) for title, value in columns.items()}
    return RecordedTable("step_trace_time", numbers, {}, tuple(numbers))


def _track(lane: str) -> Track:
    word, _, number = lane.partition(" ")
    kind = _KINDS[word]
    on_device = kind is TrackKind.DEVICE_STREAM
    return Track(kind, lane, stream=int(number) if on_device else -1, device=0 if on_device else -1, thread_id=number)


def _kernels(builder: TraceBuilder, rows: Sequence[Row]) -> KernelTable:
    described = [index for index, row in enumerate(rows) if row.operator_type is not None or row.step >= 0]

    def ids(texts: Iterable[str | None]) -> np.ndarray:
        return np.array([-1 if text is None else builder.strings.intern(text) for text in texts], dtype=np.int32)

    absent = np.full(len(described), -1, dtype=np.int32)
    return KernelTable(
        event=np.array(described, dtype=np.int32),
        op_type=ids(rows[index].operator_type for index in described),
        core_type=ids(rows[index].core_type for index in described),
        input_shapes=absent,
        input_types=absent,
        output_shapes=absent,
        output_types=absent,
        block_count=absent,
        step=np.array([rows[index].step for index in described], dtype=np.int32),
    )
