"""Opening whatever the user names: captures, scenarios of services, histories of benchmarks."""

from __future__ import annotations

from pathlib import Path

from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.serving.actions import open_service
from profiler_gui.session.document import Run

HISTORIES = (".sqlite", ".sqlite3")
"""Endings of histories of benchmarks; ``.db`` is what profilers write."""


def open_paths(context: PaneContext, paths: tuple[Path, ...], run: Run = Run.A) -> None:
    """Opens paths as what they are by their endings; whatever has no other meaning is a capture.

    Args:
        context: Of the window.
        paths: Files and directories.
        run: What a capture is opened as.
    """
    ending = paths[0].suffix.lower() if len(paths) == 1 and not paths[0].is_dir() else ""
    if ending == ".toml":
        open_service(context, paths[0])
    elif ending in HISTORIES:
        context.session.benchmarks.open(paths[0])
        context.show_pane("history")
    else:
        context.session.open(paths, run)
