"""Any Chrome trace: the Trace Event format's slices, instants, counters, flows and async events."""

import re
from pathlib import Path

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.core.errors import EmptyTraceError, SourcePosition
from engine.core.progress import part_of
from engine.formats.capture_search import single_file_captures
from engine.formats.events.counter_series import add_counters
from engine.formats.events.event_labels import EventLabels, read_labels
from engine.formats.events.flow_binding import bind_flows, flow_kinds
from engine.formats.events.slice_pairs import Slices, gather_slices
from engine.formats.events.trace_events import EventDecoder, RawEvents, read_events
from engine.formats.events.trace_input import probe
from engine.formats.reader import Capture, ReadContext
from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import Severity
from engine.trace.strings import StringTable
from engine.trace.tables import INSTANT
from engine.trace.trace import ArgumentDecoder, Origin, Source, Trace, TraceMetadata
from engine.trace.tracks import Track, TrackKind

UNIX_RANGE_NS = (9 * 10**17, 4 * 10**18)
"""Times between 1998 and 2096 are Unix times; other traces count from boot or from their own start."""
MAX_ASYNC_TRACKS = 1000
"""Above this, async operations of one process and category share a track: nobody reads a hundred thousand tracks."""
_EVENT = re.compile(rb'"ph"\s*:\s*"[A-Za-z(),]"')
_EVENT_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_DEEP_PROBE_BYTES = 4 << 20


class ChromeReader:
    """Reads any file of the Trace Event format that no other reader knows better."""

    id = "chrome"
    title = "Chrome trace"

    def find(self, path: Path) -> tuple[Capture, ...]:
        """Returns every file at ``path`` that holds trace events."""
        return single_file_captures(path, _is_chrome_trace)

    def read(self, capture: Capture, context: ReadContext) -> Trace:
        """Reads the file. Raises TraceReadError where it holds no usable event."""
        path = capture.files["trace"]
        position = SourcePosition(path)
        builder = TraceBuilder()
        reading = ReadContext(part_of(context.progress, 0.0, 0.7), context.cancel)
        raw = read_events(path, builder.strings, builder.diagnostics, reading)
        texts = builder.strings.table()
        labels = read_labels(raw, texts, builder.diagnostics, position)
        slices = gather_slices(raw, builder.diagnostics, position)
        if len(slices.row) + len(raw.counters) == 0:
            raise EmptyTraceError("the trace holds no event with a time", position, "record it again")
        base_ns = _base_ns(raw)
        _report(context, 0.75, "matching slices")
        parents = _add_events(builder, raw, texts, labels, slices, base_ns)
        add_counters(builder, raw, texts, parents, position, base_ns)
        _report(context, 0.8, "binding flows")
        chosen = np.flatnonzero(slices.flags & INSTANT == 0)
        binding = bind_flows(raw, slices.row[chosen], slices.duration_ns[chosen], builder.diagnostics, position)
        for kind, source, target in flow_kinds(binding, builder.strings):
            builder.add_flows(chosen[source], chosen[target], kind)
        _report(context, 0.9, "nesting")
        return builder.build(
            origin=Origin.MEASURED,
            source=Source(str(capture.root), self.id, (path.name,)),
            metadata=TraceMetadata(extra=raw.top_level),
            clock_is_unix=_is_unix_time(raw.start_ns[slices.row] + base_ns),
            argument_decoder=EventDecoder(path),
        )

    def argument_decoder(self, source: Source) -> ArgumentDecoder | None:
        """Returns what reads arguments from the original file."""
        return EventDecoder(Path(source.path))


def _report(context: ReadContext, done_ratio: float, what: str) -> None:
    context.cancel.check()
    context.progress(done_ratio, what)


def _base_ns(raw: RawEvents) -> int:
    """Returns the Unix time of the file's time 0 where a file written by ``chrome_writer`` states it, else 0."""
    other = raw.top_level.get("otherData")
    epoch_ns = other.get("epoch_ns") if isinstance(other, dict) else None
    return epoch_ns if isinstance(epoch_ns, int) and UNIX_RANGE_NS[0] <= epoch_ns < UNIX_RANGE_NS[1] else 0


