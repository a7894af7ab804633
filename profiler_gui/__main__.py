"""The ``cannscope`` command: the engine's commands plus ``open``. Qt is imported only when a window opens."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

OPEN = "open"
EXIT_NO_DISPLAY = 2
_PLATFORMS_WITHOUT_DISPLAY = ("offscreen", "minimal", "vnc")


def main() -> int:
    """Runs the command line and returns the exit code."""
    arguments = sys.argv[1:]
    if not arguments or not may_be_command(arguments[0]):
        return open_window([Path(argument) for argument in arguments])
    return _run_command(arguments)


def may_be_command(argument: str) -> bool:
    """Returns False only for what is certainly a path.

    Importing the commands takes longer than the first paint may; each of them is one module of ``engine.cli``, so
    looking for that module answers without importing it.
    """
    if argument.startswith("-") or argument == OPEN:
        return True
    return argument.isidentifier() and find_spec(f"engine.cli.{argument}") is not None


def _run_command(arguments: Sequence[str]) -> int:
    from typing import Annotated

    import typer

    from engine.cli.app import build_cli, command_names, run

    cli = build_cli(open_window)

    @cli.command(name=OPEN)
    def open_paths(
        paths: Annotated[list[Path] | None, typer.Argument(help="Captures; none opens an empty window.")] = None,
    ) -> int:
        """Open the window, on captures if any are given.

        Example: cannscope open run/rank_0_ascend_pt
        """
        return open_window(paths or [])

    if arguments[0] in command_names(cli) or arguments[0].startswith("-"):
        return run(cli, arguments)
    return open_window([Path(argument) for argument in arguments])


def open_window(paths: Sequence[Path]) -> int:
    """Opens the window and returns the exit code when it is closed; says so in one line where there is no display."""
    if not has_display(os.environ, sys.platform):
        sys.stderr.write(
            "cannscope: there is no display to open a window on; for the report in the terminal run: "
            "cannscope analyze PATH\n"
        )
        return EXIT_NO_DISPLAY
    from profiler_gui.app import run_window

    return run_window(paths)


def has_display(environment: Mapping[str, str], platform: str) -> bool:
    """Returns whether a window can open: always but on a Unix without X11, Wayland or an explicit Qt platform."""
    if platform in ("win32", "darwin"):
        return True
    if environment.get("QT_QPA_PLATFORM", "").partition(":")[0] in _PLATFORMS_WITHOUT_DISPLAY:
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    sys.exit(main())
