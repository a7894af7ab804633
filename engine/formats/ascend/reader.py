"""Ascend profiler directories as text: trace_view.json, kernel_details.csv, memory and communication files.

Every file is optional; each one says what it can, and one that is broken costs only itself.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.core.errors import (
    EmptyTraceError,
    SourcePosition,
    TraceReadError,
    TraceSyntaxError,
    UnsupportedTraceVersionError,
)
from engine.formats.ascend import layout
from engine.formats.ascend.arguments import AscendArguments, first_positions, json_files
from engine.formats.ascend.collectives import CollectiveEvents, both, join_collectives, no_collective_events
from engine.formats.ascend.communication import CommunicationRows, read_communication, read_matrix
from engine.formats.ascend.device import add_communication_timeline, add_kernel_timeline
from engine.formats.ascend.kernels import KernelRows, read_kernels
from engine.formats.ascend.memory import link_to_operators, read_allocations, read_curves
from engine.formats.ascend.metadata import read_metadata
from engine.formats.ascend.tables import read_recorded
from engine.formats.ascend.trace_view import TraceView, add_trace_view, read_trace_view
from engine.formats.reader import Capture, ReadContext
from engine.trace.builder import TraceBuilder, concatenate
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT
from engine.trace.trace import ArgumentDecoder, Origin, Source, Trace, TraceMetadata
from engine.trace.tracks import TrackKind

_READ_INTO_THE_TRACE = (
    layout.TRACE_VIEW,
    layout.KERNEL_DETAILS,
    layout.MEMORY_RECORD,
    layout.OPERATOR_MEMORY,
    layout.COMMUNICATION,
    layout.COMMUNICATION_MATRIX,
    layout.PROFILER_INFO,
    layout.PROFILER_METADATA,
)
SIMULATION = "cannscope"
"""Member of profiler_metadata.json that only captures of the simulated runtime have."""
FIRST_PLAUSIBLE_EPOCH_NS = 10**18
"""September 2001; a machine that counts from its own start gets there after 31 years."""


class AscendTextReader:
    """Reads the text form of Ascend captures written by torch_npu, MindSpore and msprof."""

    id = "ascend-text"
    title = "Ascend profiler directory (text)"

    def find(self, path: Path) -> tuple[Capture, ...]:
        """Returns one capture per profiler directory at or below ``path``, or the single file it is."""
        return layout.find_captures(path)

    def read(self, capture: Capture, context: ReadContext) -> Trace:
        """Reads a capture; a broken file among several is an ERROR diagnostic.

        Raises:
            UnsupportedTraceVersionError: The capture consists of profiler databases only.
            TraceSyntaxError: Nothing could be read, and a file is broken.
            EmptyTraceError: None of the files holds anything.
            OperationCancelled: Cancelled.
        """
        if layout.DATABASE in capture.files:
            raise UnsupportedTraceVersionError(
                "profiler databases are not read yet",
                SourcePosition(capture.files[layout.DATABASE]),
                "export the capture as text: export_type=torch_npu.profiler.ExportType.Text",
            )
        builder = TraceBuilder()
        metadata = read_metadata(capture, builder.diagnostics)
        _count_unread(capture, builder.diagnostics)
        device = _read_memory(capture, builder, context)
        _read_tables(capture, builder, context)
        device = _device_of_tables(builder) if device == ABSENT else device
        metadata = _read_timeline(capture, builder, metadata, device, context)
        if builder.event_count == 0 and not builder.curves and builder.allocations is None and not builder.tables:
            raise _nothing_read(capture, builder.diagnostics)
        read = {role: path for role, path in capture.files.items() if not role.startswith(layout.UNREAD)}
        return builder.build(
            origin=_origin(metadata),
            source=Source(str(capture.root), self.id, layout.describe(read, capture.root)),
            metadata=metadata,
            clock_is_unix=_is_unix_time(builder),
            argument_decoder=AscendArguments([(role.partition("#")[0], path) for role, path in read.items()]),
        )

    def argument_decoder(self, source: Source) -> ArgumentDecoder | None:
        """Returns the decoder of a trace that was re-opened from the cache."""
        return AscendArguments(layout.roles_of(source))


def _origin(metadata: TraceMetadata) -> Origin:
    """Returns whether the capture says that the simulated runtime wrote it."""
    own = metadata.extra.get(SIMULATION)
    return Origin.SIMULATED if isinstance(own, Mapping) and own.get("origin") == "simulated" else Origin.MEASURED


def _is_unix_time(builder: TraceBuilder) -> bool:
    """Returns whether times count from 1970 (newer releases) or from the start of the machine (MindInsight's)."""
    times = [builder.columns()["start_ns"], *(curve.time_ns for curve in builder.curves)]
    if builder.allocations is not None:
        times.append(builder.allocations.allocated_at_ns)
    return max((int(column.max()) for column in times if len(column)), default=0) > FIRST_PLAUSIBLE_EPOCH_NS


def _nothing_read(capture: Capture, log: DiagnosticLog) -> TraceReadError:
    """Returns what is wrong with a capture that gave nothing: its first broken file, or that all are empty."""
    for item in log.diagnostics():
        if item.severity is Severity.ERROR:
            return TraceSyntaxError(item.message, item.position, "record the capture again")
    return EmptyTraceError("no file of the capture holds anything", SourcePosition(capture.root), "record it again")


def _count_unread(capture: Capture, log: DiagnosticLog) -> None:
    for role, path in capture.files.items():
        if role.startswith(layout.UNREAD):
            database = path.suffix == ".db"
            log.add(
                "database-not-read" if database else "file-not-read",
                Severity.NOTICE,
                "a profiler database stands beside the text files and is not read by this release"
                if database
                else "a file of the capture is an older export or of a kind this release does not read",
                position=SourcePosition(path),
            )


def _read_memory(capture: Capture, builder: TraceBuilder, context: ReadContext) -> int:
    """Reads curves and blocks into the builder; returns the device they are of, −1 where they name none or several."""
    curve_files = layout.files_of(capture, layout.MEMORY_RECORD)
    block_files = layout.files_of(capture, layout.OPERATOR_MEMORY)
    builder.curves = read_curves(curve_files, builder.strings, builder.diagnostics, context.part(0.0, 0.15))
    stage = context.part(0.15, 0.3)
    builder.allocations = read_allocations(block_files, builder.strings, builder.diagnostics, stage)
    devices = {curve.device for curve in builder.curves}
    if builder.allocations is not None:
        devices |= set(np.unique(builder.allocations.device).tolist())
    devices.discard(ABSENT)
    return devices.pop() if len(devices) == 1 else ABSENT


def _device_of_tables(builder: TraceBuilder) -> int:
    """Returns the device the summary tables are of, −1 where they name none or several."""
    columns = [table.numbers["Device_id"] for table in builder.tables.values() if "Device_id" in table.numbers]
    numbers = np.unique(np.concatenate([*columns, np.empty(0)]))
    stated = numbers[(numbers >= 0) & (numbers < layout.NO_ID)]
    return int(stated[0]) if len(stated) == 1 else ABSENT


def _read_timeline(
    capture: Capture, builder: TraceBuilder, metadata: TraceMetadata, device: int, context: ReadContext
) -> TraceMetadata:
    """Adds tracks, events, kernels and collectives; returns the metadata with the device filled in."""
    stage = context.part(0.35, 0.5)
    log, strings = builder.diagnostics, builder.strings
    kernels = read_kernels(layout.files_of(capture, layout.KERNEL_DETAILS), strings, log, stage)
    communication = read_communication(layout.files_of(capture, layout.COMMUNICATION), strings, log)
    if kernels is not None:
        stated = np.unique(kernels.device[kernels.device != ABSENT])
        device = int(stated[0]) if len(stated) == 1 else device
    group_names = {group.id: group.name for group in metadata.parallel_groups}
    traces = layout.files_of(capture, layout.TRACE_VIEW)
    stage = context.part(0.5, 0.95)
    view = read_trace_view(traces, builder, device, stage) if traces else None
    if view is not None:
        collectives = _joined_timeline(builder, view, kernels, communication, device, group_names)
    else:
        collectives = _timeline_of_tables(capture, builder, kernels, communication, device, group_names)
    join_collectives(builder, collectives, communication)
    return _with_device(metadata, builder, device)


def _joined_timeline(
    builder: TraceBuilder,
    view: TraceView,
    kernels: KernelRows | None,
    communication: CommunicationRows | None,
    device: int,
    group_names: Mapping[str, str],
) -> CollectiveEvents:
    """Adds the events of trace_view.json, and those rows of the kernel table that it lacks."""
    collectives, left = add_trace_view(builder, view, kernels, communication)
    if builder.allocations is not None:
        operators = view.on(TrackKind.HOST_THREAD)
        first = builder.event_count - len(view.row)
        rows = view.row[operators]
        start_ns = view.raw.start_ns[rows]
        end_ns = start_ns + view.duration_ns[operators]
        event = link_to_operators(builder.allocations, first + operators, view.raw.name[rows], start_ns, end_ns)
        builder.allocations = replace(builder.allocations, event=event.astype(np.int32))
    if left is None:
        return collectives
    builder.diagnostics.add(
        "kernel-not-in-trace",
        Severity.NOTICE,
        "rows of the kernel table are not in trace_view.json and were added to the timeline",
        count=len(left),
        position=SourcePosition(view.paths[0]),
    )
    known = builder.kernels
    added = add_kernel_timeline(builder, left, communication, device, group_names)
    if known is not None and builder.kernels is not None:
        builder.kernels = concatenate([known, builder.kernels])
    return both(collectives, added)


def _timeline_of_tables(
    capture: Capture,
    builder: TraceBuilder,
    kernels: KernelRows | None,
    communication: CommunicationRows | None,
    device: int,
    group_names: Mapping[str, str],
) -> CollectiveEvents:
    if kernels is not None:
        return add_kernel_timeline(builder, kernels, communication, device, group_names)
    if communication is not None:
        files = json_files([(role.partition("#")[0], path) for role, path in capture.files.items()])
        starts = first_positions([path for _, path in files])
        first = next(start for start, (role, _) in zip(starts, files, strict=True) if role == layout.COMMUNICATION)
        return add_communication_timeline(builder, communication, device, group_names, first)
    return no_collective_events()


def _with_device(metadata: TraceMetadata, builder: TraceBuilder, device: int) -> TraceMetadata:
    devices = {track.device for track in builder.tracks if track.device != ABSENT} | ({device} - {ABSENT})
    named = f"NPU {device}" if device != ABSENT else "NPU" if builder.tracks else None
    return replace(metadata, device=named, device_count=len(devices) or None)


def _read_tables(capture: Capture, builder: TraceBuilder, context: ReadContext) -> None:
    """Reads communication_matrix.json and every csv file that no other part reads, verbatim."""
    matrix_files = layout.files_of(capture, layout.COMMUNICATION_MATRIX)
    matrix = read_matrix(matrix_files, builder.strings, builder.diagnostics)
    if matrix is not None:
        builder.tables[layout.COMMUNICATION_MATRIX] = matrix
    roles = [
        role
        for role in capture.files
        if role not in _READ_INTO_THE_TRACE and "#" not in role and not role.startswith(layout.UNREAD)
    ]
    for role, stage in zip(roles, context.part(0.3, 0.35).parts(len(roles)), strict=True):
        paths = layout.files_of(capture, role)
        name = layout.table_stem(paths[0].stem) if capture.root.is_dir() else role
        table = read_recorded(name, paths, builder.strings, builder.diagnostics, stage)
        if table is not None:
            builder.tables[name] = table
