"""Every benchmark that was run, in an SQLite file: what a service's or a job's numbers did over the weeks."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.core.errors import ExportError, ScenarioError
from engine.workloads.bench.baseline import Comparison
from engine.workloads.bench.measure import Measurement

_VERSION = 1
_CREATE = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY,
    recorded_at TEXT NOT NULL,
    name TEXT NOT NULL,
    scenario_sha256 TEXT NOT NULL,
    version TEXT NOT NULL,
    label TEXT NOT NULL,
    tokens_per_s REAL NOT NULL,
    ms_per_token REAL,
    peak_memory_bytes INTEGER NOT NULL,
    status TEXT NOT NULL,
    change_ratio REAL,
    passed INTEGER NOT NULL
)
"""
_COLUMNS = (
    "recorded_at, name, scenario_sha256, version, label, tokens_per_s, ms_per_token, peak_memory_bytes, status, "
    "change_ratio, passed"
)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One benchmark of one scenario.

    Attributes:
        recorded_at: Moment, with time zone.
        name: Of the scenario.
        scenario_sha256: Of its file.
        version: Of the program.
        label: The user's word for what was measured (a commit, a build), "" for none.
        measured: The numbers.
        change_ratio: Against the baseline of that day, positive where worse; None without one.
        passed: Whether the gate passed.
    """

    recorded_at: datetime
    name: str
    scenario_sha256: str
    version: str
    label: str
    measured: Measurement
    change_ratio: float | None
    passed: bool


def new_entry(comparison: Comparison, scenario_sha256: str, version: str, label: str) -> HistoryEntry:
    """Returns the entry of a benchmark run now."""
    return HistoryEntry(
        recorded_at=datetime.now(UTC),
        name=comparison.name,
        scenario_sha256=scenario_sha256,
        version=version,
        label=label,
        measured=comparison.now,
        change_ratio=comparison.change_ratio,
        passed=comparison.passed,
    )


def append_history(path: Path, entries: Sequence[HistoryEntry]) -> None:
    """Adds entries to a history, all or none; makes the file where there is none. Raises ExportError."""
    rows = [
        (
            entry.recorded_at.isoformat(),
            entry.name,
            entry.scenario_sha256,
            entry.version,
            entry.label,
            entry.measured.tokens_per_s,
            entry.measured.ms_per_token,
            entry.measured.peak_memory_bytes,
            entry.measured.status,
            entry.change_ratio,
            int(entry.passed),
        )
        for entry in entries
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=10.0)) as connection, connection:
            _check_version(path, connection)
            connection.execute(_CREATE)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            marks = ", ".join("?" * len(rows[0])) if rows else ""
            if rows:
                connection.executemany(f"INSERT INTO runs ({_COLUMNS}) VALUES ({marks})", rows)  # noqa: S608
    except (OSError, sqlite3.Error) as error:
        raise ExportError(f"{path}: the history cannot be written: {error}; choose another with --history") from error


def read_history(path: Path) -> tuple[HistoryEntry, ...]:
    """Returns all entries, the oldest first. Raises ScenarioError where the file is no history."""
    if not path.is_file():
        raise ScenarioError(f"{path}: there is no history; run: cannscope bench SCENARIO --record FILE")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)) as connection:
            _check_version(path, connection)
            query = f"SELECT {_COLUMNS} FROM runs ORDER BY recorded_at, id"  # noqa: S608
            return tuple(_entry(row) for row in connection.execute(query))
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise ScenarioError(f"{path}: is no history of benchmarks: {error}; name another file") from error


def _check_version(path: Path, connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > _VERSION:
        message = f"{path}: the history is of version {version}; this release reads {_VERSION}: use a newer release"
        raise ScenarioError(message)


def _entry(row: Sequence[object]) -> HistoryEntry:
    moment, name, digest, version, label, tokens, per_token, memory, status, change, passed = row
    measured = Measurement(
        tokens_per_s=float(str(tokens)),
        ms_per_token=None if per_token is None else float(str(per_token)),
        peak_memory_bytes=int(str(memory)),
        status=str(status),
    )
    return HistoryEntry(
        recorded_at=datetime.fromisoformat(str(moment)),
        name=str(name),
        scenario_sha256=str(digest),
        version=str(version),
        label=str(label),
        measured=measured,
        change_ratio=None if change is None else float(str(change)),
        passed=bool(passed),
    )
