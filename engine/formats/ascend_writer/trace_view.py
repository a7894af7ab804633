"""trace_view.json: lanes, slices, arrows and counters as one array on one line, as json.dumps would write it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.progress import CancelToken, Progress
from engine.formats.ascend_writer.lanes import FileLanes, lanes_of
from engine.formats.ascend_writer.numbers import us_text
from engine.trace.tables import INSTANT, CounterSeries
from engine.trace.trace import Trace
from engine.trace.tracks import Track, TrackKind

NO_ID = 4_294_967_295
_BATCH = 4096
_ELEMENT = ("BFP16", 2)
_PLAIN_UNITS = ("MHz", "KB", "MB", "GB", "B")
_OWNER = re.compile(r"^(?P<title>.*) \(acc (?P<owner>[^()]*)\)$")
_QUEUED = ("HostToDevice",)
"""Flows whose name carries their id and whose id is text."""
_FLOW_NAMES = {"async_npu": "torch_to_npu", "async_task_queue": "enqueue_to_dequeue"}


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """What the lines are made of.

    Attributes:
        trace: The trace.
        lanes: Where its tracks are written.
        epoch_ns: Absolute time of the trace's ns 0.
        texts: JSON text of every string.
        payload: int64, shape (events,): bytes of a collective, −1 where none.
    """

    trace: Trace
    lanes: FileLanes
    epoch_ns: int
    texts: list[str]
    payload: Int64Array


def write_trace_view(trace: Trace, path: Path, progress: Progress, cancel: CancelToken) -> None:
    """Writes the file. Raises OSError, OperationCancelled."""
    payload = np.full(len(trace.events), -1, dtype=np.int64)
    known = trace.collectives.event >= 0
    payload[trace.collectives.event[known]] = trace.collectives.bytes[known]
    texts = [json.dumps(text) for text in trace.strings]
    source = _Source(trace, lanes_of(trace), trace.metadata.epoch_ns or 0, texts, payload)
    total = len(trace.events) + 2 * len(trace.flows) + sum(map(len, trace.counters)) + 1
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("[")
        batch: list[str] = []
        done = 0
        for line in _lines(source):
            batch.append(line)
            if len(batch) == _BATCH:
                cancel.check()
                file.write((", " if done else "") + ", ".join(batch))
                done += len(batch)
                batch.clear()
                progress(min(done / total, 1.0), "writing events")
        file.write((", " if done and batch else "") + ", ".join(batch) + "]")


def _lines(source: _Source) -> Iterator[str]:
    yield from _metadata_lines(source)
    yield from _event_lines(source)
    yield from _counter_lines(source)
    yield from _flow_lines(source)


def _metadata_lines(source: _Source) -> Iterator[str]:
    for layer in source.lanes.layers:
        yield _metadata("process_name", layer.pid, 0, {"name": layer.name})
        yield _metadata("process_labels", layer.pid, 0, {"labels": layer.label})
        yield _metadata("process_sort_index", layer.pid, 0, {"sort_index": layer.sort_index})
    for index, track in enumerate(source.trace.tracks):
        if track.kind not in (TrackKind.PROCESS, TrackKind.COUNTER):
            pid, tid = source.lanes.pid(index), source.lanes.thread[index]
            yield _metadata("thread_name", pid, tid, {"name": _lane_name(track)})
            yield _metadata("thread_sort_index", pid, tid, {"sort_index": track.sort_key})


def _lane_name(track: Track) -> str:
    """Returns the name of a lane: a device lane of any other name than ``Stream …`` is taken for spans over it."""
    is_stream = track.kind is TrackKind.DEVICE_STREAM
    return f"Stream {track.name}" if is_stream and not track.name.startswith("Stream") else track.name


def _metadata(name: str, pid: int, tid: int, args: Mapping[str, Any]) -> str:
    return f'{{"name": "{name}", "pid": {pid}, "tid": {tid}, "args": {json.dumps(args)}, "ph": "M"}}'


def _event_lines(source: _Source) -> Iterator[str]:
    trace, events = source.trace, source.trace.events
    heads = [f'"pid": {source.lanes.pid(i)}, "tid": {source.lanes.thread[i]}' for i in range(len(trace.tracks))]
    kinds = [track.kind for track in trace.tracks]
    columns = (events.start_ns, events.duration_ns, events.track, events.name, events.category, events.flags)
    # A Python loop over events: the file has one entry for each.
    for event, (start_ns, duration_ns, track, name, category, flags) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        kind = kinds[track]
        title = source.texts[name] if name >= 0 else '""'
        place = f'{heads[track]}, "ts": "{us_text(start_ns + source.epoch_ns)}"'
        args = _arguments(source, event, kind, category)
        if flags & INSTANT:
            yield f'{{"name": {title}, {place}, "s": "t", "args": {args}, "ph": "i"}}'
        elif kind is TrackKind.HOST_THREAD:
            word = source.texts[category] if category >= 0 else '"cpu_op"'
            yield (
                f'{{"ph": "X", "name": {title}, {place}, "dur": {us_text(duration_ns)}, "cat": {word}, "args": {args}}}'
            )
        else:
            named = (
                f', "cat": {source.texts[category]}' if category >= 0 and kind is not TrackKind.DEVICE_STREAM else ""
            )
            shown = f', "args": {args}' if args != "{}" else ""
            yield f'{{"name": {title}, {place}, "dur": {us_text(duration_ns)}{named}{shown}, "ph": "X"}}'


def _arguments(source: _Source, event: int, kind: TrackKind, category: int) -> str:
    """Returns the arguments as JSON: the source's own where it still has them, else what the columns say."""
    trace = source.trace
    own = trace.arguments(event)
    correlation = int(trace.events.correlation[event])
    connection = correlation if correlation >= 0 else NO_ID
    if own:
        is_task = kind is TrackKind.DEVICE_STREAM and category >= 0
        kept = {"Task Type": trace.strings.text(category)} if is_task else {}
        return json.dumps({**kept, **own}, default=str)
    if kind is TrackKind.HOST_THREAD:
        return '{"Sequence number": -1, "Fwd thread id": 0}'
    if kind is TrackKind.CANN_THREAD:
        level, _, call = trace.name(event).partition("@")
        thread = source.lanes.thread[int(trace.events.track[event])]
        parts = f'"Thread Id": {thread}, "Mode": "launch", "level": {json.dumps(level.lower())}, "id": "{event}"'
        return f'{{{parts}, "item_id": {json.dumps(call)}, "connection_id": {connection}}}'
    if kind is TrackKind.DEVICE_STREAM:
        word = source.texts[category] if category >= 0 else '"N/A"'
        stream = trace.tracks[int(trace.events.track[event])].stream
        parts = f'"Model Id": {NO_ID}, "Task Type": {word}, "Physic Stream Id": {stream}, "Task Id": {event % 65536}'
        return f'{{{parts}, "Batch Id": 0, "Subtask Id": {NO_ID}, "connection_id": {connection}}}'
    if kind is TrackKind.COMMUNICATION_GROUP:
        payload = int(source.payload[event])
        word, size = ("INT8", 1) if payload % _ELEMENT[1] else _ELEMENT
        count = f', "data_type": "{word}", "alg_type": "N/A", "count": {payload // size}' if payload >= 0 else ""
        return f'{{"connection_id": {connection}, "model id": {NO_ID}{count}}}'
    if kind is TrackKind.COMMUNICATION_PLANE:
        return f'{{"task type": {source.texts[int(trace.events.name[event])]}, "model id": {NO_ID}}}'
    return "{}"