def _is_unix_time(start_ns: Int64Array) -> bool:
    """Returns whether the times count from the Unix epoch: judged by their median, a stray 0 decides nothing."""
    return len(start_ns) > 0 and UNIX_RANGE_NS[0] <= float(np.median(start_ns)) < UNIX_RANGE_NS[1]


def _is_chrome_trace(path: Path) -> bool:
    head = probe(path)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"[", b"{"):
        return False
    if _EVENT.search(head) or _EVENT_LIST.search(head):
        return True
    return _EVENT.search(probe(path, _DEEP_PROBE_BYTES)) is not None


def _add_events(
    builder: TraceBuilder, raw: RawEvents, texts: StringTable, labels: EventLabels, slices: Slices, base_ns: int
) -> dict[int, int]:
    """Adds tracks and events; provisional ids are the indices of ``slices``. Returns the track of each process."""
    lane_process = raw.process[slices.lane_row]
    used = np.bincount(slices.lane, minlength=len(slices.lane_row)) > 0
    with_counters = {int(raw.process[item.row]) for item in raw.counters}
    parents: dict[int, int] = {}
    for process in dict.fromkeys([*lane_process[used].tolist(), *sorted(with_counters)]):
        parents[process] = builder.add_track(_process_track(texts, labels, process))
    track_of_lane = _lane_tracks(builder, raw, texts, labels, slices, used, parents)
    builder.add_events(
        start_ns=raw.start_ns[slices.row] + base_ns,
        duration_ns=slices.duration_ns,
        track=track_of_lane[slices.lane],
        name=raw.name[slices.row],
        category=raw.category[slices.row],
        correlation=raw.correlation[slices.row],
        args_offset=raw.offset[slices.row],
        flags=slices.flags,
    )
    return parents


def _process_track(texts: StringTable, labels: EventLabels, process: int) -> Track:
    pid = texts.text(process)
    name = labels.process_name.get(process) or (f"Process {pid}" if pid else "Process")
    return Track(TrackKind.PROCESS, name, sort_key=labels.process_order.get(process, 0), process_id=pid)


def _lane_tracks(
    builder: TraceBuilder,
    raw: RawEvents,
    texts: StringTable,
    labels: EventLabels,
    slices: Slices,
    used: np.ndarray,
    parents: dict[int, int],
) -> Int32Array:
    """Adds one track per used lane and returns the track of every lane, −1 for unused ones."""
    track_of_lane = np.full(len(used), -1, dtype=np.int32)
    lanes = np.flatnonzero(used).tolist()
    share = sum(lane >= slices.thread_count for lane in lanes) > MAX_ASYNC_TRACKS
    shared: dict[tuple[int, int], int] = {}
    for lane in lanes:
        row = int(slices.lane_row[lane])
        process, thread, category = int(raw.process[row]), int(raw.thread[row]), int(raw.category[row])
        parent = parents[process]
        pid = texts.text(process)
        if lane < slices.thread_count:
            tid = texts.text(thread)
            name = labels.thread_name.get((process, thread)) or (f"Thread {tid}" if tid else "Process events")
            order = labels.thread_order.get((process, thread), 0)
            track = Track(TrackKind.HOST_THREAD, name, parent, order, process_id=pid, thread_id=tid)
            track_of_lane[lane] = builder.add_track(track)
            continue
        if share and (process, category) in shared:
            track_of_lane[lane] = shared[process, category]
            continue
        number = int(raw.flow[row])
        name = texts.text(category) or "async"
        name = name if share or number < 0 else f"{name} {raw.flow_ids[number]}"
        track_of_lane[lane] = builder.add_track(Track(TrackKind.OTHER, name, parent, process_id=pid))
        shared[process, category] = int(track_of_lane[lane])
    if share:
        message = "async operations share one track per process and category because there are so many"
        builder.diagnostics.add("shared-async-track", Severity.NOTICE, message)
    return track_of_lane
