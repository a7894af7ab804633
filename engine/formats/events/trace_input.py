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
from engine.formats.reader import MAX_EXPANDED_BYTES, MAX_EXPANSION_RATIO, PROBE_BYTES, ReadContext
from engine.trace.diagnostics import DiagnosticLog, Severity

GZIP_MAGIC = b"\x1f\x8b"
FREE_EXPANSION_BYTES = 64 << 20
"""Up to here any expansion ratio is believed: small repetitive files compress extremely well."""
_READ_BYTES = 1 << 16
_BLOCK_BYTES = 4 << 20
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
    """Returns whether the file is gzip by its first bytes, not by its name. Raises OSError."""
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
    """Writes the decompressed content of ``file`` to ``target``; a damaged end keeps what came before it."""
    packed_bytes = max(file.seek(0, 2), 1)
    file.seek(0)
    written = 0
    problem = ""
    try:
        for block in _blocks(file):
            context.cancel.check()
            written += len(block)
            consumed = file.tell()
            _refuse_bomb(path, written, consumed)
            target.write(block)
            context.progress(consumed / packed_bytes, "expanding")
    except EOFError:
        problem = "the gzip file ends before its compressed data does"
    except zlib.error as error:
        problem = f"the gzip file has damaged compressed data ({error})"
    if problem and written == 0:
        raise TraceReadError(problem, SourcePosition(path), "record or copy the file again")
    if problem:
        message = f"{problem}; everything before is read"
        diagnostics.add("truncated-gzip", Severity.DATA_LOSS, message, position=SourcePosition(path, byte=written))


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yields what the gzip members of ``file`` hold, in blocks of bounded size.

    Raises EOFError where the last member is not finished, zlib.error where the data is damaged.
    """
    decoder = zlib.decompressobj(_GZIP_WINDOW)
    data = file.read(_READ_BYTES)
    while data:
        yield decoder.decompress(data, _BLOCK_BYTES)
        data = decoder.unconsumed_tail
        if decoder.eof:
            data = decoder.unused_data.lstrip(b"\0") or file.read(_READ_BYTES)
            if not data.startswith(GZIP_MAGIC):
                return  # padding or a signature behind the last member
            decoder = zlib.decompressobj(_GZIP_WINDOW)
        data = data or file.read(_READ_BYTES)
    yield decoder.flush()
    raise EOFError


def _refuse_bomb(path: Path, written: int, consumed: int) -> None:
    too_dense = written > FREE_EXPANSION_BYTES and written > consumed * MAX_EXPANSION_RATIO
    if too_dense or written > MAX_EXPANDED_BYTES:
        what = f"the gzip file expands to more than {MAX_EXPANSION_RATIO} times its size and was not read further"
        raise TraceReadError(what, SourcePosition(path), "check where the file comes from")
