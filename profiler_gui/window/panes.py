"""Panes that are made when they are first seen."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDockWidget, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext, PaneFactory
from profiler_gui.item_models.table_view import TableView
from profiler_gui.toolkit.translations import tr
from profiler_gui.window.actions import Actions


class PaneHost(QWidget):
    """Holds the place of a pane until it is made.

    Args:
        factory: Makes the pane.
        context: What the pane gets.
        actions: Receives the pane's widget for the keys of its commands; None for pages, whose keys work everywhere.

    Signals:
        titled: The pane has given itself a title (``setWindowTitle``), as with a number in it.
    """

    titled = Signal(str)

    def __init__(self, factory: PaneFactory, context: PaneContext, actions: Actions | None) -> None:
        super().__init__()
        self.factory = factory
        self.pane: QWidget | None = None
        self._context = context
        self._actions = actions
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    def make(self) -> QWidget:
        """Returns the pane, making it at the first call."""
        if self.pane is None:
            self._context.session.finish_imports()
            self.pane = self.factory.create(self._context)
            self.setFocusProxy(self.pane)
            self._layout.addWidget(self.pane)
            self.pane.windowTitleChanged.connect(self.titled)
            if self.pane.windowTitle():
                self.titled.emit(self.pane.windowTitle())
            for view in self.pane.findChildren(TableView):
                view.restore_layout(self._context.settings.text_state(_table_key(view)))
            if self._actions is not None:
                self._actions.attach(self.factory.id, self.pane)
        return self.pane

    def save_tables(self) -> None:
        """Keeps the columns of the pane's tables."""
        for view in self.pane.findChildren(TableView) if self.pane else ():
            self._context.settings.save_text_state(_table_key(view), view.layout_text)


def _table_key(view: TableView) -> str:
    return f"table/{view.accessibleName()}"


class PaneDock(QDockWidget):
    """A dock that makes its pane when it becomes visible and a capture is open."""

    def __init__(self, host: PaneHost, parent: QWidget) -> None:
        title = tr(host.factory.title).replace("&", "")
        super().__init__(title, parent)
        self.setObjectName(host.factory.id)
        self.setAccessibleName(title)
        self.host = host
        self._may_make = False
        self.setWidget(host)
        host.titled.connect(self.setWindowTitle)
        self.visibilityChanged.connect(lambda _: self._make_if_seen())

    def allow_making(self) -> None:
        """Says that a capture is open, so there is something to show."""
        self._may_make = True
        self._make_if_seen()

    def _make_if_seen(self) -> None:
        if self._may_make and self.isVisible() and not self.visibleRegion().isEmpty():
            self.host.make()
