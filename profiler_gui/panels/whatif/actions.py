"""What a user can do about reruns by key, menu or palette. Imports nothing heavy: commands exist before the page."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtGui import QGuiApplication

from profiler_gui.commands.command import Command
from profiler_gui.commands.panes import PaneContext
from profiler_gui.session.document import Run
from profiler_gui.session.session import Session
from profiler_gui.toolkit.translations import tr

SCOPE = "whatif"
MENU = ("What-&if",)


def whatif_commands(context: PaneContext) -> tuple[Command, ...]:
    """Returns the commands of reruns in the order of their menu."""
    session, reruns = context.session, context.session.reruns

    def clear() -> None:
        session.set_toggles(replace(session.toggles, on=frozenset()))

    def copy_switches() -> None:
        QGuiApplication.clipboard().setText(switches_text(session))

    def open_candidate() -> None:
        timeline = reruns.compared[1].timeline
        if timeline is not None:
            session.show(timeline, Run.B)

    return (
        Command("whatif.rerun", "&Rerun", reruns.rerun, ("Ctrl+R",), menu=MENU, is_enabled=_has_toggles),
        Command("whatif.cancel", "&Give Up the Rerun", reruns.cancel, menu=MENU, is_enabled=_is_busy),
        Command("whatif.clear", "Switch Everything &Off", clear, menu=MENU, is_enabled=_has_toggles),
        Command(
            "whatif.copy_switches",
            "&Copy the Switches",
            copy_switches,
            menu=MENU,
            group="out",
            is_enabled=_has_toggles,
        ),
        Command(
            "whatif.open_candidate",
            "Open What It &Gives as Run B",
            open_candidate,
            menu=MENU,
            group="out",
            is_enabled=_has_candidate,
        ),
        Command(
            "whatif.keep",
            "&Keep the Prediction…",
            partial(_keep, context),
            menu=MENU,
            group="later",
            is_enabled=_has_toggles,
        ),
        Command(
            "whatif.score",
            "&What Became of a Prediction…",
            partial(_score, context),
            menu=MENU,
            group="later",
            is_enabled=_is_open,
        ),
        Command(
            "whatif.blink",
            "&Blink A and B",
            reruns.blink,
            ("T",),
            menu=MENU,
            group="view",
            is_enabled=_has_candidate,
            scope=SCOPE,
        ),
        Command(
            "whatif.both",
            "Show A &and B",
            reruns.show_both,
            ("Shift+T",),
            menu=MENU,
            group="view",
            is_enabled=_has_candidate,
            scope=SCOPE,
        ),
    )


def switches_text(session: Session) -> str:
    """Returns the real switches of what is on, as far as the job can have them, below the name of what they do."""
    from engine.optimizations.catalogue import optimization_registry
    from engine.optimizations.fitting import fitting

    lines: list[str] = []
    platform = session.reruns.platform
    for item in optimization_registry():  # some dozens
        if item.id in session.toggles.on:
            lines.append(f"# {item.title}")
            switches = item.switches if platform is None else fitting(item.switches, platform)
            lines += [switch.switch for switch in switches] or [
                "# no public switch for this job's devices and framework"
            ]
    return "\n".join(lines)


def _keep(context: PaneContext) -> None:
    from PySide6.QtWidgets import QApplication, QFileDialog

    parent = QApplication.activeWindow()
    name = QFileDialog.getExistingDirectory(parent, tr("Folder for both captures and the prediction"))
    if name:
        context.session.reruns.keep_prediction(Path(name))


def _score(context: PaneContext) -> None:
    from PySide6.QtWidgets import QApplication, QFileDialog

    parent = QApplication.activeWindow()
    title = tr("Prediction to be scored by the capture that is open")
    name, _ = QFileDialog.getOpenFileName(parent, title, "", "JSON (*.json)")
    if name:
        context.session.reruns.score(Path(name))


def _is_open(session: Session) -> bool:
    return session.reruns.place is not None


def _has_toggles(session: Session) -> bool:
    return bool(session.toggles.on) and session.reruns.place is not None


def _is_busy(session: Session) -> bool:
    return session.reruns.is_busy


def _has_candidate(session: Session) -> bool:
    return session.reruns.compared[1].timeline is not None
