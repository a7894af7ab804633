"""One rank's run, recorded or simulated."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from engine.core.arrays import Int32Array
from engine.trace.diagnostics import Diagnostic
from engine.trace.strings import ABSENT, StringTable
from engine.trace.tables import (
    CollectiveTable,
    CounterSeries,
    EventTable,
    FlowTable,
    KernelTable,
    LinkTable,
    MemoryLog,
    RecordedTable,
)
from engine.trace.tracks import Track, TrackKind

ArgumentDecoder = Callable[[int], Mapping[str, Any]]
"""Given an ``args_offset``, reads the event's arguments from the source file."""


class Origin(StrEnum):
    """Where a trace comes from; nothing else distinguishes a prediction from a recording."""

    MEASURED = "measured"
    SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A half-open range of ns from the trace start."""

    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """The length."""
        return self.end_ns - self.start_ns

    def intersection(self, other: "TimeRange") -> "TimeRange":
        """Returns the common part; empty (zero length) where there is none."""
        start_ns = max(self.start_ns, other.start_ns)
        return TimeRange(start_ns, max(start_ns, min(self.end_ns, other.end_ns)))


@dataclass(frozen=True, slots=True)
class ParallelGroup:
    """Ranks that communicate with each other.

    Attributes:
        id: As collectives refer to it (hash or name).
        name: The framework's word, e.g. ``"dp_cp"``; "" where unknown.
        ranks: Global ranks in group order.
    """

    id: str
    name: str
    ranks: tuple[int, ...]


MAX_RANKS = 1 << 20
"""No job has more; a larger number in a file is no rank and no world size."""


@dataclass(frozen=True, slots=True)
class TraceMetadata:
    """What a capture says of itself; None where it does not say.

    Attributes:
        epoch_ns: Unix time of the trace start (of ``start_ns == 0``), or None for clocks of unknown origin.
        rank: Global rank.
        world_size: Number of ranks of the job.
        device: What the profiler calls the device (``"NPU 0"``, ``"NVIDIA A100-SXM4-80GB"``).
        device_count: Devices the capture mentions.
        device_memory_bytes: Capacity of the device where the capture states it.
        host: Host name or id.
        profiler_level: ``"Level0"`` … where the format has levels.
        software: Name → version (``"cann_version"``: ``"8.3.RC1"``).
        environment: Recorded environment variables.
        parallel_sizes: ``"tensor_model_parallel_size"`` → 2 …
        parallel_groups: Communication groups with their members.
        extra: Everything else, as JSON-compatible values.
    """

    epoch_ns: int | None = None
    rank: int | None = None
    world_size: int | None = None
    device: str | None = None
    device_count: int | None = None
    device_memory_bytes: int | None = None
    host: str | None = None
    profiler_level: str | None = None
    software: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    parallel_sizes: Mapping[str, int] = field(default_factory=dict)
    parallel_groups: tuple[ParallelGroup, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """Which files a trace was read from.

    Attributes:
        path: What the user opened.
        format: Format id (``"ascend-text"``, ``"kineto"``, ``"chrome"``).
        files: Every file that was read, relative to ``path`` where it is a directory.
    """

    path: str
    format: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Trace:
    """One rank's run. Two traces are compared by what they hold, never by identity of arrays.

    Attributes:
        time_range: Covers every event; for display, far outliers are left out and may lie before 0.
        argument_decoder: Reads arguments on demand; None where the source carries none.
    """

    origin: Origin
    source: Source
    metadata: TraceMetadata
    time_range: TimeRange
    strings: StringTable
    tracks: tuple[Track, ...]
    events: EventTable
    flows: FlowTable
    kernels: KernelTable
    collectives: CollectiveTable
    links: LinkTable
    memory: MemoryLog
    counters: tuple[CounterSeries, ...] = ()
    tables: Mapping[str, RecordedTable] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    argument_decoder: ArgumentDecoder | None = None

    def name(self, event: int) -> str:
        """Returns the event's name."""
        return self.strings.text(int(self.events.name[event]))

    def category(self, event: int) -> str:
        """Returns the source's category of the event, "" where it has none."""
        return self.strings.text(int(self.events.category[event]))

    def arguments(self, event: int) -> Mapping[str, Any]:
        """Returns the event's arguments, read from the source file now; empty where it has none."""
        offset = int(self.events.args_offset[event])
        if self.argument_decoder is None or offset == ABSENT:
            return {}
        return self.argument_decoder(offset)

    @cached_property
    def track_slices(self) -> tuple[slice, ...]:
        """One slice of event rows per track (events are sorted by track)."""
        bounds = np.searchsorted(self.events.track, np.arange(len(self.tracks) + 1, dtype=np.int32))
        return tuple(slice(int(start), int(end)) for start, end in itertools.pairwise(bounds))

    def tracks_of(self, *kinds: TrackKind) -> Int32Array:
        """Returns the indices (int32) of the tracks of the given kinds."""
        return np.array([index for index, track in enumerate(self.tracks) if track.kind in kinds], dtype=np.int32)

    def events_of(self, *kinds: TrackKind) -> Int32Array:
        """Returns the event rows (int32, ascending) on tracks of the given kinds."""
        rows = [
            np.arange(part.start, part.stop, dtype=np.int32) for part in map(self._slice_of, self.tracks_of(*kinds))
        ]
        return np.concatenate(rows) if rows else np.empty(0, dtype=np.int32)

    def _slice_of(self, track: int) -> slice:
        return self.track_slices[int(track)]

    @cached_property
    def kernel_row_of_event(self) -> Int32Array:
        """int32, shape (events,): row of ``kernels`` that describes the event, or −1."""
        rows = np.full(len(self.events), ABSENT, dtype=np.int32)
        rows[self.kernels.event] = np.arange(len(self.kernels), dtype=np.int32)
        return rows
