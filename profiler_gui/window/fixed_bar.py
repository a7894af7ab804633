"""A bar at the edge of the window that stays where it is."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QToolBar, QWidget


class FixedBar(QToolBar):
    """Holds one widget over the plain colour of the window; cannot be moved, hidden or floated."""

    def __init__(self, name: str, widget: QWidget) -> None:
        super().__init__(name)
        self.setObjectName(name)
        self.setMovable(False)
        self.setFloatable(False)
        self.toggleViewAction().setEnabled(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.addWidget(widget)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: the plain colour instead of the style's gradient."""
        QPainter(self).fillRect(event.rect(), self.palette().window())
