"""Holistic Trace Analysis' critical path, by its rules: the heaviest path through starts and ends of slices."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from engine.trace import Trace, TrackKind
from tests.support.hta_reference import _times

_HOST = frozenset({"cpu_op", "cuda_runtime", "cuda_driver"})
_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_BLOCKING = frozenset((
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize", "cudaMemcpy",
    "cudaMemcpyAsync",
))  # fmt: skip
"""Calls into whose end nothing of the host's own time leads: they wait."""


@dataclass(frozen=True)
class Row:
    """One slice in HTA's whole µs."""

    index: int
    name: str
    start: int
    end: int
    place: int
    correlation: int


@dataclass
class HtaGraph:
    """Nodes are 2 × row (start) and 2 × row + 1 (end)."""

    time: dict[int, int] = field(default_factory=dict)
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add_row(self, row: Row) -> None:
        self.time[2 * row.index] = row.start
        self.time[2 * row.index + 1] = row.end

    def add_edge(self, source: int, target: int, kind: str, *, weightless: bool = False) -> None:
        weight = 0 if weightless else max(self.time[target] - self.time[source], 0)
        self.edges.append((source, target, weight))
        self.kinds[kind] += 1

    @property
    def length(self) -> int:
        """Weight of the heaviest path, in µs."""
        followers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        waiting = dict.fromkeys(self.time, 0)
        for source, target, weight in self.edges:
            followers[source].append((target, weight))
            waiting[target] += 1
        heaviest = dict.fromkeys(self.time, 0)
        ready = [node for node, count in waiting.items() if count == 0]
        while ready:
            node = ready.pop()
            for target, weight in followers[node]:
                heaviest[target] = max(heaviest[target], heaviest[node] + weight)
                waiting[target] -= 1
                if waiting[target] == 0:
                    ready.append(target)
        return max(heaviest.values(), default=0)


def hta_graph(trace: Trace, base_ns: int | None, annotation: str, instance: int) -> HtaGraph:
    """Returns HTA's graph of the calls that begin inside one annotation, and of the kernels they launch."""
    start, duration = _times(trace, base_ns, rounds=True)
    categories = trace.strings.texts(trace.events.category)
    names = trace.strings.texts(trace.events.name)
    window = _window(trace, names, start, start + duration, annotation, instance)

    def rows(wanted: frozenset[str]) -> Iterator[Row]:
        for index in np.flatnonzero(np.isin(np.array(categories, dtype=object), list(wanted))).tolist():
            begin, correlation = int(start[index]), int(trace.events.correlation[index])
            place = int(trace.events.track[index])
            yield Row(index, names[index], begin, begin + int(duration[index]), place, correlation)

    graph = HtaGraph()
    host = [row for row in rows(_HOST) if row.end > row.start and window[0] <= row.start <= window[1]]
    launches = {row.correlation: row for row in host if row.correlation >= 0}
    streams: dict[int, list[Row]] = defaultdict(list)
    for row in sorted(rows(_DEVICE), key=lambda row: (row.start, trace.events.args_offset[row.index])):
        streams[trace.tracks[row.place].stream].append(row)
    inside = {stream: [row for row in own if row.correlation in launches] for stream, own in streams.items()}
    for row in (*host, *(row for own in inside.values() for row in own)):
        graph.add_row(row)
    _add_host(graph, host, trace)
    waits = _add_synchronizations(graph, trace, launches, inside)
    for stream, own in inside.items():
        _add_stream(graph, own, streams[stream], launches, waits)
    return graph


def _window(
    trace: Trace, names: list[str], start: np.ndarray, end: np.ndarray, annotation: str, instance: int
) -> tuple[int, int]:
    if not annotation:
        return int(start.min()), int(end.max())
    on_host = trace.events_of(TrackKind.HOST_THREAD).tolist()
    category = trace.strings.texts(trace.events.category)
    found = [row for row in on_host if annotation in names[row] and category[row] == "user_annotation"]
    chosen = sorted(found, key=lambda row: start[row])[instance]
    return int(start[chosen]), int(end[chosen])


