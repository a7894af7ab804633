"""``cannscope fidelity``: the runtime against published measurements."""

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import EXIT_NO, JsonFlag, Output, QuietFlag, VerboseFlag
from engine.core.progress import part_of
from engine.replay.fidelity import ALLOCATOR_TABLES, SLOW_ALLOCATOR_TABLES
from engine.report.fidelity import fidelity_document, fidelity_text
from engine.workloads.fidelity.registry import FIDELITY_TABLES
from engine.workloads.fidelity.tables import FidelityResult, chosen_tables, validation_directory


def fidelity(
    table: Annotated[
        str | None, typer.Argument(help="A table or family (serving) with its kinds of rows; else all.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Directory of the tables; else CANNSCOPE_VALIDATION, else beside the captures.")
    ] = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> int:
    """Errors of the runtime on published measurements, with naive baselines beside them.

    The measurements are not part of this program. All tables together take several minutes. Exit code 1 where a table
    misses its target.

    Example: cannscope fidelity operators
    """
    output = Output(as_json, quiet, verbose)
    directory = validation_directory(data)
    chosen = chosen_tables((*FIDELITY_TABLES, *ALLOCATOR_TABLES, *SLOW_ALLOCATOR_TABLES), table)
    results: list[FidelityResult] = []
    missing: dict[str, str] = {}
    with output.progress() as progress:
        for place, entry in enumerate(chosen):
            absent = [name for name in entry.files if not (directory / name).exists()]
            if absent:
                missing[entry.id] = f"{', '.join(absent)} not in {directory}"
                continue
            part = part_of(progress, place / len(chosen), (place + 1) / len(chosen))
            results.append(entry.evaluate(directory, part))
    if as_json:
        output.document(fidelity_document(results, missing))
    else:
        output.stdout.print(fidelity_text(results, missing, parts=table is not None))
    return 0 if all(result.holds for result in results) else EXIT_NO
