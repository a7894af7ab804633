"""What is open: a job with its analyses."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.summary import JobSummary
    from engine.trace import Job


class Run(StrEnum):
    """Which of the two runs of the window."""

    A = "a"
    B = "b"


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One run.

    Attributes:
        paths: What the user opened.
        label: A short name for headers and the title.
        job: Its traces, memory-mapped.
        summary: All analyses; None until they arrive (the timeline is usable before).
        load_time_ns: From the request to the first usable timeline.
        scenario: The scenario file it was simulated from, where that was kept beside it.
    """

    paths: tuple[Path, ...]
    label: str
    job: Job
    summary: JobSummary | None
    load_time_ns: int
    scenario: Path | None = None

    @property
    def ranks(self) -> tuple[int, ...]:
        """The global ranks, ascending."""
        return tuple(entry.rank for entry in self.job.ranks)

    @property
    def is_simulated(self) -> bool:
        """Whether any of its traces was simulated: such a run must never be taken for a recorded one."""
        return any(entry.trace.origin == "simulated" for entry in self.job.ranks)

    @property
    def key(self) -> str:
        """Letters and digits that name this capture at every opening: its paths and what they held.

        A capture recorded anew in the same place is another one: its tracks and moments are others.
        """
        held = [(entry.rank, len(entry.trace.events), entry.trace.metadata.epoch_ns) for entry in self.job.ranks]
        return hashlib.sha256(repr(([str(path) for path in self.paths], held)).encode()).hexdigest()[:16]

    @property
    def event_count(self) -> int:
        """Events of all ranks."""
        return sum(len(entry.trace.events) for entry in self.job.ranks)


def label_of(paths: tuple[Path, ...]) -> str:
    """Returns what people would call the capture: the last folder or file name, and how many more were opened."""
    first = paths[0].resolve()
    name = first.parent.name if first.name == "ASCEND_PROFILER_OUTPUT" else first.name
    name = name or str(first)
    return name if len(paths) == 1 else f"{name} + {len(paths) - 1}"
