"""Mouse and wheel events sent to a widget as Qt would."""

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

LEFT, NO_BUTTON = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
NO_KEYS = Qt.KeyboardModifier.NoModifier


def send_mouse(
    widget: QWidget,
    kind: QEvent.Type,
    at: QPointF,
    button: Qt.MouseButton = LEFT,
    held: Qt.MouseButton | None = None,
    keys: Qt.KeyboardModifier = NO_KEYS,
) -> None:
    """Sends one event; ``held`` are the buttons that are down after it (the pressed one by default)."""
    event = QMouseEvent(kind, at, widget.mapToGlobal(at), button, button if held is None else held, keys)
    QApplication.sendEvent(widget, event)


def click(widget: QWidget, at: QPointF) -> None:
    """Presses and releases the left button."""
    send_mouse(widget, QEvent.Type.MouseButtonPress, at)
    send_mouse(widget, QEvent.Type.MouseButtonRelease, at, held=NO_BUTTON)


def double_click(widget: QWidget, at: QPointF) -> None:
    """Sends the second press of a double click."""
    send_mouse(widget, QEvent.Type.MouseButtonDblClick, at)


def hover(widget: QWidget, at: QPointF) -> None:
    """Moves the pointer with no button down."""
    send_mouse(widget, QEvent.Type.MouseMove, at, NO_BUTTON)


def leave(widget: QWidget) -> None:
    """Moves the pointer out."""
    QApplication.sendEvent(widget, QEvent(QEvent.Type.Leave))


def drag(
    widget: QWidget,
    start: QPointF,
    end: QPointF,
    keys: Qt.KeyboardModifier = NO_KEYS,
    button: Qt.MouseButton = LEFT,
    *,
    drops: bool = True,
) -> None:
    """Presses, moves in three steps and releases (unless ``drops`` is false)."""
    send_mouse(widget, QEvent.Type.MouseButtonPress, start, button, keys=keys)
    for share in (0.3, 0.7, 1.0):
        send_mouse(widget, QEvent.Type.MouseMove, start + (end - start) * share, NO_BUTTON, button, keys)
    if drops:
        send_mouse(widget, QEvent.Type.MouseButtonRelease, end, button, NO_BUTTON, keys)


def wheel(widget: QWidget, at: QPointF, notches: float, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    """Turns the wheel; positive is away from the user."""
    event = QWheelEvent(
        at,
        widget.mapToGlobal(at),
        QPoint(),
        QPoint(0, round(120 * notches)),
        NO_BUTTON,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)
