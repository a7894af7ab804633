"""Histories of benchmarks for tests of the window."""

from datetime import UTC, datetime, timedelta

from engine.workloads.bench.history import HistoryEntry
from engine.workloads.bench.measure import Measurement

FIRST = datetime(2026, 10, 1, 8, tzinfo=UTC)
NOISE = (0.0, 0.004, -0.003, 0.002, -0.004)


def benchmark_runs(count: int, worse_from: int | None = None, worse_ratio: float = 0.1) -> tuple[HistoryEntry, ...]:
    """Returns runs of one scenario with a little noise; from ``worse_from`` on slower by ``worse_ratio``, gate failed.

    Args:
        count: Runs.
        worse_from: Number of the first run that is slower; None for none.
        worse_ratio: By what share.
    """
    entries = []
    for number in range(count):
        is_worse = worse_from is not None and number >= worse_from
        speed = (1 - worse_ratio if is_worse else 1.0) * (1 + NOISE[number % len(NOISE)])
        entries.append(
            HistoryEntry(
                recorded_at=FIRST + timedelta(days=number),
                name="chat",
                scenario_sha256="0" * 64,
                version="1.0",
                label=f"build {number}",
                measured=Measurement(3500 * speed, 22 / speed, 41 << 30, "done"),
                change_ratio=1 - speed,
                passed=not is_worse,
            )
        )
    return tuple(entries)
