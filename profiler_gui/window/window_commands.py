"""What the frame itself can do, as commands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from profiler_gui.commands.command import Command, always, with_document
from profiler_gui.session.document import Run
from profiler_gui.session.selection import NOTHING
from profiler_gui.session.session import Session
from profiler_gui.window.actions import HELP

if TYPE_CHECKING:  # the window makes its commands and the commands call the window
    from profiler_gui.window.main_window import MainWindow

FILE, EDIT, VIEW = ("&File",), ("&Edit",), ("&View",)


def window_commands(window: MainWindow) -> tuple[Command, ...]:
    """Returns the commands of the frame, in the order of its menus."""
    return (
        *_file_commands(window),
        *_edit_commands(window),
        *_view_commands(window),
        Command("help.keys", "&Keys", window.show_keys, ("F1", "?"), menu=HELP),
        Command("help.about", "&About CannScope", window.show_about, menu=HELP),
    )


def _two_runs(session: Session) -> bool:
    return session.candidate is not None


def _file_commands(window: MainWindow) -> tuple[Command, ...]:
    session = window.context.session
    return (
        Command("file.new_simulation", "&New Simulation…", window.show_new_simulation, ("Ctrl+N",), menu=FILE),
        Command("file.open_folder", "Open F&older…", window.ask_for_folder, ("Ctrl+O",), menu=FILE),
        Command("file.open_file", "Open &File…", window.ask_for_file, ("Ctrl+Shift+O",), menu=FILE),
        Command(
            "file.open_run_b",
            "Open Folder as Run &B…",
            partial(window.ask_for_folder, Run.B),
            menu=FILE,
            group="b",
            is_enabled=with_document,
        ),
        Command(
            "file.open_file_b",
            "Open File as Run B…",
            partial(window.ask_for_file, Run.B),
            menu=FILE,
            group="b",
            is_enabled=with_document,
        ),
        Command(
            "file.exchange_runs", "E&xchange Runs", session.exchange_runs, menu=FILE, group="b", is_enabled=_two_runs
        ),
        Command(
            "file.close_run_b",
            "Close Run B",
            partial(session.close_run, Run.B),
            menu=FILE,
            group="b",
            is_enabled=_two_runs,
        ),
        Command(
            "file.export_table",
            "Export &Table as CSV…",
            window.export_table,
            ("Ctrl+E",),
            menu=FILE,
            group="out",
            is_enabled=with_document,
        ),
        Command(
            "file.save_image",
            "Save &Image of View…",
            window.save_image,
            ("Ctrl+Shift+S",),
            menu=FILE,
            group="out",
            is_enabled=with_document,
        ),
        Command(
            "file.close",
            "&Close Capture",
            window.close_capture,
            ("Ctrl+W",),
            menu=FILE,
            group="end",
            is_enabled=with_document,
        ),
        Command("file.quit", "&Quit", window.quit, ("Ctrl+Q",), menu=FILE, group="end"),
    )


def _edit_commands(window: MainWindow) -> tuple[Command, ...]:
    session = window.context.session
    return (
        Command("edit.undo", "&Undo", session.undo, ("Ctrl+Z",), menu=EDIT, is_enabled=lambda item: item.can_undo),
        Command(
            "edit.redo",
            "&Redo",
            session.redo,
            ("Ctrl+Shift+Z", "Ctrl+Y"),
            menu=EDIT,
            is_enabled=lambda item: item.can_redo,
        ),
        Command(
            "edit.find",
            "&Find…",
            window.search_bar.open,
            ("Ctrl+F", "/"),
            menu=EDIT,
            group="find",
            is_enabled=with_document,
        ),
        Command(
            "edit.next_match",
            "&Next Match",
            partial(session.go_to_match, forward=True),
            ("F3",),
            menu=EDIT,
            group="find",
            is_enabled=_has_query,
        ),
        Command(
            "edit.previous_match",
            "&Previous Match",
            partial(session.go_to_match, forward=False),
            ("Shift+F3",),
            menu=EDIT,
            group="find",
            is_enabled=_has_query,
        ),
        Command(
            "edit.clear_selection",
            "&Clear Selection",
            session.clear_selection,
            ("Esc",),
            menu=EDIT,
            group="selection",
            is_enabled=lambda item: item.selection != NOTHING,
        ),
        Command("edit.preferences", "P&references…", window.show_preferences, ("Ctrl+,",), menu=EDIT, group="end"),
    )


def _has_query(session: Session) -> bool:
    return bool(session.query.text)


def _view_commands(window: MainWindow) -> tuple[Command, ...]:
    session = window.context.session
    pages = tuple(
        Command(
            f"page.{page.id}",
            page.title,
            partial(window.show_pane, page.id),
            (page.key,) if page.key else (),
            menu=VIEW,
            is_enabled=with_document if page.needs_capture else always,
        )
        for page in window.pages
    )
    return (
        *pages,
        Command(
            "view.back",
            "&Back",
            session.back,
            ("Backspace", "Alt+Left"),
            menu=VIEW,
            group="places",
            is_enabled=lambda item: item.can_go_back,
        ),
        Command(
            "view.forward",
            "&Forward",
            session.forward,
            ("Shift+Backspace", "Alt+Right"),
            menu=VIEW,
            group="places",
            is_enabled=lambda item: item.can_go_forward,
        ),
        Command("view.palette", "&Commands…", window.show_palette, ("Ctrl+Shift+P",), menu=VIEW, group="panes"),
        Command(
            "view.find_track",
            "Find &Track…",
            window.show_track_finder,
            ("Ctrl+P",),
            menu=VIEW,
            group="panes",
            is_enabled=with_document,
        ),
        Command("view.toggle_bottom", "Show or Hide &Panels", window.toggle_docks, ("Q",), menu=VIEW, group="panes"),
        Command(
            "view.restore_layout", "Restore &Default Layout", window.restore_default_layout, menu=VIEW, group="panes"
        ),
        Command("view.full_screen", "F&ull Screen", window.toggle_full_screen, ("F11",), menu=VIEW, group="panes"),
    )