def _add_host(graph: HtaGraph, host: list[Row], trace: Trace) -> None:
    """Chains starts and ends of each thread; between two outermost calls nothing is spent."""
    threads: dict[int, list[Row]] = defaultdict(list)
    for row in host:
        threads[trace.tracks[row.place].thread_id].append(row)
    for own in threads.values():
        own.sort(key=lambda row: (row.start, row.start - row.end, trace.events.args_offset[row.index]))
        walk = list(_walk(own))
        for (node, depth, _), (following, next_depth, name) in pairwise(walk):
            if depth == next_depth == 0 and node % 2 == 1 and following % 2 == 0:
                graph.add_edge(node, following, "dependency", weightless=True)
            else:
                graph.add_edge(node, following, "operator", weightless=following % 2 == 1 and name in _BLOCKING)


def _walk(rows: list[Row]) -> Iterator[tuple[int, int, str]]:
    """Yields node, depth and name of every start and end in the order of a depth-first walk."""
    stack: list[Row] = []
    for row in rows:
        while stack and stack[-1].end <= row.start:
            ended = stack.pop()
            yield 2 * ended.index + 1, len(stack), ended.name
        yield 2 * row.index, len(stack), row.name
        stack.append(row)
    while stack:
        ended = stack.pop()
        yield 2 * ended.index + 1, len(stack), ended.name


def _add_synchronizations(
    graph: HtaGraph, trace: Trace, launches: Mapping[int, Row], streams: Mapping[int, list[Row]]
) -> dict[int, list[Row]]:
    """Adds what calls wait for; returns row → what a kernel waits for by events."""
    waits: dict[int, list[Row]] = defaultdict(list)
    names = trace.strings.texts(trace.events.name)
    for index, category in enumerate(trace.strings.texts(trace.events.category)):
        correlation = int(trace.events.correlation[index])
        if category != "cuda_sync" or correlation not in launches:
            continue
        told = trace.arguments(index)
        record = int(told.get("wait_on_cuda_event_record_corr_id", -1))
        recorded = [row for row in streams.get(int(told.get("wait_on_stream", -1)), ()) if row.correlation < record]
        call = 2 * launches[correlation].index + 1
        if names[index] == "Stream Wait Event":
            later = [row for row in streams.get(int(told.get("stream", -1)), ()) if row.correlation > correlation]
            if recorded and later:
                waits[later[0].index].append(recorded[-1])
        elif names[index] == "Event Sync" and recorded:
            graph.add_edge(2 * recorded[-1].index + 1, call, "sync_dependency", weightless=True)
        elif names[index] == "Context Sync":
            for own in streams.values():
                before = [row for row in own if row.correlation < correlation]
                if before:
                    graph.add_edge(2 * before[-1].index + 1, call, "sync_dependency", weightless=True)
    return waits


def _add_stream(
    graph: HtaGraph, own: list[Row], everything: list[Row], launches: Mapping[int, Row], waits: Mapping[int, list[Row]]
) -> None:
    """Adds the kernels of a stream: each follows its launch where the stream was empty by then, else the one before."""
    position = everything.index(own[0]) if own else 0
    outside = everything[position - 1] if position else None
    before: Row | None = None
    for row in own:
        graph.add_edge(2 * row.index, 2 * row.index + 1, "operator")
        launch = launches[row.correlation]
        for source in waits.get(row.index, ()):
            graph.add_edge(2 * source.index + 1, 2 * row.index, "sync_dependency", weightless=True)
        awaited = max((source.end for source in waits.get(row.index, ())), default=launch.start)
        last = before or outside
        if last is None or launch.start > last.end:
            if awaited <= launch.start:
                graph.add_edge(2 * launch.index, 2 * row.index, "kernel_launch_delay")
        elif before is not None:
            graph.add_edge(2 * before.index + 1, 2 * row.index, "kernel_kernel_delay")
        before = row
