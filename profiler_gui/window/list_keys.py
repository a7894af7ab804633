"""Keys that move around in lists, tables and boxes, whatever else they are used for elsewhere."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QTabBar, QWidget

NAVIGATION_KEYS = frozenset(
    (
        Qt.Key.Key_Left,
        Qt.Key.Key_Right,
        Qt.Key.Key_Up,
        Qt.Key.Key_Down,
        Qt.Key.Key_Home,
        Qt.Key.Key_End,
        Qt.Key.Key_PageUp,
        Qt.Key.Key_PageDown,
        Qt.Key.Key_Return,
        Qt.Key.Key_Enter,
        Qt.Key.Key_Space,
        Qt.Key.Key_A,
        Qt.Key.Key_C,
    )
)
_WITH_CONTROL_ONLY = (Qt.Key.Key_A, Qt.Key.Key_C)
_NAVIGATED = (QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QTabBar)


def belongs_to_list(event: QEvent, focus: QWidget | None) -> bool:
    """Returns whether Qt offers a key that the widget with the focus moves around by, copies or selects all with."""
    if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.ShortcutOverride:
        return False
    others = event.modifiers() & (Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.MetaModifier)
    if others or event.key() not in NAVIGATION_KEYS or not isinstance(focus, _NAVIGATED):
        return False
    return bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier) or event.key() not in _WITH_CONTROL_ONLY
