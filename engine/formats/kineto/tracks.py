"""Rows of a Kineto trace on tracks: host threads, device streams, annotations on the device, the profiler's spans."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int32Array, Int64Array, UInt8Array
from engine.core.number_text import digits_to_int
from engine.formats.events.event_labels import EventLabels
from engine.formats.events.trace_events import RawEvents
from engine.trace.builder import TraceBuilder
from engine.trace.strings import StringTable
from engine.trace.tracks import Track, TrackKind

HOST, DEVICE, DEVICE_ANNOTATION, SPAN = range(4)
DEVICE_CATEGORIES = frozenset({
    "kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "concurrent_kernel", "cuda_sync", "cuda_event",
    "xpu_sync", "mtia_ccp_events", "collective_comm", "cuda_profiler_range",
})  # fmt: skip
"""In lower case; ``Kernel``, ``Memcpy`` and ``Memset`` are the words of 2021."""
RUNTIME_CATEGORIES = frozenset({
    "cuda_runtime", "cuda_driver", "runtime", "mtia_runtime", "glow_runtime", "xpu_runtime", "xpu_driver",
    "privateuse1_runtime", "privateuse1_driver",
})  # fmt: skip
OPERATOR_CATEGORIES = frozenset({"cpu_op", "operator", "user_annotation"})
_DEVICE_FIRST, _SPANS_LAST = 1 << 32, 1 << 33


@dataclass(frozen=True, slots=True, eq=False)
class KinetoTracks:
    """Where the rows went.

    Attributes:
        track: int32, shape (rows,).
        parents: String id of a process → one of its PROCESS tracks, the device's where it has both.
        device: Number of the device with the most rows, −1 where there is none.
    """

    track: Int32Array
    parents: dict[int, int]
    device: int


def category_members(raw: RawEvents, texts: StringTable, words: frozenset[str]) -> Int32Array:
    """Returns the string ids among the categories of ``raw`` whose lower-case text is in ``words``."""
    present = np.unique(raw.category)
    members = [number for number in present.tolist() if texts.text(number).lower() in words]
    return np.array(members, dtype=np.int32)


def row_classes(raw: RawEvents, texts: StringTable, rows: Int64Array) -> UInt8Array:
    """Returns HOST, DEVICE, DEVICE_ANNOTATION or SPAN for each row.

    The category decides, not the pid: in a container a small pid can equal a device number, and Python frames of
    some traces stand on pid 0.
    """
    category = raw.category[rows]
    classes = np.full(len(rows), HOST, dtype=np.uint8)
    processes = np.unique(raw.process[rows]).tolist()
    worded = [number for number in processes if not texts.text(number).lstrip("-").isdecimal()]
    spans = category_members(raw, texts, frozenset({"trace"}))
    classes[np.isin(raw.process[rows], worded) | np.isin(category, spans)] = SPAN
    classes[np.isin(category, category_members(raw, texts, DEVICE_CATEGORIES))] = DEVICE
    annotations = category_members(raw, texts, frozenset({"gpu_user_annotation"}))
    classes[np.isin(category, annotations)] = DEVICE_ANNOTATION
    return classes


def add_tracks(
    builder: TraceBuilder,
    raw: RawEvents,
    texts: StringTable,
    labels: EventLabels,
    rows: Int64Array,
    classes: UInt8Array,
) -> KinetoTracks:
    """Adds a PROCESS track per process and side, and a track per (class, pid, tid) below it."""
    process, thread = raw.process[rows].astype(np.int64), raw.thread[rows].astype(np.int64)
    key = (classes.astype(np.int64) << 60) | ((process + 1) << 30) | (thread + 1)
    _, first, inverse, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    numbers = np.empty(len(first), dtype=np.int32)
    parents: dict[tuple[int, int], int] = {}
    busiest, device = 0, -1
    for lane in np.argsort(first, kind="stable").tolist():
        row = int(rows[first[lane]])
        side = int(classes[first[lane]])
        side_of_process = DEVICE if side == DEVICE_ANNOTATION else side
        owner = (side_of_process, int(raw.process[row]))
        if owner not in parents:
            parents[owner] = builder.add_track(_process_track(texts, labels, *owner))
        track = _thread_track(raw, texts, labels, row, side, parents[owner])
        numbers[lane] = builder.add_track(track)
        if side == DEVICE and int(counts[lane]) > busiest:
            busiest, device = int(counts[lane]), track.device
    by_process = {process: track for (_, process), track in sorted(parents.items())}
    return KinetoTracks(numbers[inverse], by_process, device)


def _process_track(texts: StringTable, labels: EventLabels, side: int, process: int) -> Track:
    pid = texts.text(process)
    name = labels.process_name.get(process, "")
    if side == DEVICE:
        label = labels.process_label.get(process, "")
        shown = label if label and not label.startswith("CPU") else f"Device {pid}"
        device = digits_to_int(pid, -1)
        return Track(TrackKind.PROCESS, shown, sort_key=_DEVICE_FIRST + device, device=device, process_id=pid)
    if side == SPAN:
        return Track(TrackKind.PROCESS, pid or name or "Profiler", sort_key=_SPANS_LAST, process_id=pid)
    order = labels.process_order.get(process, 0)
    return Track(TrackKind.PROCESS, f"{name or 'Process'} {pid}", sort_key=order, process_id=pid)


def _thread_track(raw: RawEvents, texts: StringTable, labels: EventLabels, row: int, side: int, parent: int) -> Track:
    process, thread = int(raw.process[row]), int(raw.thread[row])
    pid, tid = texts.text(process), texts.text(thread)
    name = labels.thread_name.get((process, thread), "").strip()
    order = labels.thread_order.get((process, thread), 0)
    if side == HOST:
        shown = name or f"thread {tid}"
        return Track(TrackKind.HOST_THREAD, shown, parent, order, process_id=pid, thread_id=tid)
    if side == SPAN:
        return Track(TrackKind.ANNOTATION, name or tid or "Profiler", parent, order, process_id=pid, thread_id=tid)
    recorded = int(raw.stream[row])
    # 2021 writes tid "stream 7"; a synchronisation of the whole context has stream −1.
    stream = recorded if recorded >= 0 else digits_to_int(tid.removeprefix("stream").strip(), -1)
    shown = name or (f"stream {stream}" if stream >= 0 else f"stream {tid}")
    place = {"device": digits_to_int(pid, -1), "stream": stream, "process_id": pid, "thread_id": tid}
    if side == DEVICE:
        return Track(TrackKind.DEVICE_STREAM, shown, parent, order, **place)  # type: ignore[arg-type]
    return Track(TrackKind.ANNOTATION, f"{shown} annotations", parent, order, **place)  # type: ignore[arg-type]
