"""What a trace format must offer; ``opening`` knows nothing else about any format."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.trace.trace import ArgumentDecoder, Source, Trace

PROBE_BYTES = 64 * 1024
MAX_EXPANDED_BYTES = 64 << 30
MAX_EXPANSION_RATIO = 400
"""A gzip file of a trace expands about 10–30 times; DEFLATE's limit is 1032. Beyond this ratio (past the first 64 MiB)
the file is taken for a bomb and refused."""


@dataclass(frozen=True, slots=True)
class ReadContext:
    """What a long reading call may use."""

    progress: Progress = no_progress
    cancel: CancelToken = NEVER_CANCELLED

    def part(self, start_ratio: float, end_ratio: float) -> "ReadContext":
        """Returns the context of one stage, whose progress is ``start_ratio``…``end_ratio`` of the whole."""
        return ReadContext(part_of(self.progress, start_ratio, end_ratio), self.cancel)

    def parts(self, count: int) -> Iterator["ReadContext"]:
        """Yields the contexts of ``count`` equal stages, one after another."""
        for index in range(count):
            yield self.part(index / count, (index + 1) / count)


@dataclass(frozen=True, slots=True)
class Capture:
    """The files of one rank, found but not read.

    Attributes:
        root: What identifies the capture: the file itself, or the profiler directory.
        files: Role (``"trace_view"``, ``"kernel_details"``, or ``"trace"`` for a single file) → path.
    """

    root: Path
    files: Mapping[str, Path]


class Reader(Protocol):
    """One trace format. Stateless: everything it needs is passed in."""

    @property
    def id(self) -> str:
        """Stable id, e.g. ``"kineto"``."""

    @property
    def title(self) -> str:
        """What people call the format."""

    def find(self, path: Path) -> tuple[Capture, ...]:
        """Returns the captures of this format at ``path`` (a file or a directory), judged by content; cheap.

        Returns nothing where the path holds none. Never raises for unreadable or foreign files.
        """

    def read(self, capture: Capture, context: ReadContext) -> Trace:
        """Reads a capture. Raises TraceReadError where nothing can be used; counts the rest as diagnostics."""

    def argument_decoder(self, source: Source) -> ArgumentDecoder | None:
        """Returns what reads arguments of a trace of this format that was re-opened from the cache."""
