"""The contract between the window and its panes (pages of the rail, docks).

A pane is a plain ``QWidget`` made by a factory from a ``PaneContext``. It

* reads ``context.session``, connects to its signals and calls its methods; it never writes anything else,
* runs commands of others by id: ``context.commands.run("timeline.show", session)``; adds its own in its factory's
  ``commands`` (not in its constructor: a pane is made when it is first seen),
* shows every text through ``profiler_gui.toolkit.translations.tr``, colours from ``context.theme`` (listen to
  ``theme.changed``), settings from ``context.settings`` (listen to ``settings.changed``),
* gives every control an accessible name, and never takes the focus by itself,
* copes with ``session.document`` and ``session.summary`` being None (nothing open; analyses still running),
* imports pandas, numba and ``engine.analyses`` only inside functions that need them,
* may give its dock another title, as with a number in it, by ``setWindowTitle`` on itself,
* ends its ``LatestCall`` objects on ``context.closing``.

Tables: put a ``profiler_gui.item_models`` model into a ``QTableView``; "Export Table" and "Copy" of the window find the
visible or focused view by themselves. "Save Image" paints the current page with ``QWidget.render``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from profiler_gui.commands.command import Command, CommandRegistry
from profiler_gui.session.session import Session
from profiler_gui.toolkit.settings import SettingDescriptor, SettingsStore
from profiler_gui.toolkit.theme import Theme


class PanePlace(StrEnum):
    """Where a pane stands in the default layout."""

    PAGE = "page"
    """A page of the rail."""
    BOTTOM = "bottom"
    """A dock below the pages, in tabs."""
    RIGHT = "right"
    """A dock at the right."""
    LEFT = "left"
    """A dock at the left."""


ALL_DOCKS = frozenset({PanePlace.BOTTOM, PanePlace.RIGHT})
NO_DOCKS: frozenset[PanePlace] = frozenset()


class Closing(QObject):
    """Says that the window closes: the moment to end threads."""

    requested = Signal()


@dataclass(frozen=True, slots=True)
class PaneContext:
    """What a pane gets.

    Attributes:
        session: The window's model.
        commands: Everything a user can do.
        settings: Values of settings.
        theme: Colours.
        show_pane: Brings the pane of an id to the front (``"timeline"``, ``"details"``), making it if need be.
        closing: Emits ``requested`` when the window closes.
    """

    session: Session
    commands: CommandRegistry
    settings: SettingsStore
    theme: Theme
    show_pane: Callable[[str], None]
    closing: Closing


def no_commands(context: PaneContext) -> tuple[Command, ...]:
    """For panes without commands of their own."""
    return ()


@dataclass(frozen=True, slots=True)
class PaneFactory:
    """How a pane is made.

    Attributes:
        id: ``"timeline"``, ``"operators"``; object name of its dock, scope of its commands.
        title: English, with a mnemonic; shown through ``tr``.
        place: Where it stands by default.
        create: Makes the widget, when it is first seen. Imports the pane's module here, not at the factory's module.
        commands: Commands that exist before the pane does.
        settings: Its settings.
        key: Shortcut that brings it to the front.
        docks: For a page: where docks stand beside it until the user arranges them otherwise. Every page keeps a
            layout of its own.
        needs_capture: For a page: whether it shows nothing without a capture that is open.
    """

    id: str
    title: str
    place: PanePlace
    create: Callable[[PaneContext], QWidget]
    commands: Callable[[PaneContext], tuple[Command, ...]] = no_commands
    settings: tuple[SettingDescriptor[Any], ...] = field(default=())
    key: str = ""
    docks: frozenset[PanePlace] = frozenset({PanePlace.RIGHT})
    needs_capture: bool = True
