"""``cannscope simulate``: runs the simulated runtime."""

from pathlib import Path
from typing import Annotated, Any

import typer

from engine.cli.console import EXIT_NO, JsonFlag, Output, QuietFlag, VerboseFlag
from engine.core.progress import part_of
from engine.report.provenance import run_provenance
from engine.report.run_capture import write_run, write_service
from engine.report.serving import report_of, served_document, served_text
from engine.report.simulation import run_document, run_text
from engine.workloads.overrides import enabled_overrides, set_overrides
from engine.workloads.results import RunStatus
from engine.workloads.scenario import Scenario, WorkloadKind
from engine.workloads.scenario_file import read_scenario
from engine.workloads.serving.simulate import simulate_serving
from engine.workloads.simulate import simulate as run_scenario

EnableOption = Annotated[
    list[str] | None, typer.Option("--enable", help="Optimization to switch on, as ID or ID:key=value,…; repeatable.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Scenario key to override, as batch.global=256; repeatable.")
]


def simulate(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (TOML).")],
    enable: EnableOption = None,
    assign: SetOption = None,
    directory: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write a profiler directory per rank.")
    ] = None,
    level: Annotated[int, typer.Option(min=0, max=2, help="Profiler level of what is written.")] = 1,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> int:
    """Run a training job or a service on the simulated runtime: times, throughput, memory, how they go over the run.

    Example: cannscope simulate job.toml --set run.steps=2000 --enable fusion.attention -o captures
    """
    output = Output(as_json, quiet, verbose)
    overrides: dict[tuple[str, ...], Any] = {**set_overrides(assign or ()), **enabled_overrides(enable or ())}
    given = read_scenario(scenario, overrides)
    if given.kind is WorkloadKind.SERVING:
        return _serve(given, scenario, directory, output)
    with output.progress() as progress:
        result = run_scenario(given, progress if directory is None else part_of(progress, 0.0, 0.5))
        if directory is not None:
            write_run(result, directory, level, part_of(progress, 0.5, 1.0))
    if as_json:
        output.document(run_document(result, run_provenance(scenario, given.seed)))
    else:
        output.stdout.print(run_text(result))
    return 0 if result.status is RunStatus.DONE else EXIT_NO


def _serve(given: Scenario, path: Path, directory: Path | None, output: Output) -> int:
    with output.progress() as progress:
        result = simulate_serving(given, part_of(progress, 0.0, 0.5))
        late = report_of(result, part_of(progress, 0.5, 0.7))
        if directory is not None:
            write_service(result, directory, part_of(progress, 0.7, 1.0))
    if output.as_json:
        output.document(served_document(result, run_provenance(path, given.seed), late))
    else:
        output.stdout.print(served_text(result, late))
    return 0
