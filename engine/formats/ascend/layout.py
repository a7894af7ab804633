"""Where the files of an Ascend text capture are, and what each one is.

torch_npu writes fixed names into ``ASCEND_PROFILER_OUTPUT``; msprof writes ``name[_slice_N]_timestamp`` into
``mindstudio_profiler_output``. People move and rename both, so single files are recognised by content.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.core.number_text import digits_to_int
from engine.formats.reader import PROBE_BYTES, Capture
from engine.trace.trace import Source

OUTPUT_DIRECTORIES = ("ASCEND_PROFILER_OUTPUT", "mindstudio_profiler_output")
UNREAD = "unread "
"""Start of the role of files that belong to a capture and are not read; the reader counts them."""
DATABASE = "database"
PROFILER_INFO = "profiler_info"
PROFILER_METADATA = "profiler_metadata"
TRACE_VIEW = "trace_view"
KERNEL_DETAILS = "kernel_details"
MEMORY_RECORD = "memory_record"
OPERATOR_MEMORY = "operator_memory"
COMMUNICATION = "communication"
COMMUNICATION_MATRIX = "communication_matrix"

MAX_DEPTH = 5
MAX_DIRECTORIES = 4096
"""How far captures are looked for below what was opened; a home directory must not be walked to its end."""

_SYNONYMS = {"op_summary": KERNEL_DETAILS, "msprof": TRACE_VIEW, "trace": TRACE_VIEW}
_NAME = re.compile(r"^(?P<stem>[A-Za-z_0-9]*?[A-Za-z])(?P<slice>_slice_\d+|_slice)?(?P<numbers>(_\d+)*)\.(csv|json)$")
_EXPORT = re.compile(r"(_slice)?(_\d+)+$")
_DATABASE = re.compile(r"^(ascend_(pytorch|mindspore)_profiler(_\d+)?|msprof_\d+|analysis|communication_analyzer)\.db$")
_SUMMARY_DATABASES = ("analysis.db", "communication_analyzer.db")
_FIXED_NAMES = frozenset(
    {
        *("trace_view", "kernel_details", "operator_details", "operator_memory", "memory_record", "npu_module_mem"),
        *("step_trace_time", "op_statistic", "api_statistic", "task_time", "l2_cache", "data_preprocess", "soc_pmu"),
        *("nic", "roce", "pcie", "hccs", "communication", "communication_matrix", "op_summary", "msprof"),
        *("communication_statistic", "npu_mem", "static_op_mem", "fusion_op", "llc_read_write", "ai_core_utilization"),
    }
)
"""Names only the profiler gives: they are believed outside its own directories too."""
_PROFILER_INFO = re.compile(r"^profiler_info(_\d+)?\.json$")
_EPOCH_TEXT = re.compile(rb'"ts"\s*:\s*"\d+(\.\d+)?"')
_PROCESS_NAMES = (b"Ascend Hardware", b"Overlap Analysis", b'"CANN"')
_HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (OPERATOR_MEMORY, ("name", "size(kb)", "allocation time(us)")),
    (MEMORY_RECORD, ("component", "timestamp(us)", "total allocated(mb)|total allocated(kb)")),
    ("npu_module_mem", ("component", "timestamp(us)", "total reserved(mb)|total reserved(kb)", "device")),
    (KERNEL_DETAILS, ("start time(us)|task start time(us)", "duration(us)|task duration(us)", "name|op name")),
    ("op_statistic", ("op type", "core type", "count", "total time(us)")),
    ("api_statistic", ("level", "api name", "time(us)")),
    ("operator_details", ("name", "input shapes", "host self duration(us)")),
    ("step_trace_time", ("step", "computing", "communication(not overlapped)", "free")),
    ("l2_cache", ("stream id", "task id", "hit rate", "victim rate")),
    ("task_time", ("kernel_name", "task_time(us)", "task_start(us)")),
)


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file with what its name says.

    Attributes:
        path: The file.
        role: What it is.
        slice_number: Position among the slices of one export, 0 where it is whole.
        exported_at: The timestamp in its name, "" for torch_npu's fixed names, which win over any timestamp.
    """

    path: Path
    role: str
    slice_number: int
    exported_at: str


