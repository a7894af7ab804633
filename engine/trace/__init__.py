"""The columnar model of a run: tracks, events, flows, counters, memory; see ``Trace``."""

from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import Diagnostic, DiagnosticLog, Severity
from engine.trace.job import Alignment, Job, RankTrace, align
from engine.trace.strings import ABSENT, StringInterner, StringTable
from engine.trace.trace import Origin, ParallelGroup, Source, TimeRange, Trace, TraceMetadata
from engine.trace.tracks import Track, TrackKind

__all__ = [
    "ABSENT",
    "Alignment",
    "Diagnostic",
    "DiagnosticLog",
    "Job",
    "Origin",
    "ParallelGroup",
    "RankTrace",
    "Severity",
    "Source",
    "StringInterner",
    "StringTable",
    "TimeRange",
    "Trace",
    "TraceBuilder",
    "TraceMetadata",
    "Track",
    "TrackKind",
    "align",
]
