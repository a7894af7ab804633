"""The drawn part of the timeline: slices and counters, with what is painted over them."""

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontDatabase, QImage, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.trace import Trace
from profiler_gui.session.selection import EventSelection
from profiler_gui.session.session import Session
from profiler_gui.timeline.coloring import EventColors
from profiler_gui.timeline.emphasis import emphasis_of
from profiler_gui.timeline.frame import FrameRenderer, Scene
from profiler_gui.timeline.lane_loader import LaneLoader
from profiler_gui.timeline.lanes import LaneMaker, Lanes
from profiler_gui.timeline.layout import Row
from profiler_gui.timeline.overlays import (
    DraggedRange,
    flows_of,
    paint_flows,
    paint_marks,
    paint_outline,
    paint_range,
    paint_snaps,
)
from profiler_gui.timeline.palette import slice_palette
from profiler_gui.timeline.places import Hit, Places
from profiler_gui.timeline.state import TimelineState
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.time_axis import TimeScale
from profiler_gui.toolkit.translations import tr


class TimelineCanvas(QWidget):
    """Paints the rows of the rank in view and keeps the lanes they are painted from.

    Mouse and wheel are handled by ``TimelinePointer``, which is installed as an event filter.

    Signals:
        lanes_changed: Lanes of a track have arrived.
    """

    lanes_changed = Signal()

    def __init__(self, session: Session, state: TimelineState, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._state = state
        self._theme = theme
        self._palette = slice_palette(theme.colours)
        self._loader = LaneLoader(self)
        self._trace: Trace | None = None
        self._colors: EventColors | None = None
        self._renderer: FrameRenderer | None = None
        self._frame = QImage()
        self._frame_is_stale = True
        self._emphasised_by: object = None
        self._hovered: Hit | None = None
        self._dragged: DraggedRange | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(tr("Timeline"))
        self._connect()
        self._take_trace()

    @property
    def places(self) -> Places:
        """The geometry of what is on the screen now."""
        viewport = self._session.viewport
        scale = TimeScale(viewport.start_ns, viewport.end_ns, max(self.width(), 1))
        return Places(self._state.layout, self._state.scroll_px, scale, self.lanes_of)

    @property
    def is_loading(self) -> bool:
        """Whether lanes of tracks in view are still being made."""
        return self._loader.is_busy

    @property
    def frame_is_stale(self) -> bool:
        """Whether the next paint draws the rows anew (names may be left over from the last one)."""
        return self._frame_is_stale

    def lanes_of(self, row: Row) -> Lanes | None:
        """Returns the lanes of a row; None while they are made."""
        track = row.node.key[1]
        return self._loader.lanes(track, is_strip=row.is_strip) if track >= 0 and self._trace is not None else ()

    def set_hovered(self, hit: Hit | None) -> None:
        """Outlines another slice, or none."""
        if hit != self._hovered:
            self._hovered = hit
            self.update()

    def set_dragged(self, dragged: DraggedRange | None) -> None:
        """Shows a range that is being dragged, or none."""
        self._dragged = dragged
        self.update()

    def close_threads(self) -> None:
        """Ends the thread that makes lanes. Must be called before the program ends."""
        self._loader.close()

    def _connect(self) -> None:
        session, state = self._session, self._state
        for signal in (session.document_changed, session.rank_changed, session.search_changed, session.filter_changed):
            signal.connect(self._take_trace)
        for signal in (session.viewport_changed, state.layout_changed, state.scroll_changed, state.origin_changed):
            signal.connect(self._repaint_rows)
        session.selection_changed.connect(self._show_selection)
        session.annotations_changed.connect(self.update)
        self._theme.changed.connect(self._take_theme)
        self._loader.loaded.connect(self._on_lanes)
        self._loader.ready.connect(self._on_lanes)

    def _take_trace(self) -> None:
        trace, session = self._session.trace, self._session
        keep = trace is self._trace
        if not keep:
            font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
            self._renderer = FrameRenderer(font, trace.strings.text, len(trace.strings)) if trace else None
            self._hovered = self._dragged = None
            self._colors = EventColors(trace) if trace else None
        self._trace = trace
        self._emphasised_by, emphasis = emphasis_of(session)
        maker = None
        if trace is not None and self._colors is not None:
            maker = LaneMaker(trace, self._colors, emphasis, session.hidden_categories)
        self._loader.set_maker(maker, keep=keep)
        self._repaint_rows()

    def _take_theme(self) -> None:
        self._palette = slice_palette(self._theme.colours)
        self._repaint_rows()

    def _on_lanes(self) -> None:
        self._repaint_rows()
        self.lanes_changed.emit()

    def _repaint_rows(self) -> None:
        self._frame_is_stale = True
        self.update()

    def _show_selection(self) -> None:
        self._state.reveal_selection()
        if emphasis_of(self._session)[0] != self._emphasised_by:
            self._take_trace()
        selection = self._session.selection
        if isinstance(selection, EventSelection) and self._trace is not None:
            self.setAccessibleDescription(tr("Selected: {name}", name=self._trace.name(selection.event)))
        else:
            self.setAccessibleDescription("")
        self.update()

    def _paint_rows(self, painter: QPainter) -> None:
        viewport = self._session.viewport
        if self._renderer is None or self._trace is None or not self._loader.is_ready:
            painter.fillRect(self.rect(), self._theme.colour(lambda roles: roles.background))
            if self._trace is not None:
                painter.setPen(self._theme.colour(lambda roles: roles.faint))
                painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, tr("Preparing the timeline…"))
            return
        if self._frame_is_stale or self._frame.devicePixelRatio() != self.devicePixelRatioF():
            self._frame_is_stale = False
            scene = Scene(
                layout=self._state.layout,
                scroll_px=self._state.scroll_px,
                start_ns=viewport.start_ns,
                end_ns=viewport.end_ns,
                origin_ns=self._state.origin_ns,
                lanes_of=self.lanes_of,
                counters=self._state.counters,
                names=self._trace.events.name,
                palette=self._palette,
                colours=self._theme.colours,
            )
            self._frame = self._renderer.render(scene, self.width(), self.height(), self.devicePixelRatioF())
            if not self._renderer.is_complete:
                self._repaint_rows()
        painter.drawImage(QPointF(0, 0), self._frame)

    def _paint_overlays(self, painter: QPainter, trace: Trace) -> None:
        session, colours, places = self._session, self._theme.colours, self.places
        height_px = self.height()
        paint_marks(painter, places, height_px, session.annotations.marks, colours)
        selection = session.selection
        dragged = self._dragged
        if dragged is not None:
            start_ns, end_ns = sorted((dragged.start_ns, dragged.end_ns))
            paint_range(painter, places, height_px, (start_ns, end_ns), colours)
            paint_snaps(painter, places, height_px, dragged.snapped_ns, colours)
        elif not isinstance(selection, EventSelection) and session.selected_time_range is not None:
            paint_range(painter, places, height_px, session.selected_time_range, colours)
        if self._hovered is not None and self._hovered.event >= 0:
            self._outline(painter, trace, self._hovered.event, colours.hover, 1)
        if isinstance(selection, EventSelection) and selection.rank == session.rank:
            key = ("timeline.flows", session.rank, selection.event)
            flows = session.derived(key, lambda: flows_of(trace, selection.event))
            paint_flows(painter, places, trace, session.rank, selection.event, flows, colours)
            self._outline(painter, trace, selection.event, colours.selection, 2)

    def _outline(self, painter: QPainter, trace: Trace, event: int, colour: str, width_px: int) -> None:
        places = self.places
        pinned_px = places.layout.pinned_height_px
        for row, rectangle in places.rectangles(trace, self._session.rank, event):
            painter.save()
            if not row.is_pinned:
                painter.setClipRect(QRectF(0, pinned_px, self.width(), self.height() - pinned_px))
            paint_outline(painter, rectangle, colour, width_px)
            painter.restore()

    # Qt's overrides

    def paintEvent(self, event: QPaintEvent) -> None:
        """Qt: paints the rows (anew only where they changed) and what lies over them."""
        painter = QPainter(self)
        self._paint_rows(painter)
        if self._trace is not None:
            self._paint_overlays(painter, self._trace)
        if self._trace is not None and self.hasFocus():
            paint_outline(painter, QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), self._theme.colours.range, 1)
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Qt: another size shows other rows."""
        self._state.set_visible_height(self.height())
        self._repaint_rows()
        super().resizeEvent(event)
