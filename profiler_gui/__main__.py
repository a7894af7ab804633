"""The ``cannscope`` command: the engine's commands plus ``open``. Qt is imported only when a window opens."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

EXIT_NO_DISPLAY = 2
_PLATFORMS_WITHOUT_DISPLAY = ("offscreen", "minimal", "vnc")


def main() -> int:
    """Runs the command line and returns the exit code."""
    from engine.cli.app import build_cli, command_names, run

    cli = build_cli()
    cli.command(name="open")(open_window)
    return run(cli, with_command(sys.argv[1:], command_names(cli)))


def with_command(arguments: Sequence[str], commands: frozenset[str]) -> list[str]:
    """Returns the arguments with ``open`` put before paths: a first argument that is no command is a path."""
    if arguments and (arguments[0] in commands or arguments[0] in ("--help", "-h")):
        return list(arguments)
    return ["open", *arguments]


def open_window(
    paths: Annotated[list[Path] | None, typer.Argument(help="Captures to open; none opens an empty window.")] = None,
) -> int:
    """Open the window, on captures if any are given.

    Example: cannscope open run/rank_0_ascend_pt
    """
    if not has_display(os.environ, sys.platform):
        sys.stderr.write(
            "cannscope: there is no display to open a window on; for the report in the terminal run: "
            "cannscope analyze PATH\n"
        )
        return EXIT_NO_DISPLAY
    from profiler_gui.app import run_window

    return run_window(tuple(paths or ()))


def has_display(environment: Mapping[str, str], platform: str) -> bool:
    """Returns whether a window can open: always but on a Unix without X11, Wayland or an explicit Qt platform."""
    if platform in ("win32", "darwin"):
        return True
    if environment.get("QT_QPA_PLATFORM", "").partition(":")[0] in _PLATFORMS_WITHOUT_DISPLAY:
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    sys.exit(main())
