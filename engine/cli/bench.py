"""``cannscope bench``: numbers before and after every change."""

import hashlib
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import EXIT_NO, JsonFlag, Output, QuietFlag, VerboseFlag
from engine.cli.simulate import EnableOption, SetOption
from engine.core.errors import ScenarioError
from engine.core.progress import part_of
from engine.core.user_places import bench_history_place
from engine.report.bench import bench_document, bench_text
from engine.workloads.bench.baseline import compared, read_baseline, write_baseline
from engine.workloads.bench.history import append_history, new_entry
from engine.workloads.bench.measure import Measurement, measure
from engine.workloads.overrides import enabled_overrides, set_overrides
from engine.workloads.scenario_file import read_scenario

_USUAL_TOLERANCE = "5%"


def bench(
    scenarios: Annotated[list[Path], typer.Argument(help="Scenario files (TOML), training or serving.")],
    record: Annotated[Path | None, typer.Option("--record", help="Write the numbers as a baseline.")] = None,
    against: Annotated[Path | None, typer.Option("--against", help="Baseline to compare with.")] = None,
    tolerance: Annotated[
        str, typer.Option(help="By how much a number may be worse, as 5% or 0.05.")
    ] = _USUAL_TOLERANCE,
    history: Annotated[Path | None, typer.Option("--history", help="SQLite file every run is added to.")] = None,
    label: Annotated[str, typer.Option("--label", help="What was measured: a commit, a build.")] = "",
    enable: EnableOption = None,
    assign: SetOption = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> int:
    """Measure scenarios in tokens/s, ms/token and peak memory; record a baseline or compare with one (exit 1: worse).

    Example: cannscope bench job.toml service.toml --against baseline.json --tolerance 5%
    """
    output = Output(as_json, quiet, verbose)
    allowed = _ratio(tolerance)
    known = read_baseline(against) if against is not None else {}
    overrides = {**set_overrides(assign or ()), **enabled_overrides(enable or ())}
    measured: dict[str, Measurement] = {}
    digests: dict[str, str] = {}
    with output.progress() as progress:
        for number, path in enumerate(scenarios):
            scenario = read_scenario(path, overrides)
            if scenario.name in measured:
                raise ScenarioError(f"{path}: another scenario is named {scenario.name!r} too; give each its own name")
            part = part_of(progress, number / len(scenarios), (number + 1) / len(scenarios))
            measured[scenario.name] = measure(scenario, part)
            digests[scenario.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    results = [compared(name, now, known.get(name), allowed) for name, now in measured.items()]
    version = metadata.version("cannscope")
    provenance = {"cannscope": version, "scenario_sha256": digests, "label": label}
    if record is not None:
        write_baseline(record, measured, provenance)
    kept = history or bench_history_place()
    append_history(kept, [new_entry(item, digests[item.name], version, label) for item in results])
    if as_json:
        output.document(bench_document(results, allowed, {**provenance, "history": str(kept)}))
    else:
        notes = [f"baseline written to {record}"] if record is not None else []
        output.stdout.print(bench_text(results, allowed, [*notes, f"history: {kept}"]))
    return 0 if all(item.passed for item in results) else EXIT_NO


def _ratio(text: str) -> float:
    """Returns ``5%`` or ``0.05`` as a ratio. Raises ScenarioError."""
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100.0 if percent else 1.0)
    except ValueError as error:
        raise ScenarioError(f"--tolerance {text}: write it as 5% or 0.05") from error
    if rest or not 0.0 <= value < 1.0:
        raise ScenarioError(f"--tolerance {text}: must be at least 0% and below 100%")
    return value
