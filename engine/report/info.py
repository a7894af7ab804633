"""What a capture is: the ``info`` document and its text."""

import math
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.analyses.steps import steps
from engine.core.number_format import format_count, format_duration_ns
from engine.core.units import ns_to_us
from engine.report.diagnostics import diagnostics_document, diagnostics_lines
from engine.trace.job import Job, RankTrace
from engine.trace.trace import Trace


def info_document(job: Job) -> dict[str, Any]:
    """Returns the document ``cannscope.info/1`` of CLI.md."""
    return {
        "schema": "cannscope.info/1",
        "path": job.path,
        "format": _formats(job),
        "ranks": [_rank_document(entry) for entry in job.ranks],
        "diagnostics": diagnostics_document(job),
    }


def _rank_document(entry: RankTrace) -> dict[str, Any]:
    trace = entry.trace
    metadata = _with_finite_numbers(asdict(trace.metadata))
    return {
        "rank": entry.rank,
        "device": trace.metadata.device,
        "events": len(trace.events),
        "steps": [step.step for step in steps(trace) if step.step is not None],
        "duration_us": ns_to_us(trace.time_range.duration_ns),
        "origin": trace.origin.value,
        "source": asdict(trace.source),
        "alignment": entry.alignment.value,
        "offset_us": ns_to_us(entry.offset_ns),
        "metadata": metadata,
        "tracks": dict(Counter(track.kind.value for track in trace.tracks)),
        "events_by_track_kind": _events_by_kind(trace),
        "rows": {
            "flows": len(trace.flows),
            "kernels": len(trace.kernels),
            "collectives": len(trace.collectives),
            "allocations": len(trace.memory.allocations),
            "memory_samples": sum(len(curve) for curve in trace.memory.curves),
            "counter_samples": sum(len(series) for series in trace.counters),
        },
        "tables": {name: len(table) for name, table in trace.tables.items()},
    }


def _with_finite_numbers(value: Any) -> Any:
    """Returns JSON values with None for NaN and infinity: a file's own metadata may hold any number."""
    if isinstance(value, dict):
        return {key: _with_finite_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_finite_numbers(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _formats(job: Job) -> str:
    return ", ".join(sorted({entry.trace.source.format for entry in job.ranks}))


def _events_by_kind(trace: Trace) -> dict[str, int]:
    counts: Counter[str] = Counter()
    per_track = np.bincount(trace.events.track, minlength=len(trace.tracks))
    for track, count in zip(trace.tracks, per_track.tolist(), strict=True):
        if count:
            counts[track.kind.value] += count
    return dict(counts)


def info_text(job: Job) -> RenderableType:
    """Returns the same for people: one row per rank, then software and diagnostics."""
    table = Table(
        "rank", "device", "events", "steps", "duration", "tracks", "files", title=f"{job.path}: {_formats(job)}"
    )
    for entry in job.ranks:
        trace = entry.trace
        numbers = [str(step.step) for step in steps(trace) if step.step is not None]
        table.add_row(
            str(entry.rank),
            trace.metadata.device or "–",
            format_count(len(trace.events)),
            _abridged(numbers),
            format_duration_ns(trace.time_range.duration_ns),
            str(len(trace.tracks)),
            str(len(trace.source.files)),
        )
    software = sorted(
        {f"{name} {version}" for entry in job.ranks for name, version in entry.trace.metadata.software.items()}
    )
    lines = ["software: " + ", ".join(software)] if software else []
    return Group(table, Text("\n".join(lines + diagnostics_lines(job))))


def _abridged(numbers: list[str]) -> str:
    return ", ".join(numbers) if len(numbers) <= 6 else f"{numbers[0]}…{numbers[-1]} ({len(numbers)})"
