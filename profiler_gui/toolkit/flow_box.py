"""A box that fills lines from the left and begins another where its width ends."""

from PySide6.QtCore import QEvent, QRect, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget


class FlowBox(QWidget):
    """Widgets one after another, in as many lines as the width calls for.

    A widget and no layout: layouts written in Python share the ownership of their items with Qt, and die of it.

    Args:
        spacing_px: Between widgets of a line; a third of it stands between lines.
    """

    def __init__(self, spacing_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._members: list[QWidget] = []
        self._spacing_px = spacing_px
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @property
    def members(self) -> tuple[QWidget, ...]:
        """The widgets in order, hidden ones included."""
        return tuple(self._members)

    def insert(self, place: int, widget: QWidget) -> None:
        """Takes a widget, before the one at ``place``."""
        self._members.insert(place, widget)
        widget.setParent(self)
        widget.show()
        self._lay_out()

    def remove(self, widget: QWidget) -> None:
        """Gives a widget up and deletes it."""
        self._members.remove(widget)
        widget.hide()
        widget.deleteLater()
        self._lay_out()

    def event(self, event: QEvent) -> bool:
        """Qt: a member wants another size, was shown or hidden."""
        if event.type() is QEvent.Type.LayoutRequest:
            self._lay_out()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Qt: another width has other lines."""
        super().resizeEvent(event)
        self._place()

    def hasHeightForWidth(self) -> bool:
        """Qt: narrow ones are taller."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Qt: the height of all lines."""
        return _extent(self._places(width)).height()

    def sizeHint(self) -> QSize:
        """Qt: everything in one line."""
        return _extent(self._places(100_000))

    def minimumSizeHint(self) -> QSize:
        """Qt: room for the widest member."""
        sizes = [widget.sizeHint() for widget in self._members if not widget.isHidden()]
        width_px = max((size.width() for size in sizes), default=0)
        return QSize(width_px, max((size.height() for size in sizes), default=0))

    def _lay_out(self) -> None:
        self._place()
        self.updateGeometry()

    def _place(self) -> None:
        for widget, place in self._places(self.width()):
            widget.setGeometry(place)

    def _places(self, width_px: int) -> list[tuple[QWidget, QRect]]:
        places: list[tuple[QWidget, QRect]] = []
        x_px = y_px = line_px = 0
        for widget in self._members:
            if widget.isHidden():
                continue
            size = widget.sizeHint()
            if x_px > 0 and x_px + size.width() > width_px:
                x_px, y_px, line_px = 0, y_px + line_px + self._spacing_px // 3, 0
            places.append((widget, QRect(x_px, y_px, size.width(), size.height())))
            x_px += size.width() + self._spacing_px
            line_px = max(line_px, size.height())
        return places


def _extent(places: list[tuple[QWidget, QRect]]) -> QSize:
    width_px = max((place.right() + 1 for _, place in places), default=0)
    return QSize(width_px, max((place.bottom() + 1 for _, place in places), default=0))
