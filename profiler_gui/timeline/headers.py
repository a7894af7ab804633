"""The names of the rows, left of the canvas: fold, select, pin, reorder."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QMenu, QToolTip, QWidget

from profiler_gui.session.selection import TrackSelection
from profiler_gui.session.session import Session
from profiler_gui.timeline.layout import Row, RowKind, TrackKey, row_at
from profiler_gui.timeline.pointer import DRAG_FROM_PX, SCROLL_PER_NOTCH_PX, WHEEL_STEP
from profiler_gui.timeline.state import TimelineState
from profiler_gui.timeline.tips import value_text
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

WIDTH_PX = 240
_INDENT_PX = 12
_ARROW_PX = 14
_PIN_PX = 18


class TrackHeaders(QWidget):
    """Paints the names of the rows beside the canvas and lets the user arrange them."""

    def __init__(self, session: Session, state: TimelineState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._state = state
        self._theme = theme
        self._pressed: tuple[Row, QPointF] | None = None
        self._target: tuple[TrackKey | None, float] | None = None
        self._pointer_y_px = -1.0
        self.setMouseTracking(True)
        self.setMinimumWidth(90)
        self.setAccessibleName(tr("Tracks"))
        self.setAccessibleDescription(tr("Names of the tracks; the context menu folds, pins, moves and hides them"))
        for signal in (state.layout_changed, state.scroll_changed, session.selection_changed, theme.changed):
            signal.connect(self.update)

    def menu_for(self, row: Row) -> QMenu:
        """Returns the context menu of a row."""
        menu = QMenu(self)
        menu.setAccessibleName(tr("Track"))
        state, key = self._state, row.node.key
        entries = []
        if row.is_collapsible:
            entries.append((tr("Unfold") if row.is_collapsed else tr("Fold"), lambda: state.toggle_collapsed(key)))
        if row.node.kind is not RowKind.GROUP or row.lane_count:
            is_pinned = key in state.arrangement.pins
            entries.append((tr("Unpin") if is_pinned else tr("Pin on Top"), lambda: state.toggle_pin(key)))
        entries += [
            (tr("Move Up"), lambda: state.move_by(key, -1)),
            (tr("Move Down"), lambda: state.move_by(key, 1)),
            (tr("Hide"), lambda: state.hide(key)),
            (tr("Show Hidden Tracks"), state.show_hidden),
            (tr("Fold All"), state.collapse_all),
            (tr("Unfold All"), state.expand_all),
        ]
        for title, run in entries:
            menu.addAction(title).triggered.connect(run)
        return menu

    def sizeHint(self) -> QSize:
        """Qt: room for the usual names."""
        return QSize(WIDTH_PX, 200)

    def _row_at(self, y_px: float) -> Row | None:
        layout = self._state.layout
        if y_px < layout.pinned_height_px:
            return row_at(layout.pinned, y_px)
        return row_at(layout.rows, y_px - layout.pinned_height_px + self._state.scroll_px)

    def _top_px(self, row: Row) -> float:
        return row.top_px if row.is_pinned else row.top_px + self._state.layout.pinned_height_px - self._state.scroll_px

    def _find_target(self, pressed: Row, y_px: float) -> tuple[TrackKey | None, float] | None:
        """Returns before which sibling the dragged row would land and at which height; None where it cannot."""
        siblings = [
            row
            for row in self._state.layout.rows
            if row.node.parent == pressed.node.parent and row.node.key[0] == pressed.node.key[0]
        ]
        if pressed.is_pinned or not siblings:
            return None
        for row in siblings:
            if y_px < self._top_px(row) + row.height_px / 2:
                return row.node.key, self._top_px(row) - 2
        return None, self._top_px(siblings[-1]) + siblings[-1].height_px + 1

    def _paint_row(self, painter: QPainter, row: Row) -> None:
        colours = self._theme.colours
        top_px = self._top_px(row)
        box = QRectF(0, top_px, self.width(), row.height_px)
        line_px = min(row.height_px, max(row.lane_px, 22))
        if not row.is_pinned:
            # The name of a tall track stays in view as long as any of the track does.
            area_px = float(self._state.layout.pinned_height_px)
            top_px = min(max(top_px, area_px), max(top_px + row.height_px - line_px, top_px))
        is_group = row.node.kind is RowKind.GROUP
        selection = self._session.selection
        is_selected = isinstance(selection, TrackSelection) and (selection.rank, selection.track) == row.node.key
        if is_selected:
            painter.fillRect(box, self.palette().highlight())
        elif is_group:
            painter.fillRect(box, QColor(colours.alternate))
        text_colour = self.palette().highlightedText().color() if is_selected else QColor(colours.text)
        left_px = 6.0 + row.indent * _INDENT_PX
        if row.is_collapsible:
            _paint_triangle(painter, QPointF(left_px + 4, top_px + line_px / 2), text_colour, row.is_collapsed)
        font = painter.font()
        font.setBold(is_group)
        painter.setFont(font)
        painter.setPen(text_colour)
        room = QRectF(left_px + _ARROW_PX, top_px, max(self.width() - left_px - _ARROW_PX - _PIN_PX, 10), line_px)
        name = painter.fontMetrics().elidedText(row.node.label, Qt.TextElideMode.ElideMiddle, int(room.width()))
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, name)
        if row.node.kind is RowKind.COUNTER:
            self._paint_scale(painter, row, box, left_px)
        if row.node.key in self._state.arrangement.pins:
            _paint_pin(painter, QPointF(self.width() - _PIN_PX / 2, top_px + line_px / 2), QColor(colours.mark))

    def _paint_scale(self, painter: QPainter, row: Row, box: QRectF, left_px: float) -> None:
        counter = self._state.counters[row.node.counter]
        painter.setPen(QColor(self._theme.colours.faint))
        room = box.adjusted(left_px + _ARROW_PX, 0, -6, -2)
        text = tr("0 to {high}", high=value_text(counter.high, counter.unit))
        if counter.low < 0:
            low, high = (value_text(value, counter.unit) for value in (counter.low, counter.high))
            text = tr("{low} to {high}", low=low, high=high)
        painter.drawText(room, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, text)

    # Qt's overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints the names beside their rows."""
        painter = QPainter(self)
        colours = self._theme.colours
        painter.fillRect(self.rect(), QColor(colours.background))
        layout = self._state.layout
        painter.setClipRect(0, layout.pinned_height_px, self.width(), self.height())
        for row in layout.rows:
            if self._top_px(row) < self.height() and self._top_px(row) + row.height_px > layout.pinned_height_px:
                self._paint_row(painter, row)
        painter.setClipping(False)
        for row in layout.pinned:
            self._paint_row(painter, row)
        painter.setPen(QColor(colours.grid))
        painter.drawLine(self.width() - 1, 0, self.width() - 1, self.height())
        if layout.pinned:
            painter.setPen(QColor(colours.faint))
            painter.drawLine(0, layout.pinned_height_px - 1, self.width(), layout.pinned_height_px - 1)
        if self._target is not None:
            painter.setPen(QPen(self.palette().highlight().color(), 2))
            painter.drawLine(QPointF(0, self._target[1]), QPointF(self.width(), self._target[1]))
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Qt: the triangle folds; a press on a name may become a drag."""
        row = self._row_at(event.position().y())
        if row is None or event.button() != Qt.MouseButton.LeftButton:
            return
        left_px = 6.0 + row.indent * _INDENT_PX
        if row.is_collapsible and event.position().x() < left_px + _ARROW_PX:
            self._state.toggle_collapsed(row.node.key)
        else:
            self._pressed = (row, event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Qt: drags a row among its siblings; shows the whole name of a shortened one."""
        if self._pressed is None:
            row = self._row_at(event.position().y())
            self.setToolTip(row.node.label if row else "")
            return
        row, start = self._pressed
        if (event.position() - start).manhattanLength() >= DRAG_FROM_PX:
            self._target = self._find_target(row, event.position().y())
            QToolTip.hideText()
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Qt: drops the dragged row, or selects the track that was clicked."""
        pressed, target = self._pressed, self._target
        self._pressed = self._target = None
        if pressed is None:
            return
        row = pressed[0]
        if target is not None:
            self._state.move(row.node.key, target[0])
        elif (event.position() - pressed[1]).manhattanLength() < DRAG_FROM_PX and row.node.key[1] >= 0:
            self._session.select(TrackSelection(*row.node.key))
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Qt: folds or unfolds."""
        row = self._row_at(event.position().y())
        if row is not None and row.is_collapsible:
            self._state.toggle_collapsed(row.node.key)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Qt: what can be done with the track."""
        row = self._row_at(event.pos().y())
        if row is not None:
            self.menu_for(row).popup(event.globalPos())

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Qt: scrolls the rows."""
        notches = event.angleDelta().y() / WHEEL_STEP
        self._state.scroll_to(self._state.scroll_px - round(notches * SCROLL_PER_NOTCH_PX))


def _paint_triangle(painter: QPainter, middle: QPointF, colour: QColor, is_collapsed: bool) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    corners = [(-2, -4), (3, 0), (-2, 4)] if is_collapsed else [(-4, -2), (4, -2), (0, 3)]
    painter.drawPolygon([middle + QPointF(x, y) for x, y in corners])
    painter.restore()


def _paint_pin(painter: QPainter, middle: QPointF, colour: QColor) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(colour, 1.6))
    painter.setBrush(colour)
    painter.drawEllipse(middle + QPointF(0, -2), 3.2, 3.2)
    painter.drawLine(middle + QPointF(0, 1), middle + QPointF(0, 6))
    painter.restore()
