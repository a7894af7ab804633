"""One side of a what-if in the words of a run's document."""

from typing import Any

from engine.core.units import NS_PER_US
from engine.report.simulation import SCHEMA, run_document
from engine.whatif.results import Side


def side_document(side: Side, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns a side with the keys of ``simulate``; what a replayed capture does not say is None."""
    if side.run is not None:
        return run_document(side.run, provenance)
    tokens = side.tokens_per_s
    return {
        "schema": SCHEMA,
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
