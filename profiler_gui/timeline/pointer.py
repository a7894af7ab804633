"""Mouse and wheel on the canvas: hover, click, range, panning, zooming."""

from enum import Enum, auto

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QKeySequence, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QToolTip

from profiler_gui.commands.panes import PaneContext
from profiler_gui.session.selection import EventSelection, RangeSelection, TrackSelection
from profiler_gui.timeline.canvas import TimelineCanvas
from profiler_gui.timeline.context_menu import canvas_menu, copy_selection
from profiler_gui.timeline.overlays import DraggedRange
from profiler_gui.timeline.places import Hit
from profiler_gui.timeline.state import TimelineState
from profiler_gui.timeline.tips import tip_of
from profiler_gui.toolkit.preferences import WHEEL

TIP_DELAY_MS = 450
DRAG_FROM_PX = 4
"""A press that moves less than this is a click."""
WHEEL_STEP = 120
"""Qt's angle of one notch of a wheel."""
ZOOM_PER_NOTCH = 1.25
SCROLL_PER_NOTCH_PX = 54
PAN_PER_NOTCH_RATIO = 0.12
_COPY = QKeySequence.StandardKey.Copy


class _Drag(Enum):
    RANGE = auto()
    PAN = auto()
    ZOOM = auto()


class TimelinePointer(QObject):
    """Turns what the mouse does on the canvas into requests to the session; hover and drag stay here."""

    def __init__(self, canvas: TimelineCanvas, state: TimelineState, context: PaneContext) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._context = context
        self._session = context.session
        self._state = state
        self._settings = context.settings
        self._pressed_at: QPointF | None = None
        self._press_ns = (0, False)
        self._drag: _Drag | None = None
        self._last = QPointF()
        self._pan_rest_ns = 0.0
        self._pointer = QPointF()
        self._tip_timer = QTimer(self)
        self._tip_timer.setSingleShot(True)
        self._tip_timer.setInterval(TIP_DELAY_MS)
        self._tip_timer.timeout.connect(self._show_tip)
        canvas.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Qt: takes the canvas's mouse events."""
        if self._session.trace is None:
            return False
        kind = event.type()
        if isinstance(event, QMouseEvent):
            handlers = {
                QEvent.Type.MouseButtonPress: self._press,
                QEvent.Type.MouseMove: self._move,
                QEvent.Type.MouseButtonRelease: self._release,
                QEvent.Type.MouseButtonDblClick: self._double_click,
            }
            if kind in handlers:
                handlers[kind](event)
                return True
        elif isinstance(event, QWheelEvent):
            self._wheel(event)
            return True
        elif isinstance(event, QContextMenuEvent):
            self._show_menu(event)
            return True
        elif isinstance(event, QKeyEvent) and kind == QEvent.Type.KeyPress and event.matches(_COPY):
            copy_selection(self._context)
            return True
        elif kind in (QEvent.Type.Leave, QEvent.Type.Hide):
            self._leave()
        return False

    def _press(self, event: QMouseEvent) -> None:
        self._canvas.setFocus(Qt.FocusReason.MouseFocusReason)
        self._tip_timer.stop()
        QToolTip.hideText()
        if event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            return
        self._pressed_at = self._last = event.position()
        self._press_ns = self._canvas.places.snapped(event.position())
        self._pan_rest_ns = 0.0
        self._drag = None

    def _drag_kind(self, event: QMouseEvent) -> _Drag:
        modifiers = event.modifiers()
        pans = modifiers & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier)
        if pans or event.buttons() & Qt.MouseButton.MiddleButton:
            return _Drag.PAN
        return _Drag.ZOOM if modifiers & Qt.KeyboardModifier.AltModifier else _Drag.RANGE

    def _move(self, event: QMouseEvent) -> None:
        self._pointer = event.position()
        places = self._canvas.places
        time_ns = places.scale.time_ns(event.position().x())
        self._state.cursor_ns = time_ns
        self._session.report_cursor(time_ns)
        if self._pressed_at is None:
            self._hover(places.hit(event.position()))
            return
        if self._drag is None:
            if (event.position() - self._pressed_at).manhattanLength() < DRAG_FROM_PX:
                return
            self._drag = self._drag_kind(event)
            self._hover(None)
        if self._drag is _Drag.PAN:
            self._pan_by(event.position() - self._last)
        else:
            end_ns, is_snapped = places.snapped(event.position())
            start_ns, start_is_snapped = self._press_ns
            snapped = (*((start_ns,) if start_is_snapped else ()), *((end_ns,) if is_snapped else ()))
            self._canvas.set_dragged(DraggedRange(start_ns, end_ns, snapped))
        self._last = event.position()

    def _release(self, event: QMouseEvent) -> None:
        pressed_at, drag = self._pressed_at, self._drag
        self._pressed_at = self._drag = None
        self._canvas.set_dragged(None)
        if pressed_at is None:
            return
        if drag is None:
            if event.button() == Qt.MouseButton.LeftButton:
                self._click(event.position())
            return
        start_ns, end_ns = sorted((self._press_ns[0], self._canvas.places.snapped(event.position())[0]))
        if drag is _Drag.RANGE and end_ns > start_ns:
            self._session.select(RangeSelection(self._session.rank, start_ns, end_ns))
        elif drag is _Drag.ZOOM and end_ns > start_ns:
            self._session.show_range(start_ns, end_ns)

    def _click(self, point: QPointF) -> None:
        hit = self._canvas.places.hit(point)
        if hit is not None and hit.event >= 0:
            self._session.select(EventSelection(self._session.rank, hit.event))
        elif hit is not None and hit.row.node.key[1] >= 0 and hit.depth < 0:
            self._session.select(TrackSelection(*hit.row.node.key))
        else:
            self._session.clear_selection()

    def _double_click(self, event: QMouseEvent) -> None:
        hit = self._canvas.places.hit(event.position())
        if hit is not None and hit.event >= 0:
            self._session.select(EventSelection(self._session.rank, hit.event))
            self._session.show_selection()

    def _show_menu(self, event: QContextMenuEvent) -> None:
        self._tip_timer.stop()
        if event.reason() == QContextMenuEvent.Reason.Mouse:
            self._click(QPointF(event.pos()))
        canvas_menu(self._canvas, self._context).popup(event.globalPos())

    def _wheel(self, event: QWheelEvent) -> None:
        notches = QPointF(event.angleDelta()) / WHEEL_STEP
        modifiers = event.modifiers()
        zooms = self._settings.value(WHEEL) == "zoom"
        if modifiers & Qt.KeyboardModifier.ControlModifier or (zooms and not modifiers):
            anchor_ns = self._canvas.places.scale.time_ns(event.position().x())
            self._session.zoom(anchor_ns, ZOOM_PER_NOTCH ** -notches.y(), "wheel")
        elif modifiers & Qt.KeyboardModifier.ShiftModifier or abs(notches.x()) > abs(notches.y()):
            notch = notches.x() or notches.y()
            self._session.pan(round(-notch * PAN_PER_NOTCH_RATIO * self._session.viewport.duration_ns), "wheel")
        else:
            pixels = event.pixelDelta().y() or notches.y() * SCROLL_PER_NOTCH_PX
            self._state.scroll_to(self._state.scroll_px - round(pixels))
        self._hover(None)
        event.accept()

    def _pan_by(self, distance: QPointF) -> None:
        # What a pixel is worth may be less than a ns: the rest is kept for the next move.
        wanted_ns = -distance.x() * self._canvas.places.scale.ns_per_px + self._pan_rest_ns
        whole_ns = round(wanted_ns)
        self._pan_rest_ns = wanted_ns - whole_ns
        if whole_ns:
            self._session.pan(whole_ns, "drag")
        self._state.scroll_to(self._state.scroll_px - round(distance.y()))

    def _hover(self, hit: Hit | None) -> None:
        self._canvas.set_hovered(hit)
        QToolTip.hideText()
        if hit is None:
            self._tip_timer.stop()
        else:
            self._tip_timer.start()

    def tip(self) -> str:
        """Returns what the tooltip says of what is under the pointer; "" for nothing."""
        trace = self._session.trace
        hit = self._canvas.places.hit(self._pointer)
        if trace is None or hit is None:
            return ""
        return tip_of(trace, self._state, hit, self._canvas.places.scale.time_ns(self._pointer.x()))

    def _show_tip(self) -> None:
        text = self.tip()
        if text:
            below = self._canvas.mapToGlobal(self._pointer.toPoint()) + QPoint(12, 12)
            QToolTip.showText(below, text, self._canvas)

    def _leave(self) -> None:
        self._tip_timer.stop()
        self._canvas.set_hovered(None)
        self._state.cursor_ns = None
        self._session.report_cursor(None)
