"""``cannscope twin``: a scenario fitted to a capture."""

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, Paths, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.core.progress import part_of
from engine.report.provenance import capture_provenance
from engine.report.twin import twin_document, twin_text, write_twin
from engine.whatif.subject import capture_subject
from engine.whatif.twin.fit import fitted_twin


def twin(
    paths: Paths,
    scenario: Annotated[
        Path | None, typer.Option("-o", "--output", help="Scenario file to write; printed where left out.")
    ] = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """A simulated twin of a recorded job, for questions the capture alone cannot answer.

    Says how well the twin's step matches the recorded one and what could not be told from the capture.

    Example: cannscope twin capture_ascend_pt -o twin.toml
    """
    output = Output(as_json, quiet, verbose)
    with output.progress() as progress:
        job = open_capture(paths, part_of(progress, 0.0, 0.4))
        subject = capture_subject(job, part_of(progress, 0.4, 0.6))
        found = fitted_twin(subject, part_of(progress, 0.6, 1.0))
    if scenario is not None:
        write_twin(found, scenario)
    if as_json:
        output.document(twin_document(found, scenario, capture_provenance(paths)))
    else:
        output.stdout.print(twin_text(found, scenario))
