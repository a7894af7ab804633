"""A simulated twin for people, for scripts (``cannscope.twin/1``), and as a scenario file."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.errors import ExportError
from engine.core.number_format import format_duration_ns
from engine.core.units import NS_PER_US
from engine.report.side import side_document
from engine.whatif.results import Side
from engine.whatif.twin.fit import Twin
from engine.workloads.scenario_text import scenario_text

SCHEMA = "cannscope.twin/1"
_PARTS = {
    "cube": "matrix products",
    "vector": "other kernels",
    "communication": "exposed transfer",
    "bubble": "waiting for a stage",
    "waiting": "waiting for a late rank",
    "allocator": "allocator",
    "host": "host",
}
"""Of the step: on the capture's slowest rank, and on the mean of the twin's."""


def twin_document(twin: Twin, path: Path | None, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a twin; durations in µs."""
    computing_ns = twin.computing_ns
    return {
        "schema": SCHEMA,
        "path": None if path is None else str(path),
        "scenario": dict(twin.document),
        "toml": twin_toml(twin),
        "step_time_us": {
            "recorded": twin.recorded_step_ns / NS_PER_US,
            "twin": twin.side.mean_step_ns / NS_PER_US or None,
            "error_ratio": twin.step_error_ratio,
        },
        "computing_us": {
            "recorded": twin.recorded_computing_ns / NS_PER_US,
            "twin": None if computing_ns is None else computing_ns / NS_PER_US,
            "error_ratio": twin.computing_error_ratio,
        },
        "parts_us": {
            "recorded": _parts_us(twin.recorded),
            "twin": _parts_us(twin.side),
        },
        "told": list(twin.told),
        "untold": list(twin.untold),
        "run": side_document(twin.side, provenance),
        "provenance": provenance,
    }


def _parts_us(side: Side) -> dict[str, float] | None:
    """Returns where the step goes: of the capture on its slowest rank, of the twin on the mean of all."""
    shares = side.shares
    if shares is None:
        return None
    return {
        name.removesuffix("_ratio"): value * side.mean_step_ns / NS_PER_US for name, value in asdict(shares).items()
    }


def twin_toml(twin: Twin) -> str:
    """Returns the scenario file, with how well it matches in comments above."""
    lines = [_headline(twin), *(f"read from the capture: {text}" for text in twin.told)]
    lines += [f"could not be told: {text}" for text in twin.untold]
    # A name may hold a line break; a comment must not.
    comments = "".join(f"# {' '.join(line.split())}\n" for line in lines)
    return f"{comments}\n{scenario_text(twin.document)}"


def write_twin(twin: Twin, path: Path) -> None:
    """Writes the scenario file. Raises ExportError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(twin_toml(twin), encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; choose another place with -o") from error


def _headline(twin: Twin) -> str:
    recorded = format_duration_ns(twin.recorded_step_ns)
    error = twin.step_error_ratio
    if error is None:
        return f"{twin.document['name']}: the step takes {recorded}, the twin does not run ({twin.side.status.value})"
    own = format_duration_ns(twin.side.mean_step_ns)
    return f"{twin.document['name']}: the step takes {recorded}, the twin's {own} ({error:+.1%})"


def twin_text(twin: Twin, path: Path | None) -> RenderableType:
    """Returns a twin for people: how well it matches, what it took over, what could not be told."""
    table = Table("", "recorded", "twin", "difference", box=None)
    rows = (
        ("step", twin.recorded_step_ns, twin.side.mean_step_ns or None, twin.step_error_ratio),
        ("kernels per rank", twin.recorded_computing_ns, twin.computing_ns, twin.computing_error_ratio),
    )
    for name, recorded, own, error in rows:
        shown = "–" if own is None else format_duration_ns(own)
        table.add_row(name, format_duration_ns(recorded), shown, "–" if error is None else f"{error:+.1%}")
    before, after = _parts_us(twin.recorded), _parts_us(twin.side)
    if before is not None and after is not None:
        for name, value in before.items():
            if value or after[name]:
                both = (format_duration_ns(value * NS_PER_US), format_duration_ns(after[name] * NS_PER_US))
                table.add_row(f"  {_PARTS[name]}", *both, "")
    lines = [f"read: {text}" for text in twin.told] + [f"could not be told: {text}" for text in twin.untold]
    ending = f"written to {path}; ask it: cannscope whatif {path}" if path else twin_toml(twin)
    return Group(Text(_headline(twin), style="bold"), table, Text("\n".join((*lines, ending))))