def find_captures(path: Path) -> tuple[Capture, ...]:
    """Returns the captures at ``path``: a profiler directory, its output directory, a tree of them, or one file."""
    try:
        if path.is_file():
            role = role_of_content(path)
            return (Capture(path, {role: path} | _information_beside(path)),) if role else ()
        return tuple(_in_tree(path)) if path.is_dir() else ()
    except OSError:
        return ()


def files_of(capture: Capture, role: str) -> list[Path]:
    """Returns the files of a role in order: one, several slices, or none."""
    return [path for key, path in capture.files.items() if key == role or key.startswith(f"{role}#")]


def role_of_content(path: Path) -> str | None:
    """Returns what a single file is, judged by its first bytes; None for other formats and unreadable files."""
    try:
        with path.open("rb") as file:
            head = file.read(PROBE_BYTES)
    except OSError:
        return None
    if head.startswith(b"SQLite format 3\0"):
        return DATABASE if _DATABASE.match(path.name) else None
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"[", b"{"):
        return _role_of_json(path, text)
    line = text.partition(b"\n")[0].decode("utf-8", "replace")
    titles = {title.strip().strip('"').casefold() for title in line.split(",")}
    for role, needed in _HEADERS:
        if all(titles & set(choice.split("|")) for choice in needed):
            return role
    return None


def table_stem(stem: str) -> str:
    """Returns a file's stem without slice number and export time: ``op_statistic_20250109`` → ``op_statistic``."""
    return _EXPORT.sub("", stem)


NO_ID = 65535
"""What the profiler writes for "no stream" and "no device" in 16 bits; in 32 it is 4294967295."""


def rank_of_name(path: Path) -> int | None:
    """Returns the rank in ``profiler_info_{rank}.json``, None where the name holds none."""
    number = path.stem.removeprefix("profiler_info").removeprefix("_")
    rank = digits_to_int(number, -1)
    return rank if rank >= 0 else None


def load_json(path: Path) -> Any:
    """Returns the parsed file. Raises OSError or ValueError."""
    return json.loads(path.read_text(encoding="utf-8-sig"))


def _role_of_json(path: Path, text: bytes) -> str | None:
    if b'"ph"' in text and b"deviceProperties" not in text and b"schemaVersion" not in text:
        ours = _EPOCH_TEXT.search(text) or any(name in text for name in _PROCESS_NAMES)
        if ours or (path.name == "trace_view.json" and text.startswith(b"[")):
            return TRACE_VIEW
    if re.match(rb'\{\s*"step\d*"\s*:\s*\{\s*"(p2p|collective)"', text):
        return COMMUNICATION_MATRIX if b'"Transport Type"' in text else COMMUNICATION
    return None


def _in_tree(top: Path) -> Iterator[Capture]:
    """Yields captures below ``top``, nearest first, never looking inside one that was found."""
    level = [top]
    visited = 0
    for _ in range(MAX_DEPTH + 1):
        below: list[Path] = []
        for directory in sorted(level):
            visited += 1
            capture = _in_directory(directory)
            if capture is not None:
                yield capture
            elif visited < MAX_DIRECTORIES:
                below += _subdirectories(directory)
        level = below


def _subdirectories(directory: Path) -> list[Path]:
    try:
        return [item for item in directory.iterdir() if item.is_dir() and not item.name.startswith(".")]
    except OSError:
        return []


def _in_directory(directory: Path) -> Capture | None:
    try:
        for name in OUTPUT_DIRECTORIES:
            if (directory / name).is_dir():
                return _capture(directory, directory / name, directory)
        if directory.name in OUTPUT_DIRECTORIES:
            return _capture(directory, directory, directory.parent)
        if any(role_of_content(item) for item in directory.iterdir() if _NAME.match(item.name) and item.is_file()):
            return _capture(directory, directory, directory)
        if any(_DATABASE.match(item.name) for item in directory.iterdir()):
            return _capture(directory, directory, directory)
    except OSError:
        return None
    return None


