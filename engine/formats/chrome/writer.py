"""A trace as a Chrome trace file that Perfetto, chrome://tracing and MindStudio Insight open."""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec
import numba
import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.core.errors import ExportError
from engine.core.number_text import digits_to_int
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.core.units import NS_PER_US
from engine.trace.tables import INSTANT
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

FIRST_NS = NS_PER_US
"""Where the trace's ns 0 is written: Insight drops counter samples at ``ts`` 0."""
EPOCH_KEY = "epoch_ns"
"""Member of ``otherData``: Unix time of the file's time 0. Times themselves stay small, because viewers hold them in
doubles, and µs since 1970 in a double are only good to 0.25 µs."""
_MAX_LAYERS = 64
_BATCH = 2048
_FALLBACK_PROCESS = "Trace"


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where each track is written.

    Attributes:
        process: pid of each track's outermost ancestor.
        thread: tid of each track's first layer.
        layer: int32, shape (events,), which layer of its track an event is on.
    """

    process: tuple[int, ...]
    thread: tuple[int, ...]
    layer: Int32Array
    layer_count: Int32Array

    def thread_of(self, trace: Trace, event: int) -> int:
        """Returns the tid of an event."""
        return self.thread[int(trace.events.track[event])] + int(self.layer[event])


def write_chrome(
    trace: Trace, path: Path, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> None:
    """Writes ``trace`` to ``path``, which appears complete or not at all.

    Slices of one track that overlap without nesting are spread over threads of one name, since Perfetto drops them
    otherwise. Each arrow is a pair of flow events bound by thread and time.

    Raises:
        ExportError: The file cannot be written.
        OperationCancelled: Cancelled; nothing is left behind.
    """
    try:
        handle, scratch = tempfile.mkstemp(prefix=".writing-", suffix=".json", dir=path.parent)
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; choose another place") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            _write(trace, file, progress, cancel)
        Path(scratch).replace(path)
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; choose another place") from error
    finally:
        Path(scratch).unlink(missing_ok=True)


def _write(trace: Trace, file: IO[str], progress: Progress, cancel: CancelToken) -> None:
    places = _places(trace)
    file.write('{"displayTimeUnit":"ns","otherData":')
    file.write(json.dumps(_other_data(trace)))
    file.write(',"traceEvents":[\n')
    total = len(trace.events) + len(trace.flows) + sum(len(series) for series in trace.counters) + 1
    written = 0
    batch: list[str] = []
    for line in _lines(trace, places):
        batch.append(line)
        if len(batch) == _BATCH:
            cancel.check()
            file.write((",\n" if written else "") + ",\n".join(batch))
            written += len(batch)
            batch.clear()
            progress(min(written / total, 1.0), "writing events")
    cancel.check()
    file.write((",\n" if written and batch else "") + ",\n".join(batch) + "\n]}\n")


def _other_data(trace: Trace) -> dict[str, Any]:
    data: dict[str, Any] = {"origin": str(trace.origin), "source": trace.source.path}
    if trace.metadata.epoch_ns is not None:
        data[EPOCH_KEY] = trace.metadata.epoch_ns - FIRST_NS
    return data


def _lines(trace: Trace, places: _Places) -> Iterator[str]:
    yield from _metadata_lines(trace, places)
    yield from _event_lines(trace, places)
    yield from _flow_lines(trace, places)
    yield from _counter_lines(trace, places)


def _places(trace: Trace) -> _Places:
    roots = [_root(trace, index) for index in range(len(trace.tracks))]
    taken: set[int] = set()
    pid_of_root: dict[int, int] = {}
    for index, root in enumerate(roots):
        own_process = root if trace.tracks[root].kind is TrackKind.PROCESS else -1
        roots[index] = own_process
        if own_process not in pid_of_root:
            wanted = trace.tracks[own_process].process_id if own_process >= 0 else ""
            pid_of_root[own_process] = _free_number(wanted, taken)
    events = trace.events
    layer = _layers(events.track, events.start_ns, events.end_ns, _MAX_LAYERS)
    layer_count = np.ones(len(trace.tracks), dtype=np.int32)
    np.maximum.at(layer_count, events.track, layer + 1)
    # Threads are numbered through the whole file, so that no two tracks share one.
    thread = np.concatenate(([1], 1 + np.cumsum(layer_count)))[: len(trace.tracks)]
    return _Places(tuple(pid_of_root[root] for root in roots), tuple(thread.tolist()), layer, layer_count)


def _root(trace: Trace, index: int) -> int:
    while trace.tracks[index].parent >= 0:
        index = trace.tracks[index].parent
    return index


def _free_number(wanted: str, taken: set[int]) -> int:
    """Returns the file's own pid where it is a number nobody has taken, else the next free one."""
    number = digits_to_int(wanted, 1)
    while number in taken:
        number += 1
    taken.add(number)
    return number


