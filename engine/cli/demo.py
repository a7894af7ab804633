"""``cannscope demo``: the main job in one go."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.report.demo import demo_document, demo_scenario, demo_scenario_file, demo_text, run_demo
from engine.report.provenance import run_provenance

ShowWindow = Callable[[Sequence[Path]], int]
"""Opens the window on paths and returns the exit code when it is closed."""
DIRECTORY = Path("cannscope-demo")


def demo_command(show_window: ShowWindow | None) -> Callable[..., int]:
    """Returns the command.

    Args:
        show_window: Opens the window on what was written; None where there is no window to open.
    """

    def demo(
        directory: Annotated[
            Path, typer.Option("-o", "--output", help="Where to write captures and the report.")
        ] = DIRECTORY,
        no_gui: Annotated[bool, typer.Option("--no-gui", help="Do not open the window afterwards.")] = False,
        as_json: JsonFlag = False,
        quiet: QuietFlag = False,
        verbose: VerboseFlag = False,
    ) -> int:
        """Simulate a job that slows down, say why, switch on what cures it, rerun and compare; then open the window.

        Example: cannscope demo -o demo --no-gui
        """
        output = Output(as_json, quiet, verbose)
        scenario = demo_scenario()
        with output.progress() as progress:
            demonstration = run_demo(scenario, directory, progress)
        if as_json:
            with demo_scenario_file() as path:
                output.document(demo_document(demonstration, directory, run_provenance(path, scenario.seed)))
        else:
            output.stdout.print(demo_text(demonstration, directory))
        captures = demonstration.runs[0].directory
        if show_window is None or no_gui or captures is None:
            return 0
        return show_window([captures])

    return demo
