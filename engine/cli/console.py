"""What every command shares: its common flags, progress on a terminal, one line per error, exit codes."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from engine.core.progress import Progress, no_progress

EXIT_NO = 1
EXIT_UNUSABLE_INPUT = 2
EXIT_CANCELLED = 130
PIPED_WIDTH = 140
"""Columns of a report that goes to a file or a pipe, where no terminal says how wide it is."""

JsonFlag: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")
]
QuietFlag: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notices.")]
VerboseFlag: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v", help="Log what is being done on stderr.")]
Paths: TypeAlias = Annotated[
    list[Path], typer.Argument(help="Capture: a file, a profiler directory, or a directory of ranks.")
]


def _console(*, width: int | None = None, stderr: bool = False) -> Console:
    """Returns a console that prints names as they are: brackets and colons in them are no markup and no emoji."""
    return Console(width=width, stderr=stderr, markup=False, emoji=False)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes, decided by its common flags."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    stdout: Console = field(default_factory=lambda: _console(width=None if sys.stdout.isatty() else PIPED_WIDTH))
    stderr: Console = field(default_factory=lambda: _console(stderr=True))

    def __post_init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            # Names may hold what the terminal cannot show (lone surrogates, any letter on an ASCII terminal).
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        logging.basicConfig(level=logging.INFO if self.verbose else logging.WARNING, stream=sys.stderr, force=True)

    def document(self, document: dict[str, Any]) -> None:
        """Prints a JSON document; NaN and infinity never appear in it."""
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
        try:
            text.encode(sys.stdout.encoding or "ascii")
        except UnicodeEncodeError:
            text = json.dumps(document, allow_nan=False, indent=2)
        sys.stdout.write(text + "\n")

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Shows a progress bar on a terminal's stderr while the block runs."""
        if self.quiet or not sys.stderr.isatty():
            yield no_progress
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with RichProgress(*columns, console=self.stderr, transient=True) as bar:
            task = bar.add_task("opening", total=1.0)

            def report(done_ratio: float, what: str) -> None:
                bar.update(task, completed=done_ratio, description=what)

            yield report
