"""What the replay of captures' memory logs says: the ``replay`` document and its text."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_bytes, format_count
from engine.replay.capture_requests import HOST_MEMORY
from engine.replay.memory_replay import MemoryReplay, PolicyOutcome
from engine.replay.snapshot_policy import policy_facts
from engine.report.diagnostics import diagnostic_rows, job_diagnostics
from engine.trace.job import Job


def memory_document(
    job: Job, replays: Mapping[int, MemoryReplay], time: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the document ``cannscope.replay/1`` of CLI.md for a capture.

    The keys of the contract are those of the rank that reserved most; ``ranks`` holds the same of every rank.

    Args:
        job: The capture.
        replays: Rank → its replay; where there is none, everything but the time is null.
        time: The ``time`` value, None where the capture shows no device tasks.
    """
    fullest = max(replays, key=lambda rank: replays[rank].recorded_peak_reserved_bytes or 0, default=None)
    return {
        "schema": "cannscope.replay/1",
        "path": job.path,
        "rank": fullest,
        **(_nothing_recorded() if fullest is None else _rank_document(replays[fullest])),
        "snapshot": None,
        "time": time,
        "ranks": [{"rank": rank, **_rank_document(replay)} for rank, replay in replays.items()],
        "diagnostics": diagnostic_rows(job_diagnostics(job)),
    }


def _rank_document(replay: MemoryReplay) -> dict[str, Any]:
    recorded = replay.recorded_peak_reserved_bytes
    low, high = (item / recorded - 1 if recorded else None for item in replay.reserved_range_bytes)
    return {
        "allocator": replay.outcome.policy.id,
        "recorded_allocator": replay.recorded_policy.id,
        "policy": policy_facts(replay.outcome.policy.settings),
        "recorded": {
            "peak_allocated_bytes": replay.recorded_peak_allocated_bytes,
            "peak_reserved_bytes": recorded,
        },
        "replayed": {
            "peak_allocated_bytes": replay.outcome.peak_allocated_bytes,
            "peak_reserved_bytes": replay.outcome.peak_reserved_bytes,
        },
        "reserved_error_ratio": replay.reserved_error_ratio,
        "reserved_error_range": {"low": low, "high": high},
        "seed_bytes": replay.seed_bytes,
        "requests": replay.requests,
        "recorded_first_reserved_bytes": replay.recorded_first_reserved_bytes,
        "addresses_total": None,
        "addresses_matched": None,
        "driver_events_total": None,
        "driver_events_matched": None,
        "releases_total": None,
        "releases_matched": None,
        "stranded_bytes": replay.outcome.stranded_bytes,
        "policies": [_policy_document(item, recorded) for item in replay.policies],
        "assumptions": diagnostic_rows(replay.diagnostics),
    }


def _nothing_recorded() -> dict[str, Any]:
    """Returns the keys of a rank for a capture that lists no blocks."""
    peaks = {"peak_allocated_bytes": None, "peak_reserved_bytes": None}
    unknown = (
        *("allocator", "recorded_allocator", "policy", "reserved_error_ratio", "seed_bytes", "requests"),
        "recorded_first_reserved_bytes",
        *("addresses_total", "addresses_matched", "driver_events_total", "driver_events_matched"),
        *("releases_total", "releases_matched", "stranded_bytes"),
    )
    return {
        **dict.fromkeys(unknown),
        "recorded": peaks,
        "replayed": peaks,
        "reserved_error_range": {"low": None, "high": None},
        "policies": [],
        "assumptions": [],
    }


def _policy_document(outcome: PolicyOutcome, recorded: int | None) -> dict[str, Any]:
    return {
        "allocator": outcome.policy.id,
        "title": outcome.policy.title,
        "peak_allocated_bytes": outcome.peak_allocated_bytes,
        "peak_reserved_bytes": outcome.peak_reserved_bytes,
        "reserved_to_recorded_ratio": outcome.peak_reserved_bytes / recorded if recorded else None,
        "stranded_at_peak_bytes": outcome.stranded_at_peak_bytes,
        "stranded_at_misses_bytes": outcome.stranded_at_misses_bytes,
        "driver_calls": outcome.driver_calls,
        "out_of_memory_count": outcome.out_of_memory_count,
    }


def memory_text(job: Job, replays: Mapping[int, MemoryReplay]) -> RenderableType:
    """Returns the same for people: per rank, what every policy would have reserved."""
    parts: list[RenderableType] = []
    for rank, replay in replays.items():
        parts += [_rank_table(rank, replay), Text("\n".join(_remarks(replay)))]
    silent = [str(entry.rank) for entry in job.ranks if entry.rank not in replays]
    if silent:
        parts.append(Text(f"No list of allocated blocks: rank {', '.join(silent)}."))
    return Group(*parts)


def _rank_table(rank: int, replay: MemoryReplay) -> Table:
    table = Table(
        "allocator",
        "peak reserved",
        "of recorded",
        "peak allocated",
        "stranded at the peak",
        "stranded at misses",
        "driver calls",
        title=f"rank {rank}: {format_count(replay.requests)} requests on every allocator",
    )
    recorded = replay.recorded_peak_reserved_bytes
    for outcome in replay.policies:
        chosen = outcome.policy.id == replay.outcome.policy.id
        table.add_row(
            outcome.policy.id + (" (replayed)" if chosen else ""),
            format_bytes(outcome.peak_reserved_bytes),
            f"{outcome.peak_reserved_bytes / recorded - 1:+.1%}" if recorded else "–",
            format_bytes(outcome.peak_allocated_bytes),
            _bytes_or_dash(outcome.stranded_at_peak_bytes),
            _bytes_or_dash(outcome.stranded_at_misses_bytes),
            format_count(outcome.driver_calls),
        )
    return table


def _bytes_or_dash(value: int | None) -> str:
    return "–" if value is None else format_bytes(value)


def _remarks(replay: MemoryReplay) -> list[str]:
    on_host = any(item.code == HOST_MEMORY for item in replay.diagnostics)
    lines = [] if on_host else [f"Recorded under {replay.recorded_policy.title}."]
    recorded = replay.recorded_peak_reserved_bytes
    if recorded is not None and replay.reserved_error_ratio is not None:
        low, high = (item / recorded - 1 for item in replay.reserved_range_bytes)
        spread = "" if low == high else f" ({low:+.2%} to {high:+.2%}, depending on the unknown layout before)"
        lines.append(
            f"Recorded peak reserved {format_bytes(recorded)}, replayed "
            f"{format_bytes(replay.outcome.peak_reserved_bytes)}: {replay.reserved_error_ratio:+.2%}{spread}."
        )
    first = replay.recorded_first_reserved_bytes
    if first is not None and first > replay.outcome.peak_reserved_bytes:
        lines.append(
            f"{format_bytes(first)} were reserved already when the recording began, kept from earlier steps: what was "
            "recorded needs less, so the two peaks do not compare."
        )
    if replay.seed_bytes:
        lines.append(f"{format_bytes(replay.seed_bytes)} were allocated before the first row and are taken as given.")
    lines += [f"{item.message} × {format_count(item.count)}." for item in replay.diagnostics]
    return lines
