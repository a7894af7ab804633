"""What can be done with what is under the pointer: commands of the timeline, and copying."""

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from engine.trace import Trace
from profiler_gui.commands.panes import PaneContext
from profiler_gui.session.selection import EventSelection, Selection
from profiler_gui.timeline.actions import SCOPE
from profiler_gui.toolkit.translations import tr

_GROUPS = (
    ("zoom_to_selection", "range_of_selection", "mark", "count_from_selection"),
    ("next_event", "previous_event", "next_flow", "previous_flow"),
    ("pin", "fold", "hide_track"),
)


def canvas_menu(parent: QWidget, context: PaneContext) -> QMenu:
    """Returns the context menu of the canvas for what is selected; what cannot be done now is greyed out."""
    menu = QMenu(parent)
    menu.setAccessibleName(tr("Timeline"))
    for group in _GROUPS:
        for name in group:
            _add_command(menu, context, f"{SCOPE}.{name}")
        menu.addSeparator()
    copy = menu.addAction(tr("Copy Name and Times"))
    copy.setEnabled(bool(copy_text(context.session.trace, context.session.selection)))
    copy.triggered.connect(lambda: copy_selection(context))
    return menu


def copy_selection(context: PaneContext) -> None:
    """Puts the selected event, or the selected stretch of time, on the clipboard."""
    text = copy_text(context.session.trace, context.session.selection)
    if not text:
        span = context.session.selected_time_range
        text = f"{span[0]}\t{span[1] - span[0]}" if span is not None else ""
    if text:
        QGuiApplication.clipboard().setText(text)


def copy_text(trace: Trace | None, selection: Selection) -> str:
    """Returns name, start and duration of a selected event, the times as plain ns, separated by tabs; else ""."""
    if trace is None or not isinstance(selection, EventSelection):
        return ""
    events, event = trace.events, selection.event
    return f"{trace.name(event)}\t{int(events.start_ns[event])}\t{int(events.duration_ns[event])}"


def _add_command(menu: QMenu, context: PaneContext, command_id: str) -> None:
    if command_id not in context.commands:
        return
    command = context.commands[command_id]
    action = menu.addAction(tr(command.title))
    action.setEnabled(command.is_enabled(context.session))
    action.triggered.connect(lambda: context.commands.run(command_id, context.session))