@numba.njit(cache=True)
def _layers(track: Int32Array, start_ns: Int64Array, end_ns: Int64Array, max_layers: int) -> Int32Array:
    """Returns for slices sorted by (track, start, −duration) a layer on which each nests with all others."""
    layer = np.zeros(len(track), np.int32)
    open_end = np.zeros((max_layers, 1024), np.int64)
    depth = np.zeros(max_layers, np.int64)
    current = np.int32(-1)
    for event in range(len(track)):
        if track[event] != current:
            current = track[event]
            depth[:] = 0
        chosen = max_layers - 1
        for candidate in range(max_layers):
            top = depth[candidate]
            while top > 0 and open_end[candidate, top - 1] <= start_ns[event]:
                top -= 1
            depth[candidate] = top
            if top == 0 or (end_ns[event] <= open_end[candidate, top - 1] and top < 1024):
                chosen = candidate
                break
        layer[event] = chosen
        if depth[chosen] < 1024:
            open_end[chosen, depth[chosen]] = end_ns[event]
            depth[chosen] += 1
    return layer


def _metadata_lines(trace: Trace, places: _Places) -> Iterator[str]:
    named: set[int] = set()
    for index, track in enumerate(trace.tracks):
        pid = places.process[index]
        if pid not in named:
            named.add(pid)
            root = trace.tracks[_root(trace, index)]
            is_process = root.kind is TrackKind.PROCESS
            yield _metadata("process_name", pid, 0, {"name": root.name if is_process else _FALLBACK_PROCESS})
            yield _metadata("process_sort_index", pid, 0, {"sort_index": len(named)})
        if track.kind in (TrackKind.PROCESS, TrackKind.COUNTER):
            continue
        for layer in range(int(places.layer_count[index])):
            tid = places.thread[index] + layer
            yield _metadata("thread_name", pid, tid, {"name": track.name})
            yield _metadata("thread_sort_index", pid, tid, {"sort_index": tid})


def _metadata(name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    return f'{{"ph":"M","name":"{name}","pid":{pid},"tid":{tid},"args":{json.dumps(args)}}}'


def _us(ns: int) -> str:
    """Returns the µs of a time or duration with exactly three decimals."""
    sign, magnitude = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{magnitude // NS_PER_US}.{magnitude % NS_PER_US:03d}"


def _event_lines(trace: Trace, places: _Places) -> Iterator[str]:
    events = trace.events
    texts = [json.dumps(text) for text in trace.strings]
    columns = (events.start_ns, events.duration_ns, events.track, events.name, events.category, events.flags)
    # A Python loop over events: a text file has one line for each.
    for event, (start_ns, duration_ns, track, name, category, flags) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        shape = '"ph":"i","s":"t"' if flags & INSTANT else f'"ph":"X","dur":{_us(duration_ns)}'
        cat = f',"cat":{texts[category]}' if category >= 0 else ""
        yield (
            f'{{{shape},"name":{texts[name] if name >= 0 else json.dumps("")}{cat},"pid":{places.process[track]},'
            f'"tid":{places.thread_of(trace, event)},"ts":{_us(start_ns + FIRST_NS)}{_arguments(trace, event)}}}'
        )


def _arguments(trace: Trace, event: int) -> str:
    args = dict(trace.arguments(event))
    correlation = int(trace.events.correlation[event])
    if correlation >= 0 and not {"correlation", "connection_id"} & args.keys():
        args["correlation"] = correlation
    if not args:
        return ""
    try:
        return f',"args":{msgspec.json.encode(args).decode()}'
    except (UnicodeEncodeError, TypeError):
        return f',"args":{json.dumps(args, default=str)}'


def _flow_lines(trace: Trace, places: _Places) -> Iterator[str]:
    start_ns = trace.events.start_ns
    # A Python loop over arrows: two lines for each.
    for number, (source, target, kind) in enumerate(
        zip(trace.flows.source.tolist(), trace.flows.target.tolist(), trace.flows.kind.tolist(), strict=True)
    ):
        word = json.dumps(trace.strings.text(kind))
        for phase, event in (('"ph":"s"', source), ('"ph":"f","bp":"e"', target)):
            yield (
                f'{{{phase},"id":{number},"name":{word},"cat":{word},'
                f'"pid":{places.process[int(trace.events.track[event])]},"tid":{places.thread_of(trace, event)},'
                f'"ts":{_us(int(start_ns[event]) + FIRST_NS)}}}'
            )


def _counter_lines(trace: Trace, places: _Places) -> Iterator[str]:
    seen: dict[tuple[int, str], int] = {}
    for series in trace.counters:
        pid = places.process[series.track]
        copies = seen[pid, series.name] = seen.get((pid, series.name), 0) + 1
        # Series of one name in one process are told apart by an id, as the format provides.
        number = f',"id":{copies}' if copies > 1 else ""
        head = f'{{"ph":"C","name":{json.dumps(series.name)},"pid":{pid},"tid":0{number},"ts":'
        key = json.dumps(series.unit or "value")
        for time_ns, value in zip(series.time_ns.tolist(), series.value.tolist(), strict=True):
            # JSON has no word for what is no number; a missing sample is the nearest thing.
            if np.isfinite(value):
                yield f'{head}{_us(time_ns + FIRST_NS)},"args":{{{key}:{json.dumps(value)}}}}}'
