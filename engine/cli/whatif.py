"""``cannscope whatif``: a job beside the same with optimizations switched on."""

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.catalogue import known_optimizations
from engine.cli.console import EXIT_NO, JsonFlag, Output, QuietFlag, VerboseFlag
from engine.cli.opening import trace_cache
from engine.cli.simulate import EnableOption, SetOption
from engine.core.progress import part_of
from engine.optimizations.selection import enabled_from_texts
from engine.report.prediction import write_prediction
from engine.report.subject_provenance import subject_hashes, subject_provenance
from engine.report.whatif import applicability_document, applicability_text, whatif_document, whatif_text
from engine.whatif.run import applicability, what_if
from engine.whatif.subject import open_subject
from engine.workloads.overrides import set_overrides

JobPaths = Annotated[
    list[Path], typer.Argument(help="A scenario (TOML), or a capture: a file or directories of ranks.")
]


def whatif(
    paths: JobPaths,
    enable: EnableOption = None,
    assign: SetOption = None,
    directory: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write both sides as captures, and prediction.json.")
    ] = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> int:
    """Switch optimizations on and see the job again; without --enable, what could be switched on.

    Exit code 1 where they exclude each other: the reason is printed and nothing is rerun.

    Example: cannscope whatif capture_ascend_pt --enable fusion.cross_entropy --enable communication.overlap_gradients
    """
    output = Output(as_json, quiet, verbose)
    registry = known_optimizations(output)
    chosen = enabled_from_texts(enable or (), registry)
    with output.progress() as progress:
        subject = open_subject(paths, set_overrides(assign or ()), part_of(progress, 0.0, 0.3), cache=trace_cache())
        if not chosen:
            found = applicability(subject, registry)
            if as_json:
                output.document(applicability_document(subject.name, found))
            else:
                output.stdout.print(applicability_text(subject.name, found))
            return 0
        result = what_if(subject, chosen, registry, part_of(progress, 0.3, 0.7))
        provenance = subject_provenance(subject, paths)
        if directory is not None and not result.refused:
            command = {"enable": list(enable or ()), "set": list(assign or ())}
            written = {**provenance, **command, "files_sha256": subject_hashes(subject)}
            write_prediction(result, directory, written, part_of(progress, 0.7, 1.0))
    if as_json:
        output.document(whatif_document(result, provenance))
    else:
        output.stdout.print(whatif_text(result))
    return EXIT_NO if result.refused else 0
