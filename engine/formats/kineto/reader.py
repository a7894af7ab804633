"""PyTorch's Kineto traces, from the schema of 2021 to today."""

import re
from pathlib import Path

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.core.errors import EmptyTraceError, SourcePosition
from engine.core.progress import part_of
from engine.formats.capture_search import single_file_captures
from engine.formats.events.counter_series import add_counters
from engine.formats.events.event_labels import read_labels
from engine.formats.events.flow_binding import bind_flows, flow_kinds, slices_at
from engine.formats.events.slice_pairs import count_unused_phases
from engine.formats.events.trace_events import ABSENT_TIME_NS, EventDecoder, RawEvents, read_events
from engine.formats.events.trace_input import probe
from engine.formats.kineto.collectives import collective_table
from engine.formats.kineto.memory import add_memory
from engine.formats.kineto.metadata import KinetoClock, clock_of, read_metadata
from engine.formats.kineto.tracks import (
    DEVICE,
    HOST,
    OPERATOR_CATEGORIES,
    RUNTIME_CATEGORIES,
    KinetoTracks,
    add_tracks,
    category_members,
    row_classes,
)
from engine.formats.reader import Capture, ReadContext
from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import Severity
from engine.trace.strings import StringTable
from engine.trace.tables import INSTANT, UNFINISHED
from engine.trace.trace import ArgumentDecoder, Origin, Source, Trace

_HEADER = re.compile(rb'"(?:deviceProperties|schemaVersion|distributedInfo|baseTimeNanoseconds)"\s*:')
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[|"ph"\s*:\s*"')
_CATEGORY = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|python_function|user_annotation|kernel|cuda_runtime|Operator|Runtime)"'
)
_EXTERNAL_ID = re.compile(rb'"[Ee]xternal id"\s*:')
_DEEP_PROBE_BYTES = 4 << 20
_COLLECTIVE_NAMES = ("nccl", "rccl", "hccl", "hcom", "record_param_comms")
_USED_PHASES = "XiICMsft"
_INSTANTS = (ord("i"), ord("I"))
_CHECK_EVERY = 1024


class KinetoReader:
    """Reads what ``torch.profiler`` exports as a Chrome trace, on CUDA, ROCm, XPU, MTIA or CPU."""

    id = "kineto"
    title = "PyTorch Kineto trace"

    def find(self, path: Path) -> tuple[Capture, ...]:
        """Returns every file at ``path`` that is a Kineto trace by its content."""
        return single_file_captures(path, _is_kineto_trace)

    def read(self, capture: Capture, context: ReadContext) -> Trace:
        """Reads the file. Raises TraceReadError where it holds no usable event."""
        path = capture.files["trace"]
        builder = TraceBuilder()
        reading = ReadContext(part_of(context.progress, 0.0, 0.7), context.cancel)
        raw = read_events(path, builder.strings, builder.diagnostics, reading)
        return _Import(path, builder, raw, context).trace(Source(str(capture.root), self.id, (path.name,)))

    def argument_decoder(self, source: Source) -> ArgumentDecoder | None:
        """Returns what reads arguments from the original file."""
        return EventDecoder(Path(source.path))


def _is_kineto_trace(path: Path) -> bool:
    head = probe(path)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        return False
    if _HEADER.search(head):
        return _EVENTS.search(head) is not None or _EVENTS.search(probe(path, _DEEP_PROBE_BYTES)) is not None
    return _CATEGORY.search(head) is not None and _EXTERNAL_ID.search(head) is not None


