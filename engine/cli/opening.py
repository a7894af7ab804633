"""How every command opens what it is given."""

import os
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from engine.core.progress import Progress
from engine.formats import TraceCache, open_job
from engine.formats.readers import built_in_readers
from engine.trace.job import Job


def trace_cache() -> TraceCache:
    """Returns the user's cache of traces: ``CANNSCOPE_CACHE``, else the platform's cache directory."""
    named = os.environ.get("CANNSCOPE_CACHE")
    directory = Path(named) if named else Path(platformdirs.user_cache_dir("cannscope", appauthor=False)) / "traces"
    return TraceCache(directory)


def open_capture(paths: Sequence[Path], progress: Progress) -> Job:
    """Returns the job at ``paths``. Raises TraceReadError."""
    return open_job(paths, built_in_readers(), cache=trace_cache(), progress=progress)
