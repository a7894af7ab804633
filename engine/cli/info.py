"""``cannscope info``: what a capture is."""

from engine.cli.console import JsonFlag, Output, Paths, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.report.info import info_document, info_text


def info(paths: Paths, as_json: JsonFlag = False, quiet: QuietFlag = False, verbose: VerboseFlag = False) -> None:
    """Format, ranks, devices, software, steps, event counts, diagnostics.

    Example: cannscope info capture_ascend_pt
    """
    output = Output(as_json, quiet, verbose)
    with output.progress() as progress:
        job = open_capture(paths, progress)
    if as_json:
        output.document(info_document(job))
    else:
        output.stdout.print(info_text(job))