class _Import:
    """One file on its way from raw events to a trace."""

    def __init__(self, path: Path, builder: TraceBuilder, raw: RawEvents, context: ReadContext) -> None:
        self._path = path
        self._position = SourcePosition(path)
        self._builder = builder
        self._raw = raw
        self._context = context
        self._decoder = EventDecoder(path)
        self._texts: StringTable = builder.strings.table()
        self._rows = self._placed_rows()
        self._classes = row_classes(raw, self._texts, self._rows)
        self._clock: KinetoClock = clock_of(raw.start_ns[self._rows], raw.top_level)
        # Provisional event id of every raw row, −1 for rows that are no event.
        self._event = np.full(len(raw), -1, dtype=np.int64)
        self._event[self._rows] = np.arange(len(self._rows))

    def trace(self, source: Source) -> Trace:
        """Returns the finished trace."""
        raw, builder = self._raw, self._builder
        if len(self._rows) + len(raw.memory.row) == 0:
            raise EmptyTraceError("the trace holds no event with a time", self._position, "record it again")
        count_unused_phases(raw, _USED_PHASES, builder.diagnostics, self._position)
        labels = read_labels(raw, self._texts, builder.diagnostics, self._position)
        builder.slack_ns = self._clock.slack_ns
        self._report(0.72, "placing events")
        tracks = add_tracks(builder, raw, self._texts, labels, self._rows, self._classes)
        self._add_events(tracks)
        self._add_counters(tracks)
        self._report(0.76, "reading memory events")
        self._add_memory()
        self._report(0.8, "binding flows")
        self._add_flows()
        self._report(0.86, "reading collectives")
        self._add_collectives()
        self._report(0.9, "nesting")
        return builder.build(
            origin=Origin.MEASURED,
            source=source,
            metadata=read_metadata(self._path, raw.top_level, tracks.device, builder.diagnostics),
            clock_is_unix=self._clock.is_unix,
            argument_decoder=self._decoder,
        )

    def _report(self, done_ratio: float, what: str) -> None:
        self._context.cancel.check()
        self._context.progress(done_ratio, what)

    def _placed_rows(self) -> Int64Array:
        """Returns the rows that become events: slices and instants with a time, except the memory instants."""
        raw = self._raw
        drawn = (raw.phase == ord("X")) | np.isin(raw.phase, _INSTANTS)
        drawn &= raw.start_ns != ABSENT_TIME_NS
        drawn[raw.memory.row] = False
        rows: Int64Array = np.flatnonzero(drawn)
        return rows

    def _add_events(self, tracks: KinetoTracks) -> None:
        raw, rows = self._raw, self._rows
        duration_ns = raw.duration_ns[rows]
        is_slice = raw.phase[rows] == ord("X")
        missing = int(np.count_nonzero(is_slice & (duration_ns < 0)))
        message = "complete events have no duration; it is taken as 0"
        self._builder.diagnostics.add(
            "missing-duration", Severity.NOTICE, message, count=missing, position=self._position
        )
        flags = np.where(is_slice, np.where(raw.not_finished[rows], UNFINISHED, 0), INSTANT).astype(np.uint8)
        self._builder.add_events(
            start_ns=raw.start_ns[rows] + self._clock.base_ns,
            duration_ns=np.where(is_slice, np.maximum(duration_ns, 0), 0),
            track=tracks.track,
            name=raw.name[rows],
            category=raw.category[rows],
            correlation=raw.correlation[rows],
            args_offset=raw.offset[rows],
            flags=flags,
        )

    def _add_counters(self, tracks: KinetoTracks) -> None:
        base_ns = self._clock.base_ns
        add_counters(self._builder, self._raw, self._texts, tracks.parents, self._position, base_ns)

    def _slice_rows(self, chosen: BoolArray) -> Int64Array:
        """Returns the raw rows of the slices among the chosen events."""
        rows: Int64Array = self._rows[chosen & (self._raw.phase[self._rows] == ord("X"))]
        return rows

    def _add_memory(self) -> None:
        raw, memory = self._raw, self._raw.memory
        if len(memory.row) == 0:
            return
        operators = category_members(raw, self._texts, OPERATOR_CATEGORIES)
        rows = self._slice_rows(np.isin(raw.category[self._rows], operators))
        found = slices_at(raw, rows, raw.duration_ns[rows], memory.row, np.zeros(len(memory.row), dtype=np.bool_))
        around = np.where(found >= 0, rows[found] if len(rows) else -1, -1)
        time_ns = raw.start_ns[memory.row]
        add_memory(
            self._builder,
            memory,
            np.where(time_ns == ABSENT_TIME_NS, time_ns, time_ns + self._clock.base_ns),
            np.where(around >= 0, self._event[around], -1),
            np.where(around >= 0, raw.name[around], -1).astype(np.int32),
            self._position,
        )

    def _add_flows(self) -> None:
        """Binds launches to device rows and forward to backward operators, each among the rows it may stand on."""
        raw = self._raw
        is_flow = np.isin(raw.phase, [ord(letter) for letter in "stf"])
        between_operators = np.isin(raw.category, category_members(raw, self._texts, frozenset({"fwdbwd"})))
        operators = category_members(raw, self._texts, OPERATOR_CATEGORIES)
        launches = category_members(raw, self._texts, RUNTIME_CATEGORIES)
        category = raw.category[self._rows]
        for flow_rows, chosen in (
            (np.flatnonzero(is_flow & between_operators), np.isin(category, operators)),
            (np.flatnonzero(is_flow & ~between_operators), np.isin(category, launches) | (self._classes == DEVICE)),
        ):
            rows = self._slice_rows(chosen)
            binding = bind_flows(raw, rows, raw.duration_ns[rows], self._builder.diagnostics, self._position, flow_rows)
            for kind, source, target in flow_kinds(binding, self._builder.strings):
                self._builder.add_flows(self._event[rows[source]], self._event[rows[target]], kind)

    def _add_collectives(self) -> None:
        """Describes communication kernels by their arguments; host rows only where the trace has no device rows."""
        raw = self._raw
        side = DEVICE if np.any(self._classes == DEVICE) else HOST
        names = np.unique(raw.name[self._rows[self._classes == side]]).tolist()
        wanted = [name for name in names if any(word in self._texts.text(name).lower() for word in _COLLECTIVE_NAMES)]
        rows = self._slice_rows((self._classes == side) & np.isin(raw.name[self._rows], wanted))
        if len(rows) == 0:
            return
        arguments = []
        # A Python loop over communication rows, which are few beside the others.
        for index, offset in enumerate(raw.offset[rows].tolist()):
            if index % _CHECK_EVERY == 0:
                self._context.cancel.check()
            arguments.append(self._decoder(offset))
        self._builder.collectives = collective_table(
            self._builder.strings,
            self._event[rows],
            raw.name[rows].astype(np.int64),
            raw.start_ns[rows] + self._clock.base_ns,
            np.maximum(raw.duration_ns[rows], 0),
            arguments,
        )
