"""trace_view.json: lanes, events, flows and counters, joined with the kernel table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.core.errors import SourcePosition
from engine.formats.ascend.arguments import argument_keys, first_positions
from engine.formats.ascend.collectives import CollectiveEvents, groups_of_operators
from engine.formats.ascend.communication import CommunicationRows
from engine.formats.ascend.counters import add_counters
from engine.formats.ascend.kernel_join import match_kernels
from engine.formats.ascend.kernels import KernelRows
from engine.formats.ascend.lanes import add_lanes, distinct_pairs, read_layers
from engine.formats.ascend.trace_files import read_trace_files
from engine.formats.events.flow_binding import bind_flows, flow_kinds
from engine.formats.events.trace_events import ABSENT_TIME_NS, EventDecoder, RawEvents
from engine.formats.reader import ReadContext
from engine.trace.builder import TraceBuilder, take
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT
from engine.trace.tables import INSTANT
from engine.trace.tracks import TrackKind

NO_CONNECTION = 4_294_967_295
"""What the profiler writes into ``connection_id`` for "none"."""

_SLICE = ord("X")
_INSTANTS = (ord("i"), ord("I"))
_USED_PHASES = tuple(map(ord, "XiIMCstf"))
_DEVICE_KINDS = (TrackKind.DEVICE_STREAM, TrackKind.COMMUNICATION_GROUP)
_CORRELATED_KINDS = (TrackKind.CANN_THREAD, *_DEVICE_KINDS)
_ELEMENT_BYTES = {
    **dict.fromkeys(("INT8", "UINT8", "HIF8", "FP8E4M3", "FP8E5M2", "FP8E8M0"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FP16", "BFP16", "BF16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FP32"), 4),
    **dict.fromkeys(("INT64", "UINT64", "FP64"), 8),
    "INT128": 16,
}


@dataclass(frozen=True, slots=True, eq=False)
class TraceView:
    """The events of trace_view.json that stand on the timeline. Columns of shape (n,), in file order.

    Attributes:
        paths: The files they come from.
        raw: All events of the files.
        row: int64: row of each in ``raw``.
        track: int32.
        kinds: Kind of every track of the builder when the lanes were added.
        duration_ns: int64, ≥ 0.
    """

    paths: tuple[Path, ...]
    raw: RawEvents
    row: Int64Array
    track: Int32Array
    kinds: tuple[TrackKind, ...]
    duration_ns: Int64Array

    def on(self, *kinds: TrackKind) -> Int64Array:
        """Returns the indices of the events on tracks of the given kinds, int64, ascending."""
        wanted = np.array([kind in kinds for kind in self.kinds], dtype=np.bool_)
        return np.flatnonzero(wanted[self.track]) if len(self.track) else np.empty(0, dtype=np.int64)


def read_trace_view(
    paths: Sequence[Path], builder: TraceBuilder, device: int, context: ReadContext
) -> TraceView | None:
    """Reads the file (or its slices) and adds lanes and counters; None where no file could be read.

    The events themselves are added by ``add_trace_view``, once the rows of the kernel table are known.
    """
    files = read_trace_files(paths, builder.strings, builder.diagnostics, context)
    if files is None:
        return None
    raw, read_paths = files
    position = SourcePosition(read_paths[0])
    texts = builder.strings.table()
    layers = read_layers(raw, texts, builder.diagnostics, position)
    context.cancel.check()
    placed = np.isin(raw.phase, (_SLICE, *_INSTANTS)) & (raw.start_ns != ABSENT_TIME_NS)
    row = np.flatnonzero(placed)
    _count_unused(raw, row, builder.diagnostics, position)
    pairs, pair_of_event = distinct_pairs(raw.process[row], raw.thread[row])
    counted = [int(raw.process[event.row]) for event in raw.counters]
    context.cancel.check()
    lanes = add_lanes(builder, texts, layers, pairs, counted, device)
    add_counters(builder, texts, raw, lanes, position, context)
    return TraceView(
        paths=read_paths,
        raw=raw,
        row=row,
        track=lanes.track_column(pairs, pair_of_event),
        kinds=tuple(track.kind for track in builder.tracks),
        duration_ns=np.maximum(raw.duration_ns[row], 0),
    )


def add_trace_view(
    builder: TraceBuilder, view: TraceView, kernels: KernelRows | None, communication: CommunicationRows | None
) -> tuple[CollectiveEvents, KernelRows | None]:
    """Adds the events and flows, and ``builder.kernels`` for the rows of the kernel table that describe one.

    Returns:
        The communication operators, and the rows of the kernel table that are on no lane (None where there are none).
    """
    raw, row = view.raw, view.row
    device_events = view.on(*_DEVICE_KINDS)
    kernel_of_event = np.full(len(row), ABSENT, dtype=np.int64)
    event_of_kernel = np.empty(0, dtype=np.int64)
    if kernels is not None:
        device_rows = row[device_events]
        stream = _streams(builder, view, device_events)
        found = match_kernels(kernels, raw.name[device_rows], raw.start_ns[device_rows], stream)
        matched = np.flatnonzero(found >= 0)
        event_of_kernel = np.full(len(kernels), ABSENT, dtype=np.int64)
        event_of_kernel[matched] = device_events[found[matched]]
        kernel_of_event[event_of_kernel[matched]] = matched
    _name_groups(builder, view, communication)
    first = _add_events(builder, view, kernels, kernel_of_event)
    binding = bind_flows(raw, row, view.duration_ns, builder.diagnostics, SourcePosition(view.paths[0]))
    for kind, source, target in flow_kinds(binding, builder.strings):
        builder.add_flows(first + source, first + target, kind)
    collectives = _collectives(builder, view, first, kernels, kernel_of_event)
    if kernels is None:
        return collectives, None
    matched = np.flatnonzero(event_of_kernel >= 0)
    builder.kernels = replace(take(kernels.table, matched), event=(first + event_of_kernel[matched]).astype(np.int32))
    left = np.flatnonzero(event_of_kernel < 0)
    return collectives, kernels.take(left) if len(left) else None


def _count_unused(raw: RawEvents, row: Int64Array, log: DiagnosticLog, position: SourcePosition) -> None:
    """Counts every event kind that is not used, by phase."""
    for phase in np.unique(raw.phase).tolist():
        if phase not in _USED_PHASES:
            log.add(
                f"unused-phase-{chr(phase) if phase else 'missing'}",
                Severity.DATA_LOSS,
                "events of a phase that Ascend traces do not use were left out",
                count=int(np.count_nonzero(raw.phase == phase)),
                position=position,
            )
    timeless = np.isin(raw.phase, (_SLICE, *_INSTANTS)) & (raw.start_ns == ABSENT_TIME_NS)
    log.add(
        "event-without-time",
        Severity.DATA_LOSS,
        "events have no usable time and were left out",
        count=int(np.count_nonzero(timeless)),
        position=position,
    )
    log.add(
        "slice-without-duration",
        Severity.NOTICE,
        "slices have no duration, taken as 0",
        count=int(np.count_nonzero((raw.phase[row] == _SLICE) & (raw.duration_ns[row] < 0))),
        position=position,
    )


def _streams(builder: TraceBuilder, view: TraceView, events: Int64Array) -> Int64Array:
    """Returns the stream of each event: of its lane, −1 on lanes of communication groups."""
    of_track = np.array([track.stream for track in builder.tracks], dtype=np.int64)
    return of_track[view.track[events]] if len(events) else np.empty(0, dtype=np.int64)


def _add_events(builder: TraceBuilder, view: TraceView, kernels: KernelRows | None, kernel_of_event: Int64Array) -> int:
    raw, row = view.raw, view.row
    correlation = np.full(len(row), ABSENT, dtype=np.int64)
    linked = view.on(*_CORRELATED_KINDS)
    correlation[linked] = raw.correlation[row[linked]]
    correlation[(correlation < 0) | (correlation == NO_CONNECTION)] = ABSENT
    table_row = np.full(len(row), ABSENT, dtype=np.int64)
    if kernels is not None:
        described = kernel_of_event >= 0
        table_row[described] = kernels.row[kernel_of_event[described]]
    is_instant = np.isin(raw.phase[row], _INSTANTS)
    return builder.add_events(
        start_ns=raw.start_ns[row],
        duration_ns=np.where(is_instant, 0, view.duration_ns),
        track=view.track,
        name=np.where(raw.name[row] == ABSENT, builder.strings.intern(""), raw.name[row]),
        category=np.where(raw.category[row] == ABSENT, raw.task[row], raw.category[row]),
        correlation=correlation,
        args_offset=argument_keys(raw.offset[row], table_row),
        flags=np.where(is_instant, INSTANT, 0),
    )


def _name_groups(builder: TraceBuilder, view: TraceView, communication: CommunicationRows | None) -> None:
    """Gives group lanes the group that communication.json pairs most of their operators with."""
    groups = groups_of_operators(communication)
    words = builder.strings.table()
    for track in np.unique(view.track[view.on(TrackKind.COMMUNICATION_GROUP)]).tolist():
        names = view.raw.name[view.row[view.track == track]]
        found = np.array([groups.get(name, ABSENT) for name in names.tolist()], dtype=np.int64)
        known, counts = np.unique(found[found >= 0], return_counts=True)
        if len(known):
            builder.tracks[track] = replace(builder.tracks[track], group=words.text(known[np.argmax(counts)]))


def _collectives(
    builder: TraceBuilder, view: TraceView, first: int, kernels: KernelRows | None, kernel_of_event: Int64Array
) -> CollectiveEvents:
    events = view.on(TrackKind.COMMUNICATION_GROUP)
    rows = view.row[events]
    of_track = builder.strings.intern_all([track.group for track in builder.tracks])
    step = np.full(len(events), ABSENT, dtype=np.int32)
    if kernels is not None:
        described = np.flatnonzero(kernel_of_event[events] >= 0)
        step[described] = kernels.table.step[kernel_of_event[events[described]]]
    return CollectiveEvents(
        event=first + events,
        name=view.raw.name[rows],
        group=of_track[view.track[events]] if len(events) else np.empty(0, dtype=np.int32),
        start_ns=view.raw.start_ns[rows],
        duration_ns=view.duration_ns[events],
        payload_bytes=_payloads(view, rows),
        step=step,
    )


def _payloads(view: TraceView, rows: Int64Array) -> Int64Array:
    """Returns ``count`` × size of ``data_type`` of each collective, int64, −1 where the trace does not say.

    The count is HCCL's own argument: elements this rank sends (all-gather) or receives (reduce-scatter).
    """
    starts = first_positions(view.paths)
    decoders = [EventDecoder(path) for path in view.paths]
    payload_bytes = np.full(len(rows), ABSENT, dtype=np.int64)
    # A Python loop: one turn per collective, not per event.
    for index, position in enumerate(view.raw.offset[rows].tolist()):
        file = int(np.searchsorted(starts, position, side="right")) - 1
        args = decoders[file](position - starts[file])
        count, element_bytes = args.get("count"), _ELEMENT_BYTES.get(str(args.get("data_type")))
        if isinstance(count, int) and count >= 0 and element_bytes is not None:
            payload_bytes[index] = count * element_bytes
    return payload_bytes
