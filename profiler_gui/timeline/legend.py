"""What the colours mean, always in view."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from profiler_gui.timeline.palette import FAMILY_TITLES, Family, family_colour
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

HEIGHT_PX = 24
_SWATCH_PX = 12
_ORDER = (
    Family.COMPUTING,
    Family.COMMUNICATION,
    Family.TRANSFER,
    Family.MEMORY,
    Family.SYNCHRONIZATION,
    Family.IDLE,
    Family.HOST,
    Family.RUNTIME,
    Family.PYTHON,
    Family.ANNOTATION,
    Family.OTHER,
)


class Legend(QWidget):
    """Paints a swatch and a word per family of colours."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setFixedHeight(HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Legend of colours"))
        self.setAccessibleDescription(", ".join(tr(FAMILY_TITLES[family]) for family in _ORDER))
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        """Qt: one line."""
        return QSize(400, HEIGHT_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints swatches and words from left to right, closer together where there is little room."""
        painter = QPainter(self)
        colours = self._theme.colours
        painter.fillRect(self.rect(), QColor(colours.alternate))
        titles = [tr(FAMILY_TITLES[family]) for family in _ORDER]
        widths_px = [painter.fontMetrics().horizontalAdvance(title) + _SWATCH_PX + 6 for title in titles]
        gap_px = min(max((self.width() - 16 - sum(widths_px)) / len(titles), 4), 18)
        x_px = 8.0
        for family, title, width_px in zip(_ORDER, titles, widths_px, strict=True):
            swatch = QRectF(x_px, (HEIGHT_PX - _SWATCH_PX) / 2, _SWATCH_PX, _SWATCH_PX)
            painter.fillRect(swatch, QColor.fromRgb(family_colour(colours, family) & 0xFFFFFF))
            painter.setPen(QColor(colours.text))
            text = QRectF(QPointF(x_px + _SWATCH_PX + 5, 0), QPointF(x_px + width_px + 20, HEIGHT_PX))
            painter.drawText(text, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, title)
            x_px += width_px + gap_px
        painter.end()
