"""The drawing of an address map: y = addresses, stacked; x = requests. Carets mark misses, a ruler the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from engine.core.number_format import format_bytes, format_count
from profiler_gui.panels.memory.address_picture import AddressPicture, View
from profiler_gui.panels.memory.address_words import block_text, event_text
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.runtime.addresses.address_map import AddressMap
    from engine.runtime.addresses.misses import MissReport

CARET_PX = 9
CARET_REACH_PX = 6
ZOOM_STEP = 0.8
PAN_RATIO = 0.15


class AddressCanvas(QWidget):
    """Paints a map and lets it be zoomed.

    The wheel zooms over requests at the pointer, with Ctrl over addresses; a drag moves, a double click shows all.
    Left and right choose the miss before or after.

    Signals:
        miss_chosen: Row of the map's misses.
    """

    miss_chosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._picture: AddressPicture | None = None
        self._view = View(0.0, 1.0, 0.0, 1.0)
        self._report: MissReport | None = None
        self._miss = -1
        self._drag: tuple[QPointF, View] | None = None
        self._image: QImage | None = None
        self.setAccessibleName(tr("Addresses over requests"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        theme.changed.connect(self._repaint)

    @property
    def view(self) -> View:
        """What is in view."""
        return self._view

    def set_map(self, mapped: AddressMap | None) -> None:
        """Shows another map, all of it."""
        self._picture = AddressPicture(mapped) if mapped is not None else None
        self._miss, self._report = -1, None
        self.show_all()

    def show_all(self) -> None:
        """Shows every request and every address."""
        if self._picture is not None:
            self.set_view(self._picture.whole)

    def set_view(self, view: View) -> None:
        """Shows a part, kept inside the whole."""
        if self._picture is not None:
            self._view = view.inside(self._picture.whole)
        self._repaint()

    def show_miss(self, miss: int, report: MissReport | None) -> None:
        """Marks a miss (−1 for none) and lays its size as a ruler against the free memory."""
        self._miss, self._report = miss, report
        if report is not None and not self._view.left <= report.event <= self._view.right:
            self.set_view(self._view.moved(report.event - (self._view.left + self._view.right) / 2, 0.0))
        self.update()

    def sizeHint(self) -> QSize:
        """Qt: as wide as there is room."""
        return QSize(640, 360)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints."""
        painter = QPainter(self)
        if self._picture is None:
            return
        if self._image is None:
            self._image = self._picture.render(self._view, self._drawn_size(), self._theme.colours)
            self._image.setDevicePixelRatio(self.devicePixelRatioF())
        painter.drawImage(QPoint(0, CARET_PX), self._image)
        self._paint_carets(painter)
        self._paint_ruler(painter)

    def _drawn_size(self) -> QSize:
        ratio = self.devicePixelRatioF()
        return QSize(max(round(self.width() * ratio), 1), max(round((self.height() - CARET_PX) * ratio), 1))

    def _x_px(self, event: float) -> float:
        view = self._view
        return (event - view.left) / (view.right - view.left) * self.width()

    def _y_px(self, position: float) -> float:
        view = self._view
        share = (position - view.low) / (view.high - view.low)
        return self.height() - share * (self.height() - CARET_PX)

    def _paint_carets(self, painter: QPainter) -> None:
        if self._picture is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        colours = self._theme.colours
        for miss in self._picture.misses_shown(self._view, self.width()):
            x_px = self._x_px(float(self._picture.mapped.misses.event[miss]) + 0.5)
            painter.setBrush(QColor(colours.error if self._picture.is_grave(miss) else colours.warning))
            half = CARET_PX / 2
            painter.drawPolygon(QPolygonF([QPointF(x_px - half, 0), QPointF(x_px + half, 0), QPointF(x_px, CARET_PX)]))

    def _paint_ruler(self, painter: QPainter) -> None:
        report, picture = self._report, self._picture
        if report is None or picture is None:
            return
        colours = self._theme.colours
        x_px = self._x_px(report.event + 0.5)
        painter.setPen(QPen(QColor(colours.error), 1.2))
        painter.drawLine(QPointF(x_px, CARET_PX), QPointF(x_px, self.height()))
        low = picture.ruler_position(report)
        top_px, bottom_px = self._y_px(low + report.size_bytes), self._y_px(low)
        bar = QRectF(x_px + 3, top_px, 7, max(bottom_px - top_px, 2.0))
        painter.setBrush(QColor(colours.match))
        painter.setPen(QPen(QColor(colours.error), 1.0))
        painter.drawRect(bar)
        text = tr("needs {size}", size=format_bytes(report.size_bytes))
        wide_px = self.fontMetrics().horizontalAdvance(text)
        fits = bar.right() + 6 + wide_px < self.width()
        left_px = bar.right() + 5 if fits else x_px - wide_px - 6
        place = QRectF(
            left_px, min(max(bar.top(), CARET_PX), self.height() - 20), wide_px + 4, self.fontMetrics().height()
        )
        painter.fillRect(place, QColor(colours.background))
        painter.setPen(QColor(colours.text))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)

    def _repaint(self) -> None:
        self._image = None
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Qt: another size needs another picture."""
        super().resizeEvent(event)
        self._repaint()

    # What the user does

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Qt: zooms at the pointer."""
        factor = ZOOM_STEP ** (event.angleDelta().y() / 120)
        event_at, position = self._place_of(event.position())
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.set_view(self._view.zoomed(event_at, position, 1.0, factor))
        else:
            self.set_view(self._view.zoomed(event_at, position, factor, 1.0))
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Qt: begins a drag, or chooses the miss whose caret is under the pointer."""
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        miss = self.miss_near(event.position())
        if miss is not None:
            self.miss_chosen.emit(miss)
        else:
            self._drag = (event.position(), self._view)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Qt: moves, or tells what is under the pointer."""
        if self._drag is not None:
            begin, view = self._drag
            moved = event.position() - begin
            events = -moved.x() / max(self.width(), 1) * (view.right - view.left)
            height_px = max(self.height() - CARET_PX, 1)
            self.set_view(view.moved(events, moved.y() / height_px * (view.high - view.low)))
        else:
            QToolTip.showText(event.globalPosition().toPoint(), self.reading(event.position()), self)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Qt: ends the drag."""
        self._drag = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Qt: shows all."""
        self.show_all()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Qt: + − zoom, 0 shows all, left and right choose the miss before or after."""
        view, key = self._view, Qt.Key(event.key())
        middle = ((view.left + view.right) / 2, (view.low + view.high) / 2)
        if key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.set_view(view.zoomed(*middle, ZOOM_STEP, ZOOM_STEP))
        elif key is Qt.Key.Key_Minus:
            self.set_view(view.zoomed(*middle, 1 / ZOOM_STEP, 1 / ZOOM_STEP))
        elif key is Qt.Key.Key_0:
            self.show_all()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self._picture is not None:
            count = len(self._picture.mapped.misses)
            if count:
                step = 1 if key is Qt.Key.Key_Right else -1
                start = self._miss if self._miss >= 0 else (-1 if step > 0 else count)
                self.miss_chosen.emit(min(max(start + step, 0), count - 1))
        else:
            event.ignore()

    def leaveEvent(self, event: QEvent) -> None:
        """Qt: nothing is under the pointer."""
        super().leaveEvent(event)
        QToolTip.hideText()

    def miss_near(self, place: QPointF) -> int | None:
        """Returns the miss whose caret is at a place; None where none is."""
        picture = self._picture
        if picture is None or place.y() > CARET_PX + 2 or not len(picture.mapped.misses):
            return None
        x_px = np.array([self._x_px(event + 0.5) for event in picture.mapped.misses.event.tolist()])
        nearest = int(np.argmin(np.abs(x_px - place.x())))
        return nearest if abs(x_px[nearest] - place.x()) <= CARET_REACH_PX else None

    def reading(self, place: QPointF) -> str:
        """Returns what is at a place: the block, or the free range."""
        if self._picture is None:
            return ""
        mapped = self._picture.mapped
        miss = self.miss_near(place)
        if miss is not None:
            size = format_bytes(int(mapped.misses.size_bytes[miss]))
            where = event_text(int(mapped.misses.event[miss]))
            return tr("{where}: no hole for {size}", where=where, size=size)
        event, position = self._place_of(place)
        block = self._picture.block_at(int(event), int(position))
        if block is not None:
            return block_text(mapped, block)
        return tr("{where}, free or unused", where=tr("request {number}", number=format_count(int(event) + 1)))

    def _place_of(self, place: QPointF) -> tuple[float, float]:
        view = self._view
        share_x = place.x() / max(self.width(), 1)
        share_y = (self.height() - place.y()) / max(self.height() - CARET_PX, 1)
        return view.left + share_x * (view.right - view.left), view.low + share_y * (view.high - view.low)
