"""Traces already read, on disk, keyed by the files they came from."""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from engine.formats.reader import Capture
from engine.trace.storage import STORAGE_VERSION, UNFINISHED_PREFIX, load_trace, save_trace
from engine.trace.trace import Trace

READERS_VERSION = 3
"""Raised whenever a reader's result for the same file changes."""

STALE_AFTER_S = 3600.0
"""An unfinished entry untouched for so long was left behind by a process that was killed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TraceCache:
    """A directory of stored traces, the least recently used removed first.

    Attributes:
        directory: Where they are; created when needed.
        limit_bytes: What all of them may take together.
    """

    directory: Path
    limit_bytes: int = 20 << 30

    def entry(self, format_id: str, capture: Capture) -> Path:
        """Returns where the capture is stored: path, size and mtime of every file and the versions are the key."""
        state = [
            [role, str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns]
            for role, path in sorted(capture.files.items())
        ]
        key = json.dumps([format_id, STORAGE_VERSION, READERS_VERSION, state])
        return self.directory / hashlib.sha256(key.encode()).hexdigest()[:32]

    def load(self, entry: Path) -> Trace | None:
        """Returns the stored trace, memory-mapped; None where there is none or it is damaged."""
        try:
            trace = load_trace(entry)
            os.utime(entry)
        except FileNotFoundError:
            return None
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            logger.info("stored trace %s is not usable and is read again: %s", entry, error)
            return None
        return trace

    def store(self, entry: Path, trace: Trace) -> None:
        """Stores a trace; a full or read-only disk only costs the next opening its speed."""
        try:
            save_trace(trace, entry)
            self._remove_stale()
            self._shrink(keep=entry)
        except OSError as error:
            logger.info("the trace was not stored for the next opening: %s", error)

    def _remove_stale(self) -> None:
        """Removes entries that were never finished; others may still be being written by another process."""
        for path in self.directory.glob(f"{UNFINISHED_PREFIX}*"):
            with contextlib.suppress(FileNotFoundError):  # finished meanwhile
                if time.time() - path.stat().st_mtime > STALE_AFTER_S:
                    shutil.rmtree(path, ignore_errors=True)

    def _shrink(self, keep: Path) -> None:
        finished = (
            path for path in self.directory.iterdir() if path.is_dir() and not path.name.startswith(UNFINISHED_PREFIX)
        )
        entries = sorted(finished, key=lambda path: path.stat().st_mtime)
        sizes = {path: sum(item.stat().st_size for item in path.iterdir()) for path in entries}
        total_bytes = sum(sizes.values())
        for path in entries:
            if total_bytes <= self.limit_bytes:
                return
            if path != keep:
                shutil.rmtree(path, ignore_errors=True)
                total_bytes -= sizes[path]
