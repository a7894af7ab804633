"""The docks: where they stand at first, and how the layout is kept."""

import zlib
from collections.abc import Iterable, Iterator

from PySide6.QtCore import QByteArray, Qt, QTimer
from PySide6.QtWidgets import QMainWindow, QTabBar, QTabWidget

from profiler_gui.commands.panes import NO_DOCKS, PaneContext, PaneFactory, PanePlace
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.window.actions import Actions
from profiler_gui.window.panes import PaneDock, PaneHost

BOTTOM_HEIGHT_PX = 260
RIGHT_WIDTH_PX = 340
LEFT_WIDTH_PX = 380
_AREAS = {
    PanePlace.BOTTOM: Qt.DockWidgetArea.BottomDockWidgetArea,
    PanePlace.RIGHT: Qt.DockWidgetArea.RightDockWidgetArea,
    PanePlace.LEFT: Qt.DockWidgetArea.LeftDockWidgetArea,
}
_SIZES_PX = {
    Qt.DockWidgetArea.BottomDockWidgetArea: BOTTOM_HEIGHT_PX,
    Qt.DockWidgetArea.RightDockWidgetArea: RIGHT_WIDTH_PX,
    Qt.DockWidgetArea.LeftDockWidgetArea: LEFT_WIDTH_PX,
}


class Docks:
    """All docks of a window.

    Args:
        window: Where they stand.
        factories: Make their panes.
        context: What the panes get.
        actions: For the keys of their commands.
    """

    def __init__(
        self, window: QMainWindow, factories: tuple[PaneFactory, ...], context: PaneContext, actions: Actions
    ) -> None:
        self._window = window
        self._docks = {factory.id: PaneDock(PaneHost(factory, context, actions), window) for factory in factories}
        # A layout kept by a release with other docks is not applied to these.
        self._layout_version = zlib.crc32(",".join(self._docks).encode()) & 0x7FFF_FFFF
        self._hidden: list[PaneDock] = []
        self._page: PaneFactory | None = None
        self._layouts: dict[str, QByteArray] = {}
        window.setAnimated(False)  # docks come and go with the page
        window.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        window.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
        window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        self.arrange()

    def __iter__(self) -> Iterator[PaneDock]:
        return iter(self._docks.values())

    def __getitem__(self, pane: str) -> PaneDock:
        return self._docks[pane]

    def show_beside(self, page: PaneFactory | None) -> None:
        """Shows the layout of a page as it was left, or as it is at first; None (the welcome page) has no docks."""
        if page is self._page:
            return
        self._keep()
        self._page = page
        self._hidden = []
        state = self._layouts.get(page.id) if page else None
        self._take_out()
        if state is None or not self._window.restoreState(state, self._layout_version):
            self.arrange()
        QTimer.singleShot(0, self._window, self._hide_stale_tabs)  # once Qt has laid out what is there now

    def arrange(self) -> None:
        """Puts the docks where they stand at first beside this page: each area one stack of tabs, the first on top."""
        places = self._page.docks if self._page else NO_DOCKS
        first: dict[Qt.DockWidgetArea, PaneDock] = {}
        self._take_out()
        for dock in self:
            area = _AREAS[dock.host.factory.place]
            self._window.addDockWidget(area, dock)
            if area in first:
                self._window.tabifyDockWidget(first[area], dock)
            first.setdefault(area, dock)
        for dock in self:
            dock.setVisible(dock.host.factory.place in places)
        for area, dock in first.items():
            self._raise_first(area, dock)
        self._hidden = []

    def _hide_stale_tabs(self) -> None:
        """Hides tabs that Qt has left behind, as it does of a group whose docks went with their page."""
        groups = set()
        for dock in self:
            if not dock.isHidden():
                beside = (item for item in self._window.tabifiedDockWidgets(dock) if not item.isHidden())
                groups.add(frozenset((dock.windowTitle(), *(item.windowTitle() for item in beside))))
        bars = self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        for bar in reversed(bars):  # the newest of a group is the one in use
            titles = frozenset(bar.tabText(index) for index in range(bar.count()))
            if bar.isVisible() and titles in groups:
                groups.remove(titles)
            elif bar.count():
                bar.hide()

    def _take_out(self) -> None:
        """Takes every dock out of the window."""
        for dock in self:
            dock.setFloating(False)
            self._window.removeDockWidget(dock)

    def _raise_first(self, area: Qt.DockWidgetArea, dock: PaneDock) -> None:
        dock.raise_()
        is_bottom = area is Qt.DockWidgetArea.BottomDockWidgetArea
        direction = Qt.Orientation.Vertical if is_bottom else Qt.Orientation.Horizontal
        self._window.resizeDocks([dock], [_SIZES_PX[area]], direction)

    def show(self, pane: str) -> None:
        """Brings a dock to the front; does nothing where there is none of that id."""
        dock = self._docks.get(pane)
        if dock is None:
            return
        dock.show()
        dock.raise_()
        dock.allow_making()

    def allow_making(self) -> None:
        """Says that a capture is open: docks in view make their panes."""
        for dock in self:
            dock.allow_making()

    def toggle(self) -> None:
        """Hides the docks in view; shows them again the next time."""
        shown = [dock for dock in self if not dock.isHidden()]
        if shown:
            self._hidden = shown
            for dock in shown:
                dock.hide()
        else:
            for dock in self._hidden or self:
                dock.show()

    def save(self, settings: SettingsStore) -> None:
        """Keeps the layouts of all pages."""
        self._keep()
        for page, state in self._layouts.items():
            settings.save_state(f"docks/{page}", state)

    def restore(self, settings: SettingsStore, pages: Iterable[str]) -> None:
        """Brings the kept layouts back; a page without one is arranged as at first."""
        for page in pages:
            state = settings.state(f"docks/{page}")
            if not state.isEmpty():
                self._layouts[page] = state

    def _keep(self) -> None:
        if self._page is not None:
            self._layouts[self._page.id] = self._window.saveState(self._layout_version)
