"""The time ruler: round moments, and the flags of marks."""

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QInputDialog, QMenu, QSizePolicy, QWidget

from engine.core.number_format import format_duration_ns
from profiler_gui.session.annotations import Mark
from profiler_gui.session.session import Session
from profiler_gui.timeline.frame import GRID_SPACING_PX
from profiler_gui.timeline.pointer import WHEEL_STEP, ZOOM_PER_NOTCH
from profiler_gui.timeline.state import TimelineState
from profiler_gui.toolkit.preferences import TIME_UNIT
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.time_axis import TimeScale, TimeUnit, ticks, time_text
from profiler_gui.toolkit.translations import tr

HEIGHT_PX = 38
_FLAG_PX = 16
_TEXT_LEFT_PX = 3


class TimeRuler(QWidget):
    """Writes round moments above the canvas; dragging it moves the view, the wheel zooms.

    Args:
        session: Viewport, marks.
        state: The moment times count from.
        settings: The unit.
        theme: Colours.
    """

    def __init__(
        self,
        session: Session,
        state: TimelineState,
        settings: SettingsStore,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._state = state
        self._settings = settings
        self._theme = theme
        self._dragged_from: tuple[float, int] | None = None
        self.setFixedHeight(HEIGHT_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Time ruler"))
        for signal in (
            session.viewport_changed,
            session.document_changed,
            session.annotations_changed,
            state.origin_changed,
            theme.changed,
            settings.changed,
        ):
            signal.connect(self._update)

    @property
    def scale(self) -> TimeScale:
        """Time to x."""
        viewport = self._session.viewport
        return TimeScale(viewport.start_ns, viewport.end_ns, max(self.width(), 1))

    def texts(self) -> list[tuple[float, str]]:
        """Returns x and text of every moment that is written."""
        unit = TimeUnit(self._settings.value(TIME_UNIT))
        trace, origin_ns, scale = self._session.trace, self._state.origin_ns, self.scale
        epoch_ns = trace.metadata.epoch_ns if trace else None
        found = ticks(scale, GRID_SPACING_PX, origin_ns)
        by_clock = unit is TimeUnit.WALL_CLOCK and epoch_ns is not None
        texts = []
        for time_ns in found.times_ns:
            shown_ns = time_ns if by_clock else time_ns - origin_ns
            text = time_text(shown_ns, unit, resolution_ns=found.step_ns, epoch_ns=epoch_ns)
            x_px = scale.x_px(time_ns)
            if x_px + _TEXT_LEFT_PX + self.fontMetrics().horizontalAdvance(text) <= self.width():
                texts.append((x_px, text))
        return texts

    def mark_at(self, point: QPointF) -> Mark | None:
        """Returns the mark whose flag is under a point."""
        for mark in reversed(self._session.annotations.marks):
            if self._flag(mark).contains(point):
                return mark
        return None

    def menu_at(self, point: QPointF) -> QMenu:
        """Returns the context menu of a place on the ruler."""
        session, state = self._session, self._state
        menu = QMenu(self)
        menu.setAccessibleName(tr("Time ruler"))
        mark = self.mark_at(point)
        if mark is not None:
            menu.addAction(tr("Rename Mark…")).triggered.connect(lambda: self._rename(mark))
            menu.addAction(tr("Remove Mark")).triggered.connect(
                lambda: session.annotate(session.annotations.without_mark(mark.id))
            )
            menu.addAction(tr("Count Time from This Mark")).triggered.connect(lambda: state.set_origin(mark.start_ns))
        else:
            time_ns = self.scale.time_ns(point.x())
            menu.addAction(tr("Set a Mark Here")).triggered.connect(
                lambda: session.annotate(session.annotations.with_mark(time_ns, time_ns))
            )
            menu.addAction(tr("Count Time from Here")).triggered.connect(lambda: state.set_origin(time_ns))
        menu.addAction(tr("Count Time from the Start of the Trace")).triggered.connect(lambda: state.set_origin(0))
        return menu

    def sizeHint(self) -> QSize:
        """Qt: as high as two lines."""
        return QSize(400, HEIGHT_PX)

    def _update(self) -> None:
        viewport = self._session.viewport
        if self._session.trace is not None:
            self.setAccessibleDescription(
                tr(
                    "{duration} from {start}",
                    duration=format_duration_ns(viewport.duration_ns),
                    start=time_text(viewport.start_ns - self._state.origin_ns),
                )
            )
        self.update()

    def _flag(self, mark: Mark) -> QRectF:
        text_px = self.fontMetrics().horizontalAdvance(mark.label)
        return QRectF(self.scale.x_px(mark.start_ns), HEIGHT_PX - _FLAG_PX, text_px + 10, _FLAG_PX)

    def _rename(self, mark: Mark) -> None:
        label, accepted = QInputDialog.getText(self, tr("Rename Mark"), tr("Name:"), text=mark.label)
        if accepted and label:
            self._session.annotate(self._session.annotations.with_renamed_mark(mark.id, label))

    # Qt's overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints moments and flags."""
        painter = QPainter(self)
        colours = self._theme.colours
        painter.fillRect(self.rect(), QColor(colours.alternate))
        if self._session.trace is not None:
            for x_px, text in self.texts():
                painter.setPen(QColor(colours.faint))
                painter.drawLine(QPointF(x_px, HEIGHT_PX - 8), QPointF(x_px, HEIGHT_PX))
                painter.setPen(QColor(colours.text))
                painter.drawText(QPointF(x_px + _TEXT_LEFT_PX, 14), text)
            for mark in self._session.annotations.marks:
                flag = self._flag(mark)
                painter.fillRect(flag, QColor(colours.mark))
                painter.setPen(QColor(colours.background))
                painter.drawText(flag, Qt.AlignmentFlag.AlignCenter, mark.label)
        painter.setPen(QColor(colours.grid))
        painter.drawLine(0, HEIGHT_PX - 1, self.width(), HEIGHT_PX - 1)
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Qt: begins to move the view."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._dragged_from = (event.position().x(), self._session.viewport.start_ns)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Qt: moves the view with the pointer."""
        if self._dragged_from is not None:
            x_px, start_ns = self._dragged_from
            wanted_ns = start_ns - round((event.position().x() - x_px) * self.scale.ns_per_px)
            self._session.pan(wanted_ns - self._session.viewport.start_ns, "drag")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Qt: ends the move."""
        self._dragged_from = None

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Qt: zooms at the pointer."""
        notches = event.angleDelta().y() / WHEEL_STEP
        self._session.zoom(self.scale.time_ns(event.position().x()), ZOOM_PER_NOTCH**-notches, "wheel")

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Qt: marks, and where times count from."""
        if self._session.trace is not None:
            self.menu_at(QPointF(event.pos())).popup(event.globalPos())
