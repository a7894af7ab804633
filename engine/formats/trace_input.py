"""The bytes of a trace file, memory-mapped; a gzip file is expanded into an unnamed temporary file first."""

import contextlib
import mmap
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from engine.core.arrays import UInt8Array
from engine.core.errors import SourcePosition, TraceReadError
from engine.core.progress import part_of
from engine.formats.reader import MAX_EXPANDED_BYTES, MAX_EXPANSION_RATIO, PROBE_BYTES, ReadContext
from engine.trace.diagnostics import DiagnosticLog, Severity

GZIP_MAGIC = b"\x1f\x8b"
FREE_EXPANSION_BYTES = 64 << 20
"""Up to here any expansion ratio is believed: small repetitive files compress extremely well."""
_READ_BYTES = 1 << 20
_GZIP_WINDOW = 31  # zlib's number for "gzip header, largest window"


@dataclass(frozen=True, slots=True)
class TraceBytes:
    """The whole (decompressed) file.

    Attributes:
        text: uint8, shape (bytes,), read-only, backed by the file.
        mapping: The mapping behind ``text``; None for an empty file.
    """

    text: UInt8Array
    mapping: mmap.mmap | None

    def give_back(self, start: int, end: int) -> None:
        """Lets the system drop the pages of ``text[start:end]`` from this process; they can still be read."""
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            page = mmap.PAGESIZE
            first = -(-start // page) * page
            length = end // page * page - first
            if length > 0:
                self.mapping.madvise(mmap.MADV_DONTNEED, first, length)


def is_gzip(path: Path) -> bool:
    """Returns whether the file is gzip by its first bytes; names lie. Raises OSError."""
    with path.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def probe(path: Path, size_bytes: int = PROBE_BYTES) -> bytes:
    """Returns the first ``size_bytes`` of the (decompressed) file, as many as can be read; b"" where none can."""
    try:
        with path.open("rb") as file:
            head = file.read(size_bytes)
    except OSError:
        return b""
    if not head.startswith(GZIP_MAGIC):
        return head
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(head, size_bytes)
    except zlib.error:
        return b""


@contextlib.contextmanager
def open_trace_bytes(path: Path, diagnostics: DiagnosticLog, context: ReadContext) -> Iterator[TraceBytes]:
    """Yields the file's bytes.

    Raises:
        TraceReadError: The gzip data is a bomb, or not one byte of it can be expanded.
        OSError: The file cannot be read.
    """
    with contextlib.ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("rb"))
        if file.read(2) == GZIP_MAGIC:
            expanded = stack.enter_context(tempfile.TemporaryFile(prefix="cannscope-"))
            _expand(path, file, expanded, diagnostics, context)
            file = expanded
        mapping = _mapped(file)
        text = np.frombuffer(mapping if mapping is not None else b"", dtype=np.uint8)
        # The mapping is closed when its last view goes: closing it here would fail while columns still look at it.
        yield TraceBytes(text, mapping)


def _mapped(file: IO[bytes]) -> mmap.mmap | None:
    file.flush()
    if file.seek(0, 2) == 0:
        return None
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _expand(path: Path, file: IO[bytes], target: IO[bytes], diagnostics: DiagnosticLog, context: ReadContext) -> None:
    """Writes the decompressed members of ``file`` to ``target``; a damaged end keeps what came before it."""
    packed_bytes = max(file.seek(0, 2), 1)
    file.seek(0)
    report = part_of(context.progress, 0.0, 1.0)
    decoder = zlib.decompressobj(_GZIP_WINDOW)
    written = consumed = 0
    problem = ""
    data = b""
    while not problem:
        context.cancel.check()
        if not data:
            data = file.read(_READ_BYTES)
            consumed += len(data)
            if not data:
                problem = "" if decoder.eof else "ends before its compressed data does"
                break
        try:
            block = decoder.decompress(data, _READ_BYTES * 8)
        except zlib.error as error:
            problem = f"has damaged compressed data ({error})"
            break
        written += len(block)
        _refuse_bomb(path, written, consumed)
        target.write(block)
        data = decoder.unconsumed_tail
        if decoder.eof:
            data = decoder.unused_data.lstrip(b"\0")
            decoder = zlib.decompressobj(_GZIP_WINDOW) if data[:2] == GZIP_MAGIC else decoder
            data = data if data[:2] == GZIP_MAGIC else b""
            if not data:
                break
        report(consumed / packed_bytes, "expanding")
    if problem and written == 0:
        raise TraceReadError(f"the gzip file {problem}", SourcePosition(path), "record or copy the file again")
    if problem:
        message = f"the gzip file {problem}; everything before is read"
        diagnostics.add("truncated-gzip", Severity.DATA_LOSS, message, position=SourcePosition(path, byte=written))


def _refuse_bomb(path: Path, written: int, consumed: int) -> None:
    too_dense = written > FREE_EXPANSION_BYTES and written > consumed * MAX_EXPANSION_RATIO
    if too_dense or written > MAX_EXPANDED_BYTES:
        what = f"the gzip file expands to more than {MAX_EXPANSION_RATIO} times its size and was not read further"
        raise TraceReadError(what, SourcePosition(path), "check where the file comes from")
