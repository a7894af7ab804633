"""What the replay of a recorded timeline says: the ``time`` value of the ``replay`` document and its text."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_duration_ns
from engine.core.units import NS_PER_US
from engine.replay.capture_graph import HostSource
from engine.replay.replay_quality import ReplayQuality

WEAK_RATIO = 0.05
"""Predictions on a capture whose unchanged replay is further off are marked weak."""

_SOURCES = {
    HostSource.LAUNCHES: "recorded launches",
    HostSource.ALLOCATIONS: "inferred from idle devices and the times of allocations",
    HostSource.GAPS: "inferred from idle devices",
}


def time_document(quality: ReplayQuality) -> dict[str, Any]:
    """Returns recorded and replayed time of the mean step, of the slowest rank; ``steps`` holds each of them.

    A capture without steps has one, whose number is null: its device span.
    """
    unchanged = quality.unchanged
    rows = zip(unchanged.step.tolist(), unchanged.recorded_step_ns.tolist(), unchanged.step_ns.tolist(), strict=True)
    return {
        "recorded_step_us": float(unchanged.recorded_step_ns.mean()) / NS_PER_US,
        "replayed_step_us": float(unchanged.step_ns.mean()) / NS_PER_US,
        "error_ratio": unchanged.error_ratio,
        "withheld_error_ratio": quality.withheld.error_ratio,
        "inferred_edge_share_ratio": quality.inferred_edge_share_ratio,
        "host_source": {str(rank): source.value for rank, source in quality.capture.host_source.items()},
        "steps": [
            {
                "step": None if step < 0 else step,
                "recorded_us": recorded_ns / NS_PER_US,
                "replayed_us": replayed_ns / NS_PER_US,
            }
            for step, recorded_ns, replayed_ns in rows
        ],
    }


def time_text(quality: ReplayQuality) -> RenderableType:
    """Returns the same for people."""
    unchanged = quality.unchanged
    table = Table("step", "recorded", "replayed", "error", title="timeline, replayed unchanged")
    for step, recorded_ns, replayed_ns in zip(
        unchanged.step.tolist(), unchanged.recorded_step_ns.tolist(), unchanged.step_ns.tolist(), strict=True
    ):
        error = f"{replayed_ns / recorded_ns - 1:+.2%}" if recorded_ns else "–"
        table.add_row(
            "device span" if step < 0 else str(step),
            format_duration_ns(recorded_ns),
            format_duration_ns(replayed_ns),
            error,
        )
    return Group(table, Text("\n".join(_remarks(quality))))


def _remarks(quality: ReplayQuality) -> list[str]:
    lines = []
    withheld = quality.withheld.error_ratio
    if withheld is not None:
        lines.append(f"With device gaps withheld that nothing recorded explains: {withheld:+.2%}.")
    lines.append(f"{quality.inferred_edge_share_ratio:.0%} of the waits between tasks are inferred, not recorded.")
    by_source: dict[str, list[str]] = {}
    for rank, source in quality.capture.host_source.items():
        by_source.setdefault(_SOURCES[source], []).append(str(rank))
    lines += [f"Host times of rank {', '.join(ranks)}: {words}." for words, ranks in by_source.items()]
    error = quality.unchanged.error_ratio
    if error is not None and abs(error) > WEAK_RATIO:
        lines.append(f"The replay is more than {WEAK_RATIO:.0%} off: predictions on this capture are weak.")
    return lines
