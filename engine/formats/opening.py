"""From paths to a job: find captures, read each (or take it from the cache), put the ranks on one clock."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.core.errors import SourcePosition, TraceReadError, UnknownTraceFormatError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.core.registry import Registry
from engine.formats.cache import TraceCache
from engine.formats.reader import Capture, ReadContext, Reader
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.job import Job, align
from engine.trace.trace import Trace


def open_job(
    paths: Sequence[Path],
    readers: Registry[Reader],
    *,
    cache: TraceCache | None = None,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Job:
    """Returns the job made of everything readable at ``paths``.

    One unreadable capture among several is a diagnostic of the job; a job without any capture raises.

    Raises:
        TraceReadError: Nothing at the paths can be read; the message says what, where and what to do.
        OperationCancelled: ``cancel`` was set.
    """
    log = DiagnosticLog()
    found = [pair for path in paths for pair in _find(path, readers)]
    traces: list[Trace] = []
    failures: list[TraceReadError] = []
    for index, (reader, capture) in enumerate(found):
        cancel.check()
        stage = part_of(progress, index / len(found), (index + 1) / len(found))
        try:
            traces.append(_read(reader, capture, cache, ReadContext(stage, cancel)))
        except TraceReadError as error:
            failures.append(error)
            log.add("unreadable-capture", Severity.ERROR, str(error), position=error.position)
    if not traces:
        raise failures[0]
    progress(1.0, "done")
    return align(", ".join(str(path) for path in paths), traces, log.diagnostics())


def _find(path: Path, readers: Registry[Reader]) -> list[tuple[Reader, Capture]]:
    """Returns the captures at ``path`` with the first reader that claims each; raises where there is none."""
    if not path.exists():
        raise TraceReadError("no such file or directory", SourcePosition(path), "check the path")
    claimed: set[Path] = set()
    found: list[tuple[Reader, Capture]] = []
    for reader in readers:
        for capture in reader.find(path):
            files = {file.resolve() for file in capture.files.values()}
            if not files & claimed:
                claimed |= files
                found.append((reader, capture))
    if not found:
        raise _unrecognised(path, readers)
    return found


def _unrecognised(path: Path, readers: Registry[Reader]) -> UnknownTraceFormatError:
    known = ", ".join(reader.title for reader in readers)
    if path.is_file() and path.stat().st_size == 0:
        return UnknownTraceFormatError("the file is empty (0 bytes)", SourcePosition(path), "record the capture again")
    what = "no capture found in the directory" if path.is_dir() else "the content is no trace"
    return UnknownTraceFormatError(what, SourcePosition(path), f"open one of: {known}")


def _read(reader: Reader, capture: Capture, cache: TraceCache | None, context: ReadContext) -> Trace:
    try:
        entry = cache.entry(reader.id, capture) if cache is not None else None
        stored = cache.load(entry) if cache is not None and entry is not None else None
        if stored is not None:
            return replace(stored, argument_decoder=reader.argument_decoder(stored.source))
        trace = reader.read(capture, context)
    except OSError as error:
        raise TraceReadError(error.strerror or str(error), SourcePosition(capture.root), "check the file") from error
    if cache is not None and entry is not None:
        cache.store(entry, trace)
    return trace
