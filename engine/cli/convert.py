"""``cannscope convert``: rewrites a trace."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.core.errors import ExportError
from engine.core.progress import part_of
from engine.formats.chrome.writer import write_chrome


class Target(StrEnum):
    """Formats that can be written."""

    CHROME = "chrome"


def convert(
    source: Annotated[Path, typer.Argument(help="Capture to read.")],
    destination: Annotated[Path, typer.Argument(help="File to write; a directory for a job of several ranks.")],
    to: Annotated[Target, typer.Option(help="Format to write.")],
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """Rewrites a trace, for Perfetto, chrome://tracing or MindStudio Insight.

    Example: cannscope convert capture_ascend_pt trace.json --to chrome
    """
    output = Output(as_json, quiet, verbose)
    with output.progress() as progress:
        job = open_capture([source], part_of(progress, 0.0, 0.5))
        several = len(job.ranks) > 1
        written = []
        for index, entry in enumerate(job.ranks):
            path = destination / f"rank{entry.rank}.json" if several else destination
            share = 0.5 + 0.5 * index / len(job.ranks)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_chrome(entry.trace, path, progress=part_of(progress, share, share + 0.5 / len(job.ranks)))
            except OSError as error:
                raise ExportError(f"{path}: {error.strerror or error}; choose another destination") from error
            written.append(str(path))
    if as_json:
        output.document({"schema": "cannscope.convert/1", "format": to.value, "files": written})
    elif not quiet:
        output.stdout.print("\n".join(written), markup=False)
