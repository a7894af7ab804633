"""The window."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QLineEdit, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from engine.core.errors import EngineError
from profiler_gui.commands.command import CommandRegistry, KeyPreset
from profiler_gui.commands.panes import Closing, PaneContext, PaneFactory, PanePlace
from profiler_gui.item_models.export import write_csv
from profiler_gui.session.document import Run
from profiler_gui.session.failure import Failure, failure_of
from profiler_gui.session.selection import TrackSelection
from profiler_gui.session.session import Session
from profiler_gui.toolkit.preferences import KEY_PRESET, THEME
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.toolkit.theme import Theme, ThemeMode
from profiler_gui.toolkit.translations import tr
from profiler_gui.window.actions import Actions
from profiler_gui.window.docks import Docks
from profiler_gui.window.file_dialogs import files_to_open, folder_to_open, image_file, table_file, table_in_view
from profiler_gui.window.fixed_bar import FixedBar
from profiler_gui.window.header import Header
from profiler_gui.window.images import save_image
from profiler_gui.window.kept_annotations import KeptAnnotations
from profiler_gui.window.list_keys import belongs_to_list
from profiler_gui.window.messages import TextReport, about_box, show_failure
from profiler_gui.window.open_paths import open_paths
from profiler_gui.window.palette import CommandPalette, TrackFinder
from profiler_gui.window.panes import PaneHost
from profiler_gui.window.preferences_dialog import Preferences
from profiler_gui.window.rail import Rail
from profiler_gui.window.recent_menu import RecentMenu
from profiler_gui.window.search_bar import SearchBar
from profiler_gui.window.shortcuts_help import ShortcutsHelp
from profiler_gui.window.status import StatusBar
from profiler_gui.window.welcome import Welcome
from profiler_gui.window.window_commands import VIEW, window_commands

DEFAULT_SIZE_PX = (1440, 900)


class MainWindow(QMainWindow):
    """Rail, header, pages, docks and everything a user can do.

    Args:
        session: The model.
        settings: Values of settings.
        theme: Colours.
        factories: The panes; the window works without any.
    """

    def __init__(
        self, session: Session, settings: SettingsStore, theme: Theme, factories: tuple[PaneFactory, ...]
    ) -> None:
        super().__init__()
        self.commands = CommandRegistry()
        self.closing = Closing(self)
        self.context = PaneContext(session, self.commands, settings, theme, self.show_pane, self.closing)
        self.pages = tuple(item for item in factories if item.place is PanePlace.PAGE)
        KeptAnnotations(session, settings, self)
        self.search_bar = SearchBar(session, settings)
        self.search_bar.hide()
        self.commands.add(*window_commands(self))
        for factory in factories:
            self.commands.add(*factory.commands(self.context))
        self.actions_of_commands = Actions(self, self.commands, session, KeyPreset(settings.value(KEY_PRESET)))
        self._page_hosts = {page.id: PaneHost(page, self.context, None) for page in self.pages}
        self._free_pages = frozenset(page.id for page in self.pages if not page.needs_capture)
        self._page = ""
        self.welcome = Welcome(self.ask_for_file, self.ask_for_folder, self.show_new_simulation, settings)
        self.rail = Rail(self.pages)
        self.stack = QStackedWidget()
        self._lay_out(session)
        docked = tuple(item for item in factories if item.place is not PanePlace.PAGE)
        self.docks = Docks(self, docked, self.context, self.actions_of_commands)
        self._fill_menus(settings)
        self._connect(session, settings)
        self.resize(QSize(*DEFAULT_SIZE_PX).boundedTo(self.screen().availableSize()))
        self.restoreGeometry(settings.state("geometry"))
        self.docks.restore(settings, self._page_hosts)
        self._show_document()

    # What commands call

    def ask_for_file(self, run: Run = Run.A) -> None:
        """Asks for files and opens them."""
        paths = files_to_open(self, self._last_directory())
        if paths:
            open_paths(self.context, paths, run)

    def ask_for_folder(self, run: Run = Run.A) -> None:
        """Asks for a profiler directory, or a directory of ranks, and opens it."""
        path = folder_to_open(self, self._last_directory())
        if path is not None:
            self.context.session.open((path,), run)

    def export_table(self) -> None:
        """Asks where to and writes the table in view as CSV."""
        view = table_in_view(self)
        if view is None or view.table is None:
            self.show_failure(Failure(tr("no table is in view"), advice=tr("click into a table first")))
            return
        table, path = view.table, table_file(self, view)
        if path is not None:
            self.attempt(lambda: write_csv(table, path))

    def save_image(self) -> None:
        """Asks where to and writes a picture of the page in view."""
        path = image_file(self, self._page)
        if path is not None:
            page = self.stack.currentWidget() or self
            self.attempt(lambda: save_image(page, path))

    def close_capture(self) -> None:
        """Closes both runs."""
        self.context.session.close_run(Run.B)
        self.context.session.close_run(Run.A)

    def show_pane(self, pane: str) -> None:
        """Brings a page or dock to the front."""
        if pane in self._page_hosts:
            self._show_page(pane)
        else:
            self.docks.show(pane)

    def show_palette(self) -> None:
        """Shows the command palette."""
        session = self.context.session
        palette = CommandPalette(self.commands, session, self._preset(), self)
        palette.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        palette.chosen.connect(lambda command: self.commands.run(command, session))
        palette.open()

    def show_track_finder(self) -> None:
        """Asks for a track by its name, selects it and shows it on the timeline."""
        session = self.context.session
        finder = TrackFinder(session, self)
        finder.chosen.connect(lambda track: session.select(TrackSelection(session.rank, track)))
        finder.chosen.connect(lambda _: self.show_pane("timeline"))
        self._open(finder)

    def show_keys(self) -> None:
        """Shows the list of keys."""
        self._open(ShortcutsHelp(self.commands, self._preset(), self))

    def show_about(self) -> None:
        """Says what the program is."""
        self._open(about_box(self))

    def show_new_simulation(self) -> None:
        """Shows the form of a run to be simulated."""
        self.context.session.finish_imports()
        from profiler_gui.window.simulation.dialog import NewSimulation

        self._open(NewSimulation(self.context, self))

    def show_preferences(self) -> None:
        """Shows the preferences."""
        self._open(Preferences(self.context.settings, self))

    def toggle_docks(self) -> None:
        """Hides the docks, or shows those that were hidden so."""
        self.docks.toggle()

    def restore_default_layout(self) -> None:
        """Puts every dock where it stood at first."""
        self.docks.arrange()

    def toggle_full_screen(self) -> None:
        """Fills the screen, or no longer."""
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    def quit(self) -> None:
        """Closes the window, which ends the program."""
        self.close()

    def show_failure(self, failure: Failure) -> None:
        """Shows what went wrong."""
        show_failure(failure, self)

    def attempt(self, action: Callable[[], object]) -> None:
        """Runs ``action`` and shows an error of the engine as a message."""
        try:
            action()
        except EngineError as error:
            self.show_failure(failure_of(error))

    @property
    def page(self) -> str:
        """The id of the page in view; "" while the welcome page is."""
        return self._page

    # Inside

    def _lay_out(self, session: Session) -> None:
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.stack.addWidget(self.welcome)
        for host in self._page_hosts.values():
            self.stack.addWidget(host)
        center = QWidget()
        layout = QVBoxLayout(center)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.search_bar)
        layout.addWidget(self.stack, 1)
        self.setCentralWidget(center)
        self.header = Header(session)
        for area, name, widget in (
            (Qt.ToolBarArea.TopToolBarArea, tr("Header"), self.header),
            (Qt.ToolBarArea.LeftToolBarArea, tr("Pages"), self.rail),
        ):
            self.addToolBar(area, FixedBar(name, widget))
        status = StatusBar(session, self.context.settings)
        status.diagnostics_wanted.connect(lambda: self.show_pane("diagnostics"))
        self.setStatusBar(status)

    def _fill_menus(self, settings: SettingsStore) -> None:
        menus = self.actions_of_commands.fill(self.menuBar())
        menus[VIEW].addSeparator()
        for dock in self.docks:
            menus[VIEW].addAction(dock.toggleViewAction())
        recent = RecentMenu(settings, self)
        recent.chosen.connect(self.context.session.open)
        menus[("&File",)].insertMenu(self.actions_of_commands["file.open_run_b"], recent)

    def _connect(self, session: Session, settings: SettingsStore) -> None:
        self.rail.chosen.connect(self._show_page)
        self.welcome.recent_chosen.connect(session.open)
        self.search_bar.palette_wanted.connect(self.show_palette)
        session.document_changed.connect(self._show_document)
        session.failed.connect(self.show_failure)
        session.reruns.failed.connect(self.show_failure)
        session.services.failed.connect(self.show_failure)
        session.benchmarks.failed.connect(self.show_failure)
        session.reruns.scored.connect(self._show_score)
        settings.changed.connect(self._apply_setting)

    def _show_document(self) -> None:
        document, candidate = self.context.session.document, self.context.session.candidate
        self.rail.set_usable(document is not None)
        if document is None and self._page in self._free_pages:
            self.setWindowTitle(tr("CannScope"))
            self.actions_of_commands.update_states()
            return
        if document is None:
            self._page = ""
            self.stack.setCurrentWidget(self.welcome)
            self.docks.show_beside(None)
            self.setWindowTitle(tr("CannScope"))
            self.actions_of_commands.update_states()
            return
        names = f"{document.label} ↔ {candidate.label}" if candidate else document.label
        if document.is_simulated:
            self.setWindowTitle(tr("{capture} (simulated) – CannScope", capture=names))
        else:
            self.setWindowTitle(tr("{capture} – CannScope", capture=names))
        self.context.settings.add_recent(document.paths)
        self.docks.allow_making()
        if self.pages:
            self._show_page(self._page or self.pages[0].id)

    def _show_page(self, page: str) -> None:
        host = self._page_hosts[page]
        self._page = page
        self.rail.show_page(page)
        host.make()
        self.stack.setCurrentWidget(host)
        if isinstance(self.focusWidget(), QLineEdit) and host.isAncestorOf(self.focusWidget()):
            # Qt handed the focus on when the page before was hidden; in a filter it would swallow keys of commands.
            host.setFocus(Qt.FocusReason.OtherFocusReason)
        self.docks.show_beside(host.factory)
        self.actions_of_commands.set_page(page, frozenset(self._page_hosts))

    def _apply_setting(self, setting: str) -> None:
        settings = self.context.settings
        if setting == THEME.id:
            self.context.theme.apply(ThemeMode(settings.value(THEME)))
        elif setting == KEY_PRESET.id:
            self.actions_of_commands.set_preset(self._preset())

    def _show_score(self, text: str) -> None:
        self._open(TextReport(tr("What became of the prediction"), text, self))

    def _preset(self) -> KeyPreset:
        return KeyPreset(self.context.settings.value(KEY_PRESET))

    def _last_directory(self) -> str:
        recent = self.context.settings.recent
        return str(recent[0][0].parent) if recent else ""

    def _open(self, dialog: QWidget) -> None:
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()  # type: ignore[attr-defined]  # every QDialog has it

    # Qt

    def event(self, event: QEvent) -> bool:
        """Qt: leaves the keys that move around in lists, tables and boxes to these, whatever else they are used for."""
        if belongs_to_list(event, self.focusWidget()):
            event.accept()
            return True
        return super().event(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Qt: takes files and folders."""
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Qt: opens what was dropped."""
        paths = tuple(Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile())
        if paths:
            event.acceptProposedAction()
            open_paths(self.context, paths)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Qt: keeps the layout and ends what runs."""
        self.context.settings.save_state("geometry", self.saveGeometry())
        self.docks.save(self.context.settings)
        for host in (*self._page_hosts.values(), *(dock.host for dock in self.docks)):
            host.save_tables()
        self.context.settings.sync()
        self.closing.requested.emit()
        self.context.session.close()
        super().closeEvent(event)
