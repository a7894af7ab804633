"""Fills of drawn parts: a colour role with a pattern, so that nothing is told by colour alone; and their legend."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from profiler_gui.toolkit.theme import Colours, Theme

DARK_TEXT = "#101418"
LIGHT_TEXT = "#ffffff"
MIN_OUTLINED_PX = 8
"""Smaller parts would be all outline."""


@dataclass(frozen=True, slots=True)
class Fill:
    """How a part is filled.

    Attributes:
        role: Of the theme's colours.
        pattern: Laid over a pale tint of the colour; SolidPattern fills evenly.
    """

    role: Callable[[Colours], str]
    pattern: Qt.BrushStyle = Qt.BrushStyle.SolidPattern

    @property
    def is_solid(self) -> bool:
        """Whether the part is filled evenly."""
        return self.pattern is Qt.BrushStyle.SolidPattern


COMPUTING = Fill(lambda colours: colours.computing)
OVERLAPPED = Fill(lambda colours: colours.computing, Qt.BrushStyle.BDiagPattern)
TRANSFER = Fill(lambda colours: colours.transfer)
WAIT = Fill(lambda colours: colours.wait)
UNSPLIT = Fill(lambda colours: colours.communication, Qt.BrushStyle.FDiagPattern)
COPIES = Fill(lambda colours: colours.memory, Qt.BrushStyle.Dense4Pattern)
IDLE = Fill(lambda colours: colours.idle)
ALLOCATED = Fill(lambda colours: colours.allocated)
CACHED = Fill(lambda colours: colours.allocated, Qt.BrushStyle.BDiagPattern)
OTHER_MEMORY = Fill(lambda colours: colours.stranded, Qt.BrushStyle.Dense5Pattern)
FREE_MEMORY = Fill(lambda colours: colours.idle)


def paint_fill(painter: QPainter, rect: QRectF, fill: Fill, colours: Colours) -> None:
    """Paints a part, a hatched one with an outline that keeps it whole."""
    colour = QColor(fill.role(colours))
    if fill.is_solid:
        painter.fillRect(rect, colour)
        return
    painter.fillRect(rect, mixed(colour, QColor(colours.background), 0.72))
    painter.fillRect(rect, QBrush(colour, fill.pattern))
    if rect.width() >= MIN_OUTLINED_PX and rect.height() >= MIN_OUTLINED_PX:
        painter.setPen(colour)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))


def text_colour_on(fill: Fill, colours: Colours) -> QColor:
    """Returns black or white, whichever reads better on the fill."""
    if not fill.is_solid:
        return QColor(colours.text)
    colour = QColor(fill.role(colours))
    return QColor(DARK_TEXT if _luminance(colour) > 0.2 else LIGHT_TEXT)


def mixed(colour: QColor, other: QColor, other_ratio: float) -> QColor:
    """Returns ``colour`` with a share of ``other`` in it."""
    own_ratio = 1 - other_ratio
    return QColor.fromRgbF(
        colour.redF() * own_ratio + other.redF() * other_ratio,
        colour.greenF() * own_ratio + other.greenF() * other_ratio,
        colour.blueF() * own_ratio + other.blueF() * other_ratio,
    )


def _luminance(colour: QColor) -> float:
    """Returns the relative luminance (WCAG 2.1), 0…1."""

    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.03928 else float(((channel + 0.055) / 1.055) ** 2.4)

    return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF())


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """What a fill stands for; ``title`` is already translated."""

    title: str
    fill: Fill


class Legend(QWidget):
    """Swatches with their meaning, in as many lines as the width calls for."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._entries: tuple[LegendEntry, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    def set_entries(self, entries: tuple[LegendEntry, ...]) -> None:
        """Shows other entries."""
        self._entries = entries
        self.setAccessibleName(", ".join(entry.title for entry in entries))
        self.updateGeometry()
        self.update()

    def hasHeightForWidth(self) -> bool:
        """Qt: narrow legends are taller."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Qt: the height that all lines need."""
        places = self._places(width)
        return round(places[-1].bottom()) + 2 if places else 0

    def sizeHint(self) -> QSize:
        """Qt: everything in one line."""
        places = self._places(100_000)
        return QSize(round(places[-1].right()) + 2, round(places[-1].bottom()) + 2) if places else QSize(0, 0)

    def minimumSizeHint(self) -> QSize:
        """Qt: room for one entry in a line."""
        places = self._places(1)
        return QSize(round(max(place.width() for place in places)), 0) if places else QSize(0, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        size_px = self.fontMetrics().ascent()
        for entry, place in zip(self._entries, self._places(self.width()), strict=True):
            swatch = QRectF(place.left(), place.center().y() - size_px / 2, size_px * 1.4, size_px)
            paint_fill(painter, swatch, entry.fill, self._theme.colours)
            painter.setPen(QColor(self._theme.colours.text))
            text = place.adjusted(size_px * 1.4 + 5, 0, 0, 0)
            painter.drawText(text, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, entry.title)

    def _places(self, width: int) -> list[QRectF]:
        metrics = self.fontMetrics()
        line_px = metrics.height() + 4
        places: list[QRectF] = []
        x_px, y_px = 0.0, 1.0
        for entry in self._entries:
            entry_px = metrics.ascent() * 1.4 + 5 + metrics.horizontalAdvance(entry.title) + 2
            if x_px > 0 and x_px + entry_px > width:
                x_px, y_px = 0.0, y_px + line_px
            places.append(QRectF(x_px, y_px, entry_px, line_px))
            x_px += entry_px + 16
        return places
