"""``cannscope tune``: switch on what helps most, round after round."""

from typing import Annotated

import typer

from engine.advisor.tuning import ROUNDS, Attempt, Round
from engine.advisor.tuning import tune as tuning_rounds
from engine.cli.catalogue import known_optimizations
from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.cli.opening import trace_cache
from engine.cli.simulate import SetOption
from engine.cli.whatif import JobPaths
from engine.core.progress import part_of
from engine.report.subject_provenance import subject_provenance
from engine.report.tuning import round_line, tuning_document, tuning_text
from engine.whatif.subject import open_subject
from engine.workloads.overrides import set_overrides


def tune(
    paths: JobPaths,
    rounds: Annotated[int, typer.Option(min=1, help="At most so many.")] = ROUNDS,
    assign: SetOption = None,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Also try what changes results: compression, quantisation, other types.")
    ] = False,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """Find the largest loss, try what is made for it, keep the best, and begin again until nothing gives 1 %.

    Example: cannscope tune job.toml --rounds 5
    """
    output = Output(as_json, quiet, verbose)
    registry = known_optimizations(output)
    found: list[Round] = []
    rest: tuple[Attempt, ...] = ()
    with output.progress() as progress:
        subject = open_subject(paths, set_overrides(assign or ()), part_of(progress, 0.0, 0.1), cache=trace_cache())
        loop = tuning_rounds(subject, registry, rounds, lossy=lossy, progress=part_of(progress, 0.1, 1.0))
        while True:
            try:
                item = next(loop)
            except StopIteration as end:
                rest = end.value
                break
            found.append(item)
            if output.stderr.is_terminal and not quiet:
                output.stderr.print(round_line(item))
        baseline = subject.baseline()
    if as_json:
        output.document(tuning_document(subject.name, baseline, found, rest, subject_provenance(subject, paths)))
    else:
        output.stdout.print(tuning_text(subject.name, baseline, found, rest, lossy=lossy))
