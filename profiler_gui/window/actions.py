"""QActions, menus and shortcuts made from commands."""

from functools import partial

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar, QWidget

from profiler_gui.commands.command import Command, CommandRegistry, KeyPreset
from profiler_gui.session.session import Session
from profiler_gui.toolkit.translations import tr

HELP = ("&Help",)


class Actions(QObject):
    """One QAction per command, kept in step with what is enabled and checked.

    Args:
        window: Where window-wide keys work.
        commands: All commands.
        session: What predicates look at.
        preset: Whose keys.
    """

    def __init__(self, window: QWidget, commands: CommandRegistry, session: Session, preset: KeyPreset) -> None:
        super().__init__(window)
        self._window = window
        self._session = session
        self._page = ""
        self._page_scopes: frozenset[str] = frozenset()
        self._actions: dict[str, tuple[Command, QAction]] = {}
        for command in commands:
            self._add(command)
        self.set_preset(preset)
        for signal in (
            session.document_changed,
            session.summary_changed,
            session.selection_changed,
            session.viewport_changed,
            session.annotations_changed,
            session.search_changed,
            session.busy_changed,
            session.toggles_changed,
            session.reruns.runs_changed,
            session.reruns.advised,
            session.reruns.busy_changed,
        ):
            signal.connect(self.update_states)

    def __getitem__(self, command_id: str) -> QAction:
        return self._actions[command_id][1]

    def set_preset(self, preset: KeyPreset) -> None:
        """Gives every action the keys of a preset."""
        for command, action in self._actions.values():
            action.setShortcuts([QKeySequence(key) for key in command.keys_of(preset)])
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            title = tr(command.title).replace("&", "")
            action.setToolTip(f"{title} ({keys})" if keys else title)

    def set_page(self, page: str, page_scopes: frozenset[str]) -> None:
        """Makes the keys of one page work in the whole window, and those of the other pages nowhere.

        Args:
            page: Id of the pane in view.
            page_scopes: Ids of all pages; commands of other scopes belong to docks.
        """
        self._page, self._page_scopes = page, page_scopes
        self.update_states()

    def attach(self, scope: str, widget: QWidget) -> None:
        """Makes the keys of a dock's commands work inside ``widget``."""
        for command, action in self._actions.values():
            if command.scope == scope:
                action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
                self._window.removeAction(action)
                widget.addAction(action)

    def update_states(self) -> None:
        """Asks every command whether it can run and whether it is on."""
        for command, action in self._actions.values():
            elsewhere = command.scope in self._page_scopes and command.scope != self._page
            action.setEnabled(not elsewhere and command.is_enabled(self._session))
            if command.is_checked is not None:
                action.setChecked(command.is_checked())

    def fill(self, menu_bar: QMenuBar) -> dict[tuple[str, ...], QMenu]:
        """Puts the actions into menus, Help last; returns the menus by path, for what is filled in as it is opened."""
        menus: dict[tuple[str, ...], QMenu] = {}
        groups: dict[tuple[str, ...], str] = {}
        for command, action in sorted(self._actions.values(), key=lambda pair: pair[0].menu[:1] == HELP):
            path = command.menu
            if not path:
                continue
            for depth in range(1, len(path) + 1):
                part = path[:depth]
                if part not in menus:
                    parent: QMenuBar | QMenu = menus[part[:-1]] if depth > 1 else menu_bar
                    menus[part] = parent.addMenu(tr(part[-1]))
                    menus[part].setToolTipsVisible(True)
            if groups.setdefault(path, command.group) != command.group:
                menus[path].addSeparator()
                groups[path] = command.group
            menus[path].addAction(action)
        return menus

    def _add(self, command: Command) -> None:
        action = QAction(tr(command.title), self)
        action.setObjectName(command.id)
        action.setCheckable(command.is_checked is not None)
        action.triggered.connect(partial(self._run, command))
        self._window.addAction(action)
        self._actions[command.id] = (command, action)

    def _run(self, command: Command, _: bool = False) -> None:
        if command.is_enabled(self._session):
            command.run()
        self.update_states()
