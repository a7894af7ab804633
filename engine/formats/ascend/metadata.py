"""What an Ascend text capture says of itself: profiler_info_{rank}.json and profiler_metadata.json."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core.errors import SourcePosition
from engine.formats.ascend.layout import PROFILER_INFO, PROFILER_METADATA, load_json, rank_of_name
from engine.formats.reader import Capture
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.trace import MAX_RANKS, ParallelGroup, TraceMetadata

_WORKER_DIRECTORY = re.compile(r"^(?P<host>.+)_\d+_\d{17,20}_ascend_(pt|ms)$")
_RANK_DIRECTORY = re.compile(r"rank_?(\d{1,6})", re.IGNORECASE)
DEVICE_MEMORY = "device_memory_bytes"
"""Key of profiler_metadata.json for the device's capacity. torch_npu writes none; our own captures do, and a user can
with ``add_metadata``."""
_LARGEST_BYTES = 1 << 50
_VERSIONS = ("torch_npu_version", "cann_version", "ms_version", "torch_version")


def read_metadata(capture: Capture, log: DiagnosticLog) -> TraceMetadata:
    """Returns the metadata of a capture; what the files do not say stays None or empty."""
    info = _read_object(capture.files.get(PROFILER_INFO), log)
    described = _read_object(capture.files.get(PROFILER_METADATA), log)
    distributed = _object(described, "distributed_args")
    config = _object(info, "config")
    level = _object(config, "experimental_config").get("_profiler_level")
    name = _WORKER_DIRECTORY.match(capture.root.name)
    used = {"distributed_args", "ENV_VARIABLES", "parallel_group_info", DEVICE_MEMORY}
    extra = {key: value for key, value in described.items() if key not in used}
    extra |= {key: value for key, value in info.items() if key not in (*_VERSIONS, "rank_id")}
    return TraceMetadata(
        rank=_rank(capture, info, distributed, log),
        world_size=_rank_number(distributed.get("world_size"), MAX_RANKS + 1),
        device_memory_bytes=_size(described.get(DEVICE_MEMORY)),
        host=name["host"] if name else None,
        profiler_level=str(level) if level is not None else None,
        software={key: str(info[key]) for key in _VERSIONS if info.get(key)},
        environment={key: str(value) for key, value in _object(described, "ENV_VARIABLES").items()},
        parallel_sizes=_parallel_sizes(distributed),
        parallel_groups=_groups(_object(described, "parallel_group_info")),
        extra=extra,
    )


def _read_object(path: Path | None, log: DiagnosticLog) -> Mapping[str, Any]:
    if path is None:
        return {}
    try:
        value = load_json(path)
    except (OSError, ValueError, RecursionError) as error:
        log.add("unreadable-file", Severity.ERROR, f"a file could not be read: {error}", position=SourcePosition(path))
        return {}
    return value if isinstance(value, dict) else {}


def _object(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _integer(value: Any) -> int | None:
    """Returns a number given as JSON number or text; None for anything else."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _size(value: Any) -> int | None:
    """Returns a positive size in bytes that a device may have; None for anything else."""
    size = _integer(value)
    return size if size is not None and 0 < size < _LARGEST_BYTES else None


def _rank_number(value: Any, limit: int = MAX_RANKS) -> int | None:
    """Returns a rank, below ``limit``; None for anything else."""
    rank = _integer(value)
    return rank if rank is not None and 0 <= rank < limit else None


def _rank(capture: Capture, info: Mapping[str, Any], distributed: Mapping[str, Any], log: DiagnosticLog) -> int | None:
    path = capture.files.get(PROFILER_INFO)
    stated = (rank_of_name(path) if path else None, info.get("rank_id"), distributed.get("rank"))
    for value in stated:
        rank = _rank_number(value)
        if rank is not None:
            return rank
    unstated = all(_integer(value) is None for value in stated)
    match = _RANK_DIRECTORY.search(capture.root.name) if unstated else None
    if match is None:
        return None
    log.add("rank-from-name", Severity.NOTICE, "the rank is taken from the directory's name: no file states it")
    return int(match[1])


def _parallel_sizes(distributed: Mapping[str, Any]) -> dict[str, int]:
    sizes = {}
    for key, value in distributed.items():
        size = _integer(value)
        if size is not None and key not in ("rank", "world_size"):
            sizes[key] = size
    return sizes


def _groups(described: Mapping[str, Any]) -> tuple[ParallelGroup, ...]:
    groups = []
    for key, value in described.items():
        if isinstance(value, dict):
            listed = value.get("global_ranks")
            members = [_rank_number(rank) for rank in (listed if isinstance(listed, list) else ())]
            groups.append(
                ParallelGroup(
                    str(key), str(value.get("group_name", "")), tuple(rank for rank in members if rank is not None)
                )
            )
    return tuple(groups)
