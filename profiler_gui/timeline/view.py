"""The Timeline as one widget: minimap, ruler, headers, canvas, legend."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QScrollBar, QSplitter, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.timeline import minimap, ruler
from profiler_gui.timeline.canvas import TimelineCanvas
from profiler_gui.timeline.headers import WIDTH_PX, TrackHeaders
from profiler_gui.timeline.legend import Legend
from profiler_gui.timeline.minimap import Minimap
from profiler_gui.timeline.pointer import TimelinePointer
from profiler_gui.timeline.ruler import TimeRuler
from profiler_gui.timeline.state import TimelineState
from profiler_gui.toolkit.translations import tr


class TimelineView(QWidget):
    """The rows of the rank in view on one time axis.

    Args:
        context: Of the window, or with another session.
        state: Rows and scroll position.
        is_compact: Whether it stands beside another one: without minimap and legend.
    """

    def __init__(
        self, context: PaneContext, state: TimelineState, parent: QWidget | None = None, *, is_compact: bool = False
    ) -> None:
        super().__init__(parent)
        self._is_compact = is_compact
        session, theme = context.session, context.theme
        self._session = session
        self._state = state
        self.canvas = TimelineCanvas(session, state, theme, self)
        self.headers = TrackHeaders(session, state, theme, self)
        self.ruler = TimeRuler(session, state, context.settings, theme, self)
        self.minimap = Minimap(session, state, self.canvas, theme, self)
        self.legend = Legend(theme, self)
        self.pointer = TimelinePointer(self.canvas, state, context)
        self._scroll_bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._scroll_bar.setAccessibleName(tr("Scroll tracks"))
        self._corner = QLabel(self)
        self._corner.setAccessibleName(tr("Rank in view"))
        self._arrange()
        self._connect(context)
        self._show_scroll_range()
        self._show_rank()

    def _arrange(self) -> None:
        self.minimap.setVisible(not self._is_compact)
        self.legend.setVisible(not self._is_compact)
        self._corner.setFixedHeight(ruler.HEIGHT_PX + (0 if self._is_compact else minimap.HEIGHT_PX))
        self._corner.setIndent(8)
        left, right = QWidget(self), QWidget(self)
        for column, widgets in (
            (left, (self._corner, self.headers)),
            (right, (self.minimap, self.ruler, self.canvas)),
        ):
            box = QVBoxLayout(column)
            box.setContentsMargins(0, 0, 0, 0)
            box.setSpacing(0)
            for widget in widgets:
                box.addWidget(widget)
            box.setStretch(len(widgets) - 1, 1)
        splitter = QSplitter(Qt.Orientation.Horizontal, self)
        splitter.setHandleWidth(3)
        splitter.addWidget(left)
        splitter.addWidget(right)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([WIDTH_PX, 10_000])
        splitter.setCollapsible(1, False)
        row = QHBoxLayout()
        row.setSpacing(0)
        row.addWidget(splitter, 1)
        row.addWidget(self._scroll_bar)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addLayout(row, 1)
        whole.addWidget(self.legend)
        self.setFocusProxy(self.canvas)
        self.setAccessibleName(tr("Timeline"))

    def _connect(self, context: PaneContext) -> None:
        session, state = self._session, self._state
        context.closing.requested.connect(self.canvas.close_threads)
        self._scroll_bar.valueChanged.connect(state.scroll_to)
        state.scroll_changed.connect(self._scroll_bar.setValue)
        state.layout_changed.connect(self._show_scroll_range)
        state.visible_height_changed.connect(self._show_scroll_range)
        session.document_changed.connect(self._show_rank)
        session.rank_changed.connect(self._show_rank)

    def _show_scroll_range(self) -> None:
        self._scroll_bar.setRange(0, self._state.max_scroll_px)
        self._scroll_bar.setPageStep(max(self._state.visible_height_px, 1))
        self._scroll_bar.setSingleStep(40)
        self._scroll_bar.setVisible(self._state.max_scroll_px > 0)

    def _show_rank(self) -> None:
        trace = self._session.trace
        if trace is None:
            self._corner.setText("")
            return
        device = trace.metadata.device or ""
        self._corner.setText(tr("Rank {rank}", rank=self._session.rank) + (f"\n{device}" if device else ""))
