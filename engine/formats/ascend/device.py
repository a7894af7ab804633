"""The device timeline of a capture without trace_view.json, from its kernel table or communication.json."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.formats.ascend.arguments import argument_keys
from engine.formats.ascend.collectives import CollectiveEvents, groups_of_operators, no_collective_events
from engine.formats.ascend.communication import CommunicationRows
from engine.formats.ascend.kernels import KernelRows
from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import Severity
from engine.trace.strings import ABSENT
from engine.trace.tracks import Track, TrackKind

DEVICE_SORT_KEY = 14
COMMUNICATION_SORT_KEY = 16
"""Where the profiler sorts its "Ascend Hardware" and "Communication" layers."""


def add_kernel_timeline(
    builder: TraceBuilder,
    rows: KernelRows,
    communication: CommunicationRows | None,
    device: int,
    group_names: Mapping[str, str],
) -> CollectiveEvents:
    """Adds one track per stream and per communication group, with one event per row, and ``builder.kernels``.

    Args:
        builder: Receives tracks, events and kernels.
        rows: The kernel table.
        communication: Says which group an operator belongs to.
        device: For rows without a device of their own.
        group_names: Group hash → the framework's word, where the capture knows it.
    """
    devices = np.where(rows.device == ABSENT, np.int32(device), rows.device)
    track = np.empty(len(rows), dtype=np.int32)
    compute = np.flatnonzero(~rows.is_communication)
    track[compute] = _stream_tracks(builder, rows.stream[compute], devices[compute])
    collective = np.flatnonzero(rows.is_communication)
    groups = groups_of_operators(communication)
    group = np.array([groups.get(name, ABSENT) for name in rows.name[collective].tolist()], dtype=np.int32)
    track[collective] = _group_tracks(builder, group, devices[collective], group_names)
    first = builder.add_events(
        start_ns=rows.start_ns,
        duration_ns=rows.duration_ns,
        track=track,
        name=rows.name,
        category=rows.table.core_type,
        args_offset=argument_keys(row=rows.row),
    )
    ids = first + np.arange(len(rows), dtype=np.int64)
    builder.kernels = replace(rows.table, event=ids.astype(np.int32))
    return CollectiveEvents(
        event=ids[collective],
        name=rows.name[collective],
        group=group,
        start_ns=rows.start_ns[collective],
        duration_ns=rows.duration_ns[collective],
        payload_bytes=np.full(len(collective), ABSENT, dtype=np.int64),
        step=rows.table.step[collective],
    )


def add_communication_timeline(
    builder: TraceBuilder, rows: CommunicationRows, device: int, group_names: Mapping[str, str], first_position: int
) -> CollectiveEvents:
    """Adds one track per communication group with the operators of communication.json, for captures with nothing else.

    Args:
        builder: Receives tracks and events.
        rows: The operators; those without a start cannot be placed and are left to the collective table.
        device: Device number, or −1.
        group_names: Group hash → the framework's word, where the capture knows it.
        first_position: Where communication.json starts among the JSON files, for arguments.
    """
    placed = np.flatnonzero((rows.start_ns != ABSENT) & (rows.elapsed_ns != ABSENT))
    if len(placed) == 0:
        return no_collective_events()
    builder.diagnostics.add(
        "rounded-starts",
        Severity.NOTICE,
        "the timeline is made from communication.json, whose starts are rounded to 0.25 µs",
        count=len(placed),
    )
    devices = np.full(len(placed), device, dtype=np.int32)
    first = builder.add_events(
        start_ns=rows.start_ns[placed],
        duration_ns=rows.elapsed_ns[placed],
        track=_group_tracks(builder, rows.group[placed], devices, group_names),
        name=rows.name[placed],
        category=builder.strings.intern("COMMUNICATION"),
        args_offset=argument_keys(position=first_position + rows.ordinal[placed]),
    )
    return CollectiveEvents(
        event=first + np.arange(len(placed), dtype=np.int64),
        name=rows.name[placed],
        group=rows.group[placed],
        start_ns=rows.start_ns[placed],
        duration_ns=rows.elapsed_ns[placed],
        payload_bytes=np.full(len(placed), ABSENT, dtype=np.int64),
        step=rows.step[placed],
    )


def _stream_tracks(builder: TraceBuilder, stream: Int64Array, device: Int32Array) -> Int32Array:
    """Returns the track of each row, adding one per (device, stream) in ascending order."""
    track = np.empty(len(stream), dtype=np.int32)
    pairs = [
        (number, stream_id)
        for number in np.unique(device).tolist()
        for stream_id in np.unique(stream[device == number]).tolist()
    ]
    for number, stream_id in pairs:
        wanted = Track(
            TrackKind.DEVICE_STREAM,
            f"Stream {stream_id}" if stream_id >= 0 else "Device tasks",
            sort_key=max(stream_id, 0),
            device=number,
            stream=stream_id,
        )
        lane = _lane(
            builder, wanted, Track(TrackKind.PROCESS, "Ascend Hardware", sort_key=DEVICE_SORT_KEY, device=number)
        )
        track[(device == number) & (stream == stream_id)] = lane
    return track


def _group_tracks(
    builder: TraceBuilder, group: Int32Array, device: Int32Array, group_names: Mapping[str, str]
) -> Int32Array:
    """Returns the track of each collective, adding one per (device, group) in order of appearance."""
    track = np.empty(len(group), dtype=np.int32)
    words = builder.strings.table()
    pairs = dict.fromkeys(zip(device.tolist(), group.tolist(), strict=True))
    for order, (number, group_id) in enumerate(pairs):
        text = words.text(group_id)
        known = group_names.get(text, "")
        name = f"Group {known} ({text})" if known else f"Group {text}" if text else "Communication"
        wanted = Track(TrackKind.COMMUNICATION_GROUP, name, sort_key=order, device=number, group=text)
        layer = Track(TrackKind.PROCESS, "Communication", sort_key=COMMUNICATION_SORT_KEY, device=number)
        track[(device == number) & (group == group_id)] = _lane(builder, wanted, layer)
    return track


def _lane(builder: TraceBuilder, wanted: Track, layer: Track) -> int:
    """Returns the track that shows what ``wanted`` would show, adding it, and its layer, where there is none."""
    for index, track in enumerate(builder.tracks):
        same_device = track.kind is wanted.kind and track.device == wanted.device
        if same_device and (track.stream, track.group) == (wanted.stream, wanted.group):
            return index
    for index, track in enumerate(builder.tracks):
        if track.kind is TrackKind.PROCESS and (track.name, track.device) == (layer.name, layer.device):
            return builder.add_track(replace(wanted, parent=index))
    return builder.add_track(replace(wanted, parent=builder.add_track(layer)))