def _capture(root: Path, output: Path, information: Path) -> Capture | None:
    """Returns the capture made of the tables in ``output`` and the descriptions in ``information``."""
    named = [item for item in map(_identify, sorted(output.iterdir())) if item is not None]
    files: dict[str, Path] = {}
    for role in dict.fromkeys(item.role for item in named):
        _add_role(files, role, [item for item in named if item.role == role])
    if not any(not role.startswith(UNREAD) for role in files):
        databases = [path for role, path in files.items() if path.suffix == ".db"]
        if not databases:
            return None
        # The profiler's own database names the capture better than the summary beside it.
        files[DATABASE] = min(databases, key=lambda path: path.name in _SUMMARY_DATABASES)
    return Capture(root, files | _information_in(information))


def _information_beside(path: Path) -> dict[str, Path]:
    """Returns the descriptions of the capture a single file was taken from, where it still stands in its directory."""
    return _information_in(path.parent.parent) if path.parent.name in OUTPUT_DIRECTORIES else {}


def _information_in(directory: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for item in sorted(directory.iterdir()):
        if _PROFILER_INFO.match(item.name):
            files.setdefault(PROFILER_INFO, item)
        elif item.name == "profiler_metadata.json":
            files[PROFILER_METADATA] = item
    return files


def _add_role(files: dict[str, Path], role: str, candidates: Iterable[NamedFile]) -> None:
    """Adds the newest export of a role, slices in order; the others are marked as unread."""
    ordered = sorted(candidates, key=lambda item: (item.exported_at != "", item.slice_number, item.path.name))
    fixed = [item for item in ordered if item.exported_at == ""]
    newest = max(ordered, key=lambda item: (len(item.exported_at), item.exported_at)).exported_at
    chosen = fixed[:1] if fixed else [item for item in ordered if item.exported_at == newest]
    if role.startswith(UNREAD):
        chosen = []
    for index, item in enumerate(chosen):
        files[f"{role}#{index}" if index else role] = item.path
    for item in ordered:
        if item not in chosen:
            files[f"{UNREAD}{item.path.name}"] = item.path


def _identify(path: Path) -> NamedFile | None:
    """Returns what a file is: by its name in the profiler's own directories, by name and content elsewhere."""
    named = _named(path)
    if named is None or path.parent.name in OUTPUT_DIRECTORIES or path.suffix == ".db":
        return named
    if table_stem(path.stem).casefold() in _FIXED_NAMES and not named.role.startswith(UNREAD):
        return named
    role = role_of_content(path)
    return replace(named, role=role) if role is not None else None


def _named(path: Path) -> NamedFile | None:
    """Returns what a file in an output directory is by its name; None for files that cannot belong to a capture."""
    if not path.is_file():
        return None
    if _DATABASE.match(path.name):
        return NamedFile(path, UNREAD + DATABASE, 0, "")
    match = _NAME.match(path.name)
    if match is None or _PROFILER_INFO.match(path.name) or path.name == "profiler_metadata.json":
        return None
    stem = match["stem"].casefold()
    numbers = match["numbers"].strip("_")
    in_slices = match["slice"] is not None
    slice_number = int(match["slice"].rpartition("_")[2]) if in_slices and match["slice"] != "_slice" else 0
    if match["slice"] == "_slice" and numbers:
        first, _, numbers = numbers.partition("_")
        slice_number = int(first)
    role = _SYNONYMS.get(stem, stem)
    known_json = (TRACE_VIEW, COMMUNICATION, COMMUNICATION_MATRIX)
    if path.suffix == ".json" and role not in known_json:
        return NamedFile(path, UNREAD + stem, 0, "")
    return NamedFile(path, role, slice_number, numbers)


def describe(files: Mapping[str, Path], root: Path) -> tuple[str, ...]:
    """Returns the files as text, relative to ``root`` where they lie below it."""
    base = root if root.is_dir() else root.parent
    return tuple(str(path.relative_to(base)) if path.is_relative_to(base) else str(path) for path in files.values())


def roles_of(source: Source) -> list[tuple[str, Path]]:
    """Returns (role, path) of the files of a trace that was read before, in the order they were read."""
    root = Path(source.path)
    if root.is_file():
        role = role_of_content(root)
        return [(role, root)] if role else []
    identified = [_identify(root / name) for name in source.files]
    return [(item.role, item.path) for item in identified if item is not None and not item.role.startswith(UNREAD)]
