"""The layers and lanes of trace_view.json as tracks.

Lanes are told apart by what their process and thread are called, never by decoding pids: the numbering has changed
between CANN releases and overflows into the pid.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.core.errors import SourcePosition
from engine.core.number_text import MAX_INT64_DIGITS, digits_to_int
from engine.formats.ascend.layout import NO_ID
from engine.formats.events.trace_events import RawEvents
from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT, StringTable
from engine.trace.tracks import Track, TrackKind

ASCEND_HARDWARE = "Ascend Hardware"
HOST_LABEL = "CPU"
_KINDS = {
    "Python": TrackKind.HOST_THREAD,
    "Python GC": TrackKind.HOST_THREAD,
    "MindSpore": TrackKind.HOST_THREAD,
    "CPU OP": TrackKind.HOST_THREAD,
    "PID Name": TrackKind.HOST_THREAD,
    "CANN": TrackKind.CANN_THREAD,
    "CANN (DPU)": TrackKind.CANN_THREAD,
    ASCEND_HARDWARE: TrackKind.DEVICE_STREAM,
    "HCCL": TrackKind.COMMUNICATION_GROUP,
    "Communication": TrackKind.COMMUNICATION_GROUP,
    "Overlap Analysis": TrackKind.OVERLAP,
}
_METADATA = ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")


@dataclass(slots=True)
class Layer:
    """A process of the trace as its metadata describes it."""

    name: str = ""
    label: str = ""
    sort_index: int = 0
    thread_names: dict[int, str] = field(default_factory=dict)
    thread_sort_indices: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Tracks of the builder by what the file calls them.

    Attributes:
        layers: Process (string id of its pid) → what the file says of it.
        parents: Process → its PROCESS track.
        tracks: (process, thread), as string ids → track.
    """

    layers: Mapping[int, Layer]
    parents: dict[int, int]
    tracks: dict[tuple[int, int], int]

    def track_column(self, pairs: Sequence[tuple[int, int]], pair_of_event: Int64Array) -> Int32Array:
        """Returns the track of each event, int32, from what ``distinct_pairs`` returned."""
        return np.array([self.tracks[pair] for pair in pairs], dtype=np.int32)[pair_of_event]


def distinct_pairs(process: Int32Array, thread: Int32Array) -> tuple[list[tuple[int, int]], Int64Array]:
    """Returns the distinct (process, thread) of events, and for each event which of them it has (int64)."""
    key = (process.astype(np.int64) << 32) | (thread.astype(np.int64) + 1)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return list(zip(process[first].tolist(), thread[first].tolist(), strict=True)), inverse.astype(np.int64)


def read_layers(raw: RawEvents, texts: StringTable, log: DiagnosticLog, position: SourcePosition) -> dict[int, Layer]:
    """Returns the layers that metadata events describe, by process; other metadata is counted."""
    layers: dict[int, Layer] = {}
    for event in raw.metadata_events:
        name = texts.text(int(raw.name[event.row]))
        process, thread = int(raw.process[event.row]), int(raw.thread[event.row])
        layer = layers.setdefault(process, Layer())
        if name == "process_name":
            layer.name = str(event.args.get("name", ""))
        elif name == "process_labels":
            layer.label = str(event.args.get("labels", ""))
        elif name == "process_sort_index":
            layer.sort_index = _integer(event.args.get("sort_index"))
        elif name == "thread_name":
            layer.thread_names[thread] = str(event.args.get("name", ""))
        elif name == "thread_sort_index":
            layer.thread_sort_indices[thread] = _integer(event.args.get("sort_index"))
        log.add(
            "unused-metadata",
            Severity.NOTICE,
            "metadata events of a kind that says nothing about lanes",
            count=int(name not in _METADATA),
            position=position,
        )
    return layers


def add_lanes(
    builder: TraceBuilder,
    texts: StringTable,
    layers: dict[int, Layer],
    used: Iterable[tuple[int, int]],
    counted: Iterable[int],
    device: int,
) -> Lanes:
    """Adds a PROCESS track per layer and a track per lane that has events or a name.

    Args:
        builder: Receives the tracks.
        texts: The strings so far.
        layers: What metadata says; processes without any (pruned layers) get a layer of their own.
        used: (process, thread) of the events, as string ids.
        counted: Processes of the counters.
        device: Device number for layers whose label says NPU without one.
    """
    lanes = set(used)
    for process in sorted({process for process, _ in lanes} | set(counted)):
        layers.setdefault(process, Layer())
    lanes |= {(process, thread) for process, layer in layers.items() for thread in layer.thread_names}
    parents: dict[int, int] = {}
    tracks: dict[tuple[int, int], int] = {}
    for process in sorted(layers, key=lambda item: layers[item].sort_index):
        layer, pid = layers[process], texts.text(process)
        number = device_of_label(layer.label, device)
        name = layer.name or f"Process {pid}"
        header = Track(TrackKind.PROCESS, name, sort_key=layer.sort_index, device=number, process_id=pid)
        parents[process] = builder.add_track(header)
        threads = [thread for owner, thread in lanes if owner == process]
        for thread in sorted(threads, key=lambda item: _order(layer, item, texts)):
            lane = _lane(layer, pid, thread, texts, number)
            tracks[process, thread] = builder.add_track(replace(lane, parent=parents[process]))
    return Lanes(layers, parents, tracks)


def device_of_label(label: str, device: int) -> int:
    """Returns the device number in a process label: ``NPU 0`` → 0, ``NPU`` → ``device``, ``CPU`` → −1."""
    word, _, number = label.partition(" ")
    if word != "NPU":
        return ABSENT
    return digits_to_int(number, device)


def _lane(layer: Layer, pid: str, thread: int, texts: StringTable, device: int) -> Track:
    tid = texts.text(thread)
    name = layer.thread_names.get(thread) or (f"Thread {tid}" if tid else layer.name)
    kind = _KINDS.get(layer.name, TrackKind.OTHER)
    if kind is TrackKind.DEVICE_STREAM and not layer.thread_names.get(thread, "Stream").startswith("Stream"):
        # "Step Trace(Model ID:1)" and the like: spans over the device, not tasks of it.
        kind = TrackKind.ANNOTATION
    if kind is TrackKind.COMMUNICATION_GROUP and name.startswith("Plane"):
        kind = TrackKind.COMMUNICATION_PLANE
    if not layer.name and not layer.label:
        kind = TrackKind.OTHER
    stream = digits_to_int(tid, ABSENT) if kind is TrackKind.DEVICE_STREAM else ABSENT
    stream = ABSENT if stream == NO_ID else stream
    if kind is TrackKind.DEVICE_STREAM and thread not in layer.thread_names:
        name = f"Stream {tid}"
    group = name if kind is TrackKind.COMMUNICATION_GROUP else ""
    return Track(
        kind,
        name,
        sort_key=layer.thread_sort_indices.get(thread, 0),
        device=device,
        stream=stream,
        process_id=pid,
        thread_id=tid,
        group=group,
    )


def _order(layer: Layer, thread: int, texts: StringTable) -> tuple[int, int, str]:
    tid = texts.text(thread)
    return layer.thread_sort_indices.get(thread, 0), digits_to_int(tid, -1, MAX_INT64_DIGITS), tid


def _integer(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
