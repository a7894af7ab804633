"""``cannscope advise``: what to change, ranked by what it wins."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from engine.advisor.advise import advise as advise_job
from engine.advisor.advise import examine
from engine.advisor.examination import examine_job
from engine.advisor.recommendations import Advice
from engine.advisor.rules import rule_registry
from engine.cli.catalogue import known_optimizations, with_failures_named
from engine.cli.console import JsonFlag, Output, Paths, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.core.errors import MissingDataError
from engine.core.progress import Progress, part_of
from engine.report.advice_document import advice_document
from engine.report.advice_export import check_advice_path, write_advice
from engine.report.advice_text import advice_text
from engine.trace.job import Job
from engine.whatif.subject import SCENARIO_SUFFIX, Subject, capture_subject, open_subject


def advise(
    paths: Paths,
    report: Annotated[
        Path | None, typer.Option("-o", "--output", help="Report to write: .html, .md, .json, .csv or .xlsx.")
    ] = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """What to change, ranked by predicted gain, with exact switches and what was checked and is fine.

    Example: cannscope advise capture_ascend_pt -o advice.html
    """
    output = Output(as_json, quiet, verbose)
    if report is not None:
        check_advice_path(report)
    with output.progress() as progress:
        advice = _advice(paths, output, progress)
        if report is not None:
            write_advice(advice, report)
    if as_json:
        output.document(advice_document(advice))
    else:
        output.stdout.print(advice_text(advice))


def _advice(paths: Sequence[Path], output: Output, progress: Progress) -> Advice:
    """Returns the advice on a scenario, or on the capture at ``paths``."""
    rules, optimizations = with_failures_named(rule_registry(), output), known_optimizations(output)
    subject: Subject | None
    if any(path.suffix.lower() == SCENARIO_SUFFIX for path in paths):
        subject = open_subject(paths)
        examination = examine(subject, part_of(progress, 0.0, 0.4))
    else:
        job = open_capture(paths, part_of(progress, 0.0, 0.3))
        examination = examine_job(job, progress=part_of(progress, 0.3, 0.5))
        subject = _replayable(job)
    return advise_job(examination, subject, rules, optimizations, part_of(progress, 0.5, 1.0))


def _replayable(job: Job) -> Subject | None:
    """Returns what can be rerun of a capture, None where it shows no device task: then gains are only reckoned."""
    try:
        return capture_subject(job)
    except MissingDataError:
        return None
