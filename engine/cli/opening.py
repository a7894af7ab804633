"""How every command opens what it is given."""

from collections.abc import Sequence
from pathlib import Path

from engine.core.progress import Progress
from engine.core.user_places import cache_place
from engine.formats import TraceCache, open_job
from engine.formats.readers import built_in_readers
from engine.trace.job import Job


def trace_cache() -> TraceCache:
    """Returns the user's cache of traces."""
    return TraceCache(cache_place())


def open_capture(paths: Sequence[Path], progress: Progress) -> Job:
    """Returns the job at ``paths``. Raises TraceReadError."""
    return open_job(paths, built_in_readers(), cache=trace_cache(), progress=progress)
