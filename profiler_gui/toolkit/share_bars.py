"""Cells that draw a share as a bar behind its text."""

import math

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import QApplication, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from profiler_gui.toolkit.theme import Theme

BAR_ALPHA = 90


class ShareDelegate(QStyledItemDelegate):
    """Paints a share, 0…1, as a bar from the left of the cell, its text over it.

    Args:
        theme: Colour of the bar: computing.
        role: Item role that holds the share; NaN for none.
    """

    def __init__(self, theme: Theme, role: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._role = role

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Qt: paints one cell."""
        cell = QStyleOptionViewItem(option)
        self.initStyleOption(cell, index)
        # The stubs leave the option's own members out, so they are reached by name.
        rect: QRect = getattr(cell, "rect")  # noqa: B009
        state: QStyle.StateFlag = getattr(cell, "state")  # noqa: B009
        palette: QPalette = getattr(cell, "palette")  # noqa: B009
        text: str = getattr(cell, "text")  # noqa: B009
        style = QApplication.style()
        style.drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, cell, painter)
        ratio = index.data(self._role)
        if isinstance(ratio, float) and math.isfinite(ratio):
            bar = rect.adjusted(2, 3, -2, -3)
            bar.setWidth(max(round(bar.width() * min(max(ratio, 0.0), 1.0)), 1))
            colour = QColor(self._theme.colours.computing)
            colour.setAlpha(BAR_ALPHA)
            painter.fillRect(bar, colour)
        is_selected = bool(state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if is_selected else QPalette.ColorRole.Text
        painter.setPen(palette.color(role))
        place = rect.adjusted(4, 0, -6, 0)
        painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
