"""A drawing of rows of places that mouse and keys walk over: what stacked bars and columns have in common."""

from PySide6.QtCore import QEvent, QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from profiler_gui.toolkit.theme import Theme

Place = tuple[int, int]
"""Row, and number in it."""
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}
_ACTIVATING = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class WalkedDrawing(QWidget):
    """Arrow keys walk over the places; Enter, Space or a click activates one; a tooltip says what it is."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._at: Place | None = None
        self._hovered: Place | None = None
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    # What a drawing says of its places

    def row_lengths(self) -> list[int]:
        """Returns how many places each row has."""
        raise NotImplementedError

    def place_at(self, point: QPoint) -> Place | None:
        """Returns the place under a point; None for none."""
        raise NotImplementedError

    def outline_of(self, place: Place) -> QRectF:
        """Returns what is outlined of a place that is pointed at or walked to."""
        raise NotImplementedError

    def tip_of(self, place: Place) -> str:
        """Returns the tooltip of a place."""
        raise NotImplementedError

    def activate(self, place: Place) -> None:
        """Does what a click on a place does."""
        raise NotImplementedError

    # What it gets for that

    def forget_places(self) -> None:
        """Says that other places are drawn from now on."""
        self._at = None
        self._hovered = None
        self.updateGeometry()
        self.update()

    def paint_outlines(self, painter: QPainter) -> None:
        """Paints where the focus, the pointer and the keys are."""
        if self.hasFocus() and self._at is None:
            painter.setPen(QPen(QColor(self._theme.colours.range), 1, Qt.PenStyle.DotLine))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        for place, width_px in ((self._hovered, 1.0), (self._at if self.hasFocus() else None, 2.0)):
            if place is not None:
                painter.setPen(QPen(QColor(self._theme.colours.selection), width_px))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(self.outline_of(place))

    # Qt

    def event(self, event: QEvent) -> bool:
        """Qt: tooltips say what is under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            place = self.place_at(event.pos())
            if place is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.tip_of(place), self)
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Qt: outlines what a click would activate."""
        self._hovered = self.place_at(event.position().toPoint())
        self.setCursor(Qt.CursorShape.PointingHandCursor if self._hovered else Qt.CursorShape.ArrowCursor)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """Qt: nothing is under the pointer any more."""
        self._hovered = None
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Qt: what is under the pointer is what a release activates."""
        self._at = self.place_at(event.position().toPoint())
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Qt: activates what was pressed, if the pointer is still on it."""
        place = self.place_at(event.position().toPoint())
        if place is not None and place == self._at and event.button() is Qt.MouseButton.LeftButton:
            self.activate(place)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Qt: walks over the places and activates one; the first key goes to the first place."""
        lengths, key = self.row_lengths(), Qt.Key(event.key())
        if not any(lengths) or key not in {*_STEPS, *_ACTIVATING}:
            super().keyPressEvent(event)
        elif key in _STEPS:
            row, number = self._at or (0, 0)
            if self._at is not None:
                row = min(max(row + _STEPS[key][0], 0), len(lengths) - 1)
                number += _STEPS[key][1]
            number = min(max(number, 0), lengths[row] - 1)
            self._at = (row, number) if number >= 0 else self._at
            self.update()
        elif self._at is not None:
            self.activate(self._at)
