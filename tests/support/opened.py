"""Real captures, opened once per test run."""

import functools
from pathlib import Path

from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.trace import Job, Trace


@functools.cache
def opened_job(path: Path) -> Job:
    return open_job([path], built_in_readers())


def opened_trace(path: Path) -> Trace:
    """Returns the one trace at ``path``."""
    (entry,) = opened_job(path).ranks
    return entry.trace
