"""Diagnostics of a job as data and as text."""

from collections.abc import Iterable
from typing import Any

from engine.core.number_format import format_count
from engine.trace.diagnostics import Diagnostic, DiagnosticLog
from engine.trace.job import Job


def job_diagnostics(job: Job, found: Iterable[Diagnostic] = ()) -> tuple[Diagnostic, ...]:
    """Returns the diagnostics of the job, of all its ranks and those ``found`` by analyses, the most severe first."""
    log = DiagnosticLog()
    log.extend(job.diagnostics)
    log.extend(found)
    for entry in job.ranks:
        log.extend(entry.trace.diagnostics)
    return log.diagnostics()


def diagnostics_document(job: Job, found: Iterable[Diagnostic] = ()) -> list[dict[str, Any]]:
    """Returns the ``diagnostics`` value of CLI.md, with the first position of each code as ``position``."""
    return diagnostic_rows(job_diagnostics(job, found))


def diagnostic_rows(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Returns diagnostics as data."""
    return [
        {
            "code": item.code,
            "severity": item.severity.value,
            "count": item.count,
            "message": item.message,
            "position": str(item.position),
        }
        for item in diagnostics
    ]


def diagnostics_lines(job: Job, found: Iterable[Diagnostic] = ()) -> list[str]:
    """Returns one line per diagnostic of the job for people."""
    return diagnostic_lines(job_diagnostics(job, found))


def diagnostic_lines(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Returns one line per diagnostic for people."""
    return [
        f"{item.severity.value.replace('_', ' ')}: {item.code} × {format_count(item.count)}: {item.message}"
        + (f" (first: {item.position})" if str(item.position) else "")
        for item in diagnostics
    ]