def _flow_lines(source: _Source) -> Iterator[str]:
    trace = source.trace
    start_ns, track = trace.events.start_ns, trace.events.track
    columns = (trace.flows.source.tolist(), trace.flows.target.tolist(), trace.flows.kind.tolist())
    # A Python loop over arrows: two entries for each.
    for number, (begin, end, kind) in enumerate(zip(*columns, strict=True), start=1):
        category = trace.strings.text(kind)
        named = category in _QUEUED
        name = f"{category}{number}" if named else _FLOW_NAMES.get(category, category)
        number_text = f'"{number}"' if named else str(number)
        words = f'"id": {number_text}, "name": {json.dumps(name)}, "cat": {json.dumps(category)}'
        for phase, event in (('"ph": "s", "bp": "e"', begin), ('"ph": "f", "bp": "e"', end)):
            lane = int(track[event])
            yield (
                f'{{{phase}, {words}, "pid": {source.lanes.pid(lane)}, "tid": {source.lanes.thread[lane]}, '
                f'"ts": "{us_text(int(start_ns[event]) + source.epoch_ns)}"}}'
            )


def _counter_lines(source: _Source) -> Iterator[str]:
    for series in source.trace.counters:
        pid = source.lanes.pid(series.track)
        name = source.trace.tracks[series.track].name
        key, owner = _value_key(series, name)
        head = f'{{"name": {json.dumps(name)}, "pid": {pid}, "tid": 0, "ts": "'
        tail = f', "acc_id": {json.dumps(owner)}' if owner else ""
        for time_ns, value in zip(series.time_ns.tolist(), series.value.tolist(), strict=True):
            if np.isfinite(value):
                moment = us_text(time_ns + source.epoch_ns)
                yield f'{head}{moment}", "args": {{{json.dumps(key)}: {json.dumps(value)}{tail}}}, "ph": "C"}}'


def _value_key(series: CounterSeries, name: str) -> tuple[str, str]:
    """Returns the key of a counter's value, which carries the unit (``Read(MB/s)``, ``MHz``), and whose value it is.

    A counter's samples share the name of its track; what its series are called beyond that stands in the key, but for
    the accelerator they belong to, which is an argument of its own.
    """
    match = _OWNER.match(series.name)
    title, owner = (match["title"], match["owner"]) if match else (series.name, "")
    rest = title.removeprefix(name).strip()
    if not series.unit:
        return rest or "value", owner
    word = rest or title.rpartition("/")[2]
    return (series.unit if series.unit in _PLAIN_UNITS else f"{word}({series.unit})"), owner
