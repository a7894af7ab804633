"""``cannscope analyze``: where time and memory went."""

from engine.analyses.summary import summarize
from engine.cli.console import JsonFlag, Output, Paths, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.core.progress import part_of
from engine.report.analysis_document import analysis_document
from engine.report.analysis_text import analysis_text


def analyze(paths: Paths, as_json: JsonFlag = False, quiet: QuietFlag = False, verbose: VerboseFlag = False) -> None:
    """Steps, breakdown, overlap, memory, fusion candidates, communication.

    Example: cannscope analyze capture_ascend_pt --json
    """
    output = Output(as_json, quiet, verbose)
    with output.progress() as progress:
        job = open_capture(paths, part_of(progress, 0.0, 0.6))
        summary = summarize(job, part_of(progress, 0.6, 1.0))
    if as_json:
        output.document(analysis_document(job, summary))
    else:
        output.stdout.print(analysis_text(job, summary))
