"""Opening a capture: read and analysed in the worker, handed over through the cache on disk.

The functions named ``…_in_worker`` run in the worker process. What they return is small; the columns cross as files
that this process maps into memory.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.user_places import cache_place
from profiler_gui.session.document import Document, label_of

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.summary import JobSummary
    from profiler_gui.session.worker import JobContext

READING_SHARE = 0.7
"""Part of the progress bar that reading takes, the rest are the analyses."""
SCENARIO_NAME = "scenario.toml"
"""What the scenario of a simulated run is called beside its captures."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What is to be opened, and where its columns are handed over.

    Attributes:
        paths: Files and directories.
        cache_directory: Of both processes.
        requested_at_ns: ``time.monotonic_ns()`` of the request; one clock for all processes of a machine.
    """

    paths: tuple[Path, ...]
    cache_directory: Path
    requested_at_ns: int


def open_request(paths: tuple[Path, ...], cache_directory: Path) -> OpenRequest:
    """Returns the request to open ``paths`` now."""
    return OpenRequest(tuple(path.absolute() for path in paths), cache_directory, time.monotonic_ns())


def cache_directory() -> Path:
    """Returns the directory for traces already read; a temporary one where the user's cannot be written."""
    directory = cache_place()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError:
        return Path(tempfile.mkdtemp(prefix="cannscope-"))


@dataclass(frozen=True, slots=True)
class ReadFinished:
    """Says that the columns are in the cache."""


def open_in_worker(context: JobContext, request: OpenRequest, start_ratio: float = 0.0) -> JobSummary:
    """Reads the job into the cache, says so, and returns the analyses. Raises as ``open_job`` does.

    Args:
        context: Of the worker.
        request: What to open.
        start_ratio: Part of the progress bar that is done already.
    """
    from engine.analyses.summary import summarize
    from engine.core.progress import part_of
    from engine.formats import TraceCache, open_job
    from engine.formats.readers import built_in_readers

    progress = part_of(context.progress, start_ratio, 1.0)
    job = open_job(
        request.paths,
        built_in_readers(),
        cache=TraceCache(request.cache_directory),
        progress=part_of(progress, 0.0, READING_SHARE),
        cancel=context.cancel,
    )
    context.deliver(ReadFinished())
    return summarize(job, part_of(progress, READING_SHARE, 1.0), context.cancel)


def prepare_imports() -> None:
    """Imports what opening needs; for a thread while the user looks for a file."""
    import engine.analyses.summary
    import engine.formats.readers  # noqa: F401


def mapped_document(request: OpenRequest) -> Document:
    """Returns the document of a job that the worker has just read, its columns mapped from the cache."""
    from engine.formats import TraceCache, open_job
    from engine.formats.readers import built_in_readers

    job = open_job(request.paths, built_in_readers(), cache=TraceCache(request.cache_directory))
    load_time_ns = time.monotonic_ns() - request.requested_at_ns
    return Document(request.paths, label_of(request.paths), job, None, load_time_ns, kept_scenario(request.paths))


def kept_scenario(paths: tuple[Path, ...]) -> Path | None:
    """Returns the scenario a run was simulated from, where it lies beside its captures; else None."""
    beside = paths[0] / SCENARIO_NAME if len(paths) == 1 else None
    return beside if beside is not None and beside.is_file() else None
