"""A scrolled column of widgets whose texts wrap: as tall as they need at this width, and no taller."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget


class FittingArea(QScrollArea):
    """Scrolls up and down only.

    Qt gives a page in a scroll area the height of its size hint, which knows nothing of wrapped lines.

    Attributes:
        column: Takes what is shown.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        page = QWidget()
        self.column = QVBoxLayout(page)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(page)
        page.installEventFilter(self)

    def fit(self) -> None:
        """Makes the page as tall as its column: called by itself, and after many changes at once."""
        page = self.widget()
        if page is not None:
            page.setMinimumHeight(max(self.column.totalHeightForWidth(self.viewport().width()), 0))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Qt: something in the column wants another height."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.fit()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Qt: another width wraps the texts differently."""
        super().resizeEvent(event)
        self.fit()
