"""What a memory replay says: the ``replay`` document and its text."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_bytes, format_count
from engine.replay.snapshot_policy import policy_facts
from engine.replay.snapshot_replay import SnapshotReplay
from engine.replay.snapshot_statistics import SnapshotStatistics
from engine.report.diagnostics import diagnostic_lines, diagnostic_rows


def snapshot_document(path: Path, replay: SnapshotReplay) -> dict[str, Any]:
    """Returns the document ``cannscope.replay/1`` of CLI.md for an allocator snapshot."""
    return {
        "schema": "cannscope.replay/1",
        "path": str(path),
        "allocator": replay.policy.id,
        "recorded_allocator": replay.recorded_policy.id,
        "policy": policy_facts(replay.policy.settings),
        "recorded": {
            "peak_allocated_bytes": replay.recorded_peak_allocated_bytes,
            "peak_reserved_bytes": replay.recorded_peak_reserved_bytes,
        },
        "replayed": {
            "peak_allocated_bytes": replay.replayed_peak_allocated_bytes,
            "peak_reserved_bytes": replay.replayed_peak_reserved_bytes,
        },
        "reserved_error_ratio": _error(replay.replayed_peak_reserved_bytes, replay.recorded_peak_reserved_bytes),
        "addresses_total": replay.addresses_total,
        "addresses_matched": replay.addresses_matched,
        "driver_events_total": replay.driver_events_total,
        "driver_events_matched": replay.driver_events_matched,
        "driver_events_replayed": replay.driver_events_replayed,
        "releases_total": replay.releases_total,
        "releases_matched": replay.releases_matched,
        "first_divergence": _divergence_document(replay),
        "stranded_bytes": replay.worst_stranded_bytes,
        "snapshot": _statistics_document(path, replay.statistics),
        "time": None,
        "diagnostics": diagnostic_rows(replay.diagnostics),
    }


def _error(replayed: int, recorded: int) -> float | None:
    return replayed / recorded - 1 if recorded else None


def _divergence_document(replay: SnapshotReplay) -> dict[str, int] | None:
    found = replay.divergence
    if found is None:
        return None
    return {
        "event": found.event,
        "size_bytes": found.size_bytes,
        "recorded_address": found.recorded_address,
        "replayed_address": found.replayed_address,
    }


def _statistics_document(path: Path, statistics: SnapshotStatistics) -> dict[str, Any]:
    """Returns the figures under the names of the usual snapshot tables: bytes unless the name says otherwise."""
    counts = statistics.action_counts
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "segments": statistics.segments,
        "blocks": statistics.blocks,
        "layout_errors": statistics.layout_errors,
        "reserved_end": statistics.reserved_end_bytes,
        "active_end": statistics.active_end_bytes,
        "requested_end": statistics.requested_end_bytes,
        "inactive_end": statistics.inactive_end_bytes,
        "largest_inactive": statistics.largest_inactive_bytes,
        "scattered_free_pct": round(100 * statistics.scattered_free_ratio, 3),
        "internal_frag_bytes": statistics.internal_fragmentation_bytes,
        "device": statistics.device,
        "events": statistics.events,
        "n_alloc": counts.get("alloc"),
        "n_segment_alloc": counts.get("segment_alloc"),
        "n_segment_free": counts.get("segment_free"),
        "n_segment_map": counts.get("segment_map"),
        "n_segment_unmap": counts.get("segment_unmap"),
        "n_free_requested": counts.get("free_requested"),
        "n_free_completed": counts.get("free_completed"),
        "n_snapshot": counts.get("snapshot"),
        "n_oom": counts.get("oom"),
        "requested_start": statistics.requested_start_bytes,
        "reserved_start": statistics.reserved_start_bytes,
        "peak_requested": statistics.peak_requested_bytes,
        "peak_event_index": statistics.peak_event_index,
        "peak_reserved": statistics.peak_reserved_bytes,
        "replay_errors": statistics.replay_errors,
        "time_span_us": statistics.time_span_us,
        "monotonic": statistics.monotonic,
        "streams": statistics.streams,
    }


def snapshot_text(path: Path, replay: SnapshotReplay) -> RenderableType:
    """Returns the same for people: what matched, where it parts first, what was reserved."""
    table = Table("", "recorded", "replayed", title=f"{path.name}: replayed as {replay.policy.title}")
    table.add_row("allocations at the recorded address", *_of(replay.addresses_total, replay.addresses_matched))
    table.add_row("segment allocations and mappings", *_of(replay.driver_events_total, replay.driver_events_matched))
    table.add_row("releases of the cache", *_of(replay.releases_total, replay.releases_matched))
    table.add_row(
        "peak allocated",
        format_bytes(replay.recorded_peak_allocated_bytes),
        format_bytes(replay.replayed_peak_allocated_bytes),
    )
    table.add_row(
        "peak reserved",
        format_bytes(replay.recorded_peak_reserved_bytes),
        format_bytes(replay.replayed_peak_reserved_bytes),
    )
    return Group(table, Text("\n".join((*_remarks(replay), *diagnostic_lines(replay.diagnostics)))))


def _of(total: int, matched: int) -> tuple[str, str]:
    return format_count(total), f"{format_count(matched)} equal"


def _remarks(replay: SnapshotReplay) -> list[str]:
    lines = []
    if replay.policy.id != replay.recorded_policy.id:
        lines.append(f"The snapshot was written under {replay.recorded_policy.title}: addresses need not be equal.")
    if replay.divergence is None:
        lines.append("Every address is the recorded one.")
    else:
        found = replay.divergence
        lines.append(
            f"Addresses part at event {format_count(found.event)}: {format_bytes(found.size_bytes)} were given "
            f"{found.recorded_address:#x}, the replay gives {found.replayed_address:#x}."
        )
    error = _error(replay.replayed_peak_reserved_bytes, replay.recorded_peak_reserved_bytes)
    if error is not None:
        lines.append(f"Error of the reserved peak: {error:+.2%}.")
    if replay.worst_stranded_bytes is not None:
        lines.append(f"Stranded at the worst miss: {format_bytes(replay.worst_stranded_bytes)}.")
    return lines
