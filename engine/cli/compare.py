"""``cannscope compare``: two captures side by side."""

from pathlib import Path
from typing import Annotated

import typer

from engine.analyses.comparison import compare as compare_jobs
from engine.analyses.summary import summarize
from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.core.progress import part_of
from engine.report.comparison import comparison_document, comparison_text


def compare(
    baseline: Annotated[Path, typer.Argument(help="The run to compare with.")],
    candidate: Annotated[Path, typer.Argument(help="The run to judge.")],
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """Two captures or runs, aligned by step and operator.

    Example: cannscope compare before_ascend_pt after_ascend_pt
    """
    output = Output(as_json, quiet, verbose)
    with output.progress() as progress:
        jobs = [
            open_capture([path], part_of(progress, share, share + 0.3))
            for path, share in ((baseline, 0.0), (candidate, 0.3))
        ]
        comparison = compare_jobs(*jobs)
        summaries = [summarize(job, part_of(progress, 0.6, 1.0)) for job in jobs] if as_json else []
    if as_json:
        output.document(comparison_document(comparison, jobs, summaries))
    else:
        output.stdout.print(comparison_text(comparison))
