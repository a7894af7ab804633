"""What a user can do about services by menu or palette. Imports nothing heavy: commands exist before the page."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication, QFileDialog

from profiler_gui.commands.command import Command
from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.serving.toggles import SERVICE_TOGGLES
from profiler_gui.session.failure import Failure
from profiler_gui.session.scenario_reading import TRAINING, read_document
from profiler_gui.session.services import NOBODY
from profiler_gui.session.session import Session
from profiler_gui.toolkit.translations import tr

MENU = ("&Serving",)


def serving_commands(context: PaneContext) -> tuple[Command, ...]:
    """Returns the commands of services in the order of their menu."""
    session, services = context.session, context.session.services
    return (
        Command("serving.open", "&Open Service…", partial(_open, context), menu=MENU),
        Command("serving.serve", "&Serve Again", services.serve, menu=MENU, is_enabled=_is_open),
        Command("serving.cancel", "Give &Up", services.cancel, menu=MENU, is_enabled=_is_busy),
        Command("serving.close", "&Close Service", services.close_service, menu=MENU, is_enabled=_is_open),
        *(
            Command(
                f"serving.toggle_{identifier.rpartition('.')[2]}",
                title,
                partial(_switch, session, identifier),
                menu=MENU,
                group="toggles",
                is_enabled=_is_open,
                is_checked=partial(_is_on, session, identifier),
            )
            for identifier, title in SERVICE_TOGGLES.items()
        ),
        Command(
            "serving.next_late",
            "Next &Late Request",
            partial(_walk, context, 1),
            menu=MENU,
            group="late",
            is_enabled=_has_late,
        ),
        Command(
            "serving.previous_late",
            "Previous Late &Request",
            partial(_walk, context, -1),
            menu=MENU,
            group="late",
            is_enabled=_has_late,
        ),
        Command(
            "serving.sweep", "Find Latency over R&ate", services.sweep, menu=MENU, group="sweep", is_enabled=_is_open
        ),
    )


def _open(context: PaneContext) -> None:
    names = tr("Scenarios (*.toml)")
    name, _ = QFileDialog.getOpenFileName(QApplication.activeWindow(), tr("Open Service"), "", names)
    if name:
        open_service(context, Path(name))


def open_service(context: PaneContext, path: Path) -> None:
    """Opens a serving scenario and shows the page; what is wrong with the file is said."""
    fail = context.session.services.failed.emit
    document = read_document(path, fail)
    if document is None:
        return
    if document.get("kind", TRAINING) == TRAINING:
        advice = tr("run it with File → New Simulation → Open Scenario")
        fail(Failure(tr("this scenario trains, it serves no requests"), str(path), advice))
    else:
        context.session.services.open(document, path.parent)
        context.show_pane("serving")


def _switch(session: Session, identifier: str) -> None:
    session.set_toggles(session.toggles.switched(identifier, on=identifier not in session.toggles.on))


def _is_on(session: Session, identifier: str) -> bool:
    return identifier in session.toggles.on


def _walk(context: PaneContext, step: int) -> None:
    """Selects the next of the late requests, the latest first."""
    services = context.session.services
    if services.report is None:
        return
    listed = [late.request for late in services.report.jitter.listed]
    here = listed.index(services.request) if services.request in listed else (-1 if step > 0 else 0)
    services.select(listed[(here + step) % len(listed)] if listed else NOBODY)
    context.show_pane("serving")


def _is_open(session: Session) -> bool:
    return session.services.is_open


def _is_busy(session: Session) -> bool:
    return session.services.is_busy


def _has_late(session: Session) -> bool:
    report = session.services.report
    return report is not None and bool(report.jitter.listed)
