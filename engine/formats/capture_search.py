"""Files of single-file formats at a path the user gave."""

from collections.abc import Callable
from pathlib import Path

from engine.formats.reader import Capture

MAX_FILES = 4096
_SUFFIXES = (".json", ".json.gz")


def single_file_captures(path: Path, is_trace: Callable[[Path], bool]) -> tuple[Capture, ...]:
    """Returns one capture per file at ``path`` that ``is_trace`` accepts.

    A file the user names is judged by content whatever it is called; of a directory, its own ``.json`` and
    ``.json.gz`` files are looked at, in order of their names, at most MAX_FILES.
    """
    try:
        if path.is_file():
            candidates = [path]
        elif path.is_dir():
            named = sorted(entry for entry in path.iterdir() if entry.name.lower().endswith(_SUFFIXES))
            candidates = [entry for entry in named[:MAX_FILES] if entry.is_file()]
        else:
            return ()
        return tuple(Capture(entry, {"trace": entry}) for entry in candidates if is_trace(entry))
    except OSError:
        return ()
