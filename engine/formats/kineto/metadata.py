"""What a Kineto trace says of itself: rank, groups, devices, software, and what its times count from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from engine.core.arrays import Int64Array
from engine.core.errors import SourcePosition
from engine.core.number_text import digits_to_int
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.trace import MAX_RANKS, ParallelGroup, TraceMetadata

_RANK_IN_NAME = re.compile(r"(?:rank|worker)[_\-.]?(\d{1,6})", re.IGNORECASE)
_VERSION_KEYS = re.compile(r"_version$")
_CONSUMED = {"deviceProperties", "distributedInfo", "host_name", "baseTimeNanoseconds", "displayTimeUnit"}
_EPOCH_NS = 10**18
_EPOCH_NS_DIGITS = 19
FLOAT_SLACK_NS = 250
"""Traces of spring 2024 wrote epoch µs through a double: its step is 0.25 µs, and nesting is broken by up to that."""


@dataclass(frozen=True, slots=True)
class KinetoClock:
    """How a file's times relate to Unix time.

    Attributes:
        base_ns: What to add to every time.
        is_unix: Whether the sum is Unix time.
        slack_ns: Rounding of the times.
    """

    base_ns: int
    is_unix: bool
    slack_ns: int


def clock_of(start_ns: Int64Array, top_level: Mapping[str, Any]) -> KinetoClock:
    """Returns the clock: integer epoch µs (to 2024), epoch µs with decimals (spring 2024), or relative to a base.

    Args:
        start_ns: int64, times as the file has them, absent ones left out.
        top_level: The members beside the events.
    """
    if len(start_ns) == 0:
        return KinetoClock(0, is_unix=False, slack_ns=0)
    if float(np.median(start_ns)) >= _EPOCH_NS:
        fractional = bool(np.any(start_ns % 1000))
        return KinetoClock(0, is_unix=True, slack_ns=FLOAT_SLACK_NS if fractional else 0)
    base_ns = top_level.get("baseTimeNanoseconds")
    if isinstance(base_ns, str) and base_ns.isdecimal():
        base_ns = digits_to_int(base_ns, 0, _EPOCH_NS_DIGITS)
    if isinstance(base_ns, int) and 0 < base_ns < 4 * _EPOCH_NS:
        return KinetoClock(base_ns, is_unix=True, slack_ns=0)
    return KinetoClock(0, is_unix=False, slack_ns=0)


def read_metadata(path: Path, top_level: Mapping[str, Any], device: int, diagnostics: DiagnosticLog) -> TraceMetadata:
    """Returns the metadata; ``device`` is the number of the busiest device row, −1 where there is none."""
    distributed = top_level.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    properties = top_level.get("deviceProperties")
    properties = [item for item in properties if isinstance(item, dict)] if isinstance(properties, list) else []
    used = next((item for item in properties if item.get("id") == device), None)
    if used is None and (device < 0 or len(properties) == 1) and properties:
        used = properties[0]  # a process that sees one device may number it otherwise than its rows do
    host = top_level.get("host_name")
    return TraceMetadata(
        rank=_rank(path, distributed, diagnostics),
        world_size=_rank_number(distributed.get("world_size"), MAX_RANKS + 1),
        device=str(used["name"]) if used and used.get("name") else None,
        device_count=len(properties) or None,
        device_memory_bytes=_integer(used.get("totalGlobalMem")) if used else None,
        host=host if isinstance(host, str) and host else None,
        software=_software(top_level, distributed),
        parallel_groups=_groups(distributed),
        extra=_extra(top_level, distributed, properties),
    )


def _rank(path: Path, distributed: Mapping[str, Any], diagnostics: DiagnosticLog) -> int | None:
    rank = _rank_number(distributed.get("rank"))
    if rank is not None:
        return rank
    match = _RANK_IN_NAME.search(path.name)
    if match is None:
        return None
    message = "the trace does not state its rank; it is taken from the file name"
    diagnostics.add("rank-from-file-name", Severity.NOTICE, message, position=SourcePosition(path))
    return int(match[1])


def _integer(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value) if len(value) < 19 else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _rank_number(value: object, limit: int = MAX_RANKS) -> int | None:
    """Returns a rank, below ``limit``; None for anything else."""
    rank = _integer(value)
    return rank if rank is not None and rank < limit else None


def _software(top_level: Mapping[str, Any], distributed: Mapping[str, Any]) -> dict[str, str]:
    everything = {**top_level, **distributed}
    return {
        key: str(value)
        for key, value in everything.items()
        if _VERSION_KEYS.search(key) and isinstance(value, str | int | float)
    }


def _groups(distributed: Mapping[str, Any]) -> tuple[ParallelGroup, ...]:
    config = distributed.get("pg_config")
    groups = []
    for item in config if isinstance(config, list) else []:
        if not isinstance(item, dict) or "pg_name" not in item:
            continue
        ranks = _ranks(item.get("ranks"))
        size = _rank_number(item.get("pg_size"), MAX_RANKS + 1)
        if not ranks and size is not None and size == _integer(distributed.get("world_size")):
            ranks = tuple(range(size))
        groups.append(ParallelGroup(str(item["pg_name"]), str(item.get("pg_desc") or ""), ranks))
    return tuple(groups)


def _ranks(value: object) -> tuple[int, ...]:
    """Returns the ranks of a list, or of the text of one (on-demand profiling writes ``"[0, 1]"``)."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return ()
    ranks = map(_rank_number, value if isinstance(value, list) else ())
    return tuple(rank for rank in ranks if rank is not None)


def _extra(
    top_level: Mapping[str, Any], distributed: Mapping[str, Any], properties: list[dict[str, Any]]
) -> dict[str, Any]:
    extra = {key: value for key, value in top_level.items() if key not in _CONSUMED and not _VERSION_KEYS.search(key)}
    if properties:
        extra["deviceProperties"] = properties
    if distributed:
        extra["distributedInfo"] = dict(distributed)
    return extra
