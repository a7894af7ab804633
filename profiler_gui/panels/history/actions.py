"""What a user can do about benchmarks by menu or palette. Imports nothing heavy: commands exist before the page."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication, QFileDialog

from profiler_gui.commands.command import Command
from profiler_gui.commands.panes import PaneContext
from profiler_gui.session.session import Session
from profiler_gui.toolkit.translations import tr

MENU = ("&File",)


def history_commands(context: PaneContext) -> tuple[Command, ...]:
    """Returns the commands of benchmarks in the order of their menu."""
    return (
        Command("history.open", "Open &History of Benchmarks…", partial(_open, context), menu=MENU, group="history"),
        Command(
            "history.reload",
            "Read the History A&gain",
            context.session.benchmarks.reload,
            menu=MENU,
            group="history",
            is_enabled=_is_open,
        ),
    )


def _open(context: PaneContext) -> None:
    kinds = tr("Histories (*.sqlite *.sqlite3 *.db);;All files (*)")
    start = str(context.session.benchmarks.path or "")
    name, _ = QFileDialog.getOpenFileName(QApplication.activeWindow(), tr("Open History"), start, kinds)
    if name:
        context.session.benchmarks.open(Path(name))
        context.show_pane("history")


def _is_open(session: Session) -> bool:
    return session.benchmarks.path is not None
