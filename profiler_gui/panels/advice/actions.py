"""What a user can do about recommendations by menu or palette. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from profiler_gui.commands.command import Command
from profiler_gui.commands.panes import PaneContext
from profiler_gui.session.session import Session
from profiler_gui.toolkit.translations import tr

MENU = ("What-&if",)
KINDS = "HTML (*.html);;Markdown (*.md);;JSON (*.json);;CSV (*.csv);;XLSX (*.xlsx)"


def advice_commands(context: PaneContext) -> tuple[Command, ...]:
    """Returns the commands of recommendations in the order of their menu."""
    reruns = context.session.reruns

    def export() -> None:
        from PySide6.QtWidgets import QApplication, QFileDialog

        parent = QApplication.activeWindow()
        name, kind = QFileDialog.getSaveFileName(parent, tr("Export Recommendations"), "advice.html", KINDS)
        if name:
            path = Path(name)
            reruns.report(path if path.suffix else path.with_suffix(kind.partition("*")[2].rstrip(")")))

    return (
        Command(
            "advice.look", "&Look for Recommendations", reruns.advise, menu=MENU, group="advice", is_enabled=_is_free
        ),
        Command("advice.export", "&Export Recommendations…", export, menu=MENU, group="advice", is_enabled=_has_advice),
        Command("whatif.tune", "T&une", reruns.tune, menu=MENU, group="advice", is_enabled=_is_free),
    )


def _is_free(session: Session) -> bool:
    return session.reruns.place is not None and not session.reruns.is_busy


def _has_advice(session: Session) -> bool:
    return session.reruns.advice is not None and not session.reruns.is_busy
