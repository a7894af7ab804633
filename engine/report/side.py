"""One side of a what-if in the words of a run's document."""

from typing import Any

import numpy as np

from engine.analyses.summary import summarize
from engine.core.number_format import format_bytes, format_count, format_duration_ns, format_ratio
from engine.core.progress import NEVER_CANCELLED, no_progress
from engine.core.units import NS_PER_US
from engine.report.analysis_document import analysis_document
from engine.report.serving import served_document
from engine.report.serving_numbers import served_rows
from engine.report.simulation import run_document
from engine.whatif.results import Side


def side_document(side: Side, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns a side as ``simulate`` has it; of a replayed capture as ``analyze`` has it, with those keys as well."""
    if side.service is not None:
        return served_document(side.service, provenance)
    if side.run is not None:
        return run_document(side.run, provenance)
    job = side.record(no_progress, NEVER_CANCELLED)
    tokens = side.tokens_per_s
    return {
        **analysis_document(job, summarize(job)),
        "status": side.status.value,
        "deadlock": None,
        "scenario": None,
        "step_time_us": (side.step_ns / NS_PER_US).tolist(),
        "tokens_per_s": tokens,
        "tokens_per_s_per_device": None if tokens is None else tokens / side.device_count,
        "ms_per_token": None,
        "memory": _memory_document(side),
        "communication_share_ratio": side.communication_share_ratio,
        "bubble_ratio": side.bubble_ratio,
        "provenance": provenance,
    }


def _memory_document(side: Side) -> dict[str, Any] | None:
    """Returns the memory of the fullest rank and of every rank, None where none is known."""
    if not side.peak_reserved_bytes:
        return None
    per_rank = [{"rank": rank, **_rank_document(side, rank)} for rank in sorted(side.peak_reserved_bytes)]
    fullest = max(side.peak_reserved_bytes, key=lambda rank: side.peak_reserved_bytes[rank])
    return {**_rank_document(side, fullest), "component": "PTA", "per_rank": per_rank}


def _rank_document(side: Side, rank: int) -> dict[str, Any]:
    reserved = side.peak_reserved_bytes[rank]
    allocated = side.peak_allocated_bytes.get(rank)
    return {
        "peak_allocated_bytes": allocated,
        "peak_reserved_bytes": reserved,
        "fragmentation_ratio": 1 - allocated / reserved if reserved and allocated is not None else None,
        "stranded_bytes": side.stranded_bytes.get(rank),
    }


_EIGHTHS = 8
"""Parts a long run is shown in: its first and last one say whether it slows down."""


def side_rows(before: Side, after: Side) -> list[tuple[str, str, str]]:
    """Returns what changed between two sides beside the mean step, for people: the run's ends, memory, shares."""
    rows: list[tuple[str, str, str]] = []
    if before.serving is not None and after.serving is not None:
        rows += served_rows(before.serving, after.serving)
    elif min(len(before.step_ns), len(after.step_ns)) >= 2 * _EIGHTHS:
        rows.append(("step, first eighth", _eighth(before, 0), _eighth(after, 0)))
        rows.append(("step, last eighth", _eighth(before, -1), _eighth(after, -1)))
    for name, one, other in (
        ("allocated, fullest rank", before.peak_allocated_bytes, after.peak_allocated_bytes),
        ("reserved, fullest rank", before.peak_reserved_bytes, after.peak_reserved_bytes),
        ("stranded, worst rank", before.stranded_bytes, after.stranded_bytes),
    ):
        most = [max(values.values(), default=-1) for values in (one, other)]
        if min(most) >= 0:
            rows.append((name, format_bytes(most[0]), format_bytes(most[1])))
    for name, attribute in (("allocator retries", "retries"), ("driver calls", "driver_calls")):
        counts = [_events(side, attribute) for side in (before, after)]
        if any(counts):
            rows.append((name, format_count(counts[0]), format_count(counts[1])))
    for name, share, changed in (
        ("exposed communication", before.communication_share_ratio, after.communication_share_ratio),
        ("waiting for a stage", before.bubble_ratio, after.bubble_ratio),
    ):
        if share or changed:
            rows.append((name, format_ratio(share), format_ratio(changed)))
    return rows


def _eighth(side: Side, number: int) -> str:
    return format_duration_ns(float(np.array_split(side.step_ns, _EIGHTHS)[number].mean()))


def _events(side: Side, attribute: str) -> int:
    """Returns how often something happened to the allocator of a simulated run, the class of ranks with most."""
    if side.run is None:
        return 0
    return max(int(getattr(memory, attribute).sum()) for memory in side.run.memory)
