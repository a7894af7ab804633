"""What the parts of the timeline share and nobody else needs: rows, scroll position, pointer, ruler origin."""

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from profiler_gui.session.selection import EventSelection, TrackSelection
from profiler_gui.session.session import Session
from profiler_gui.timeline.counters import Counter
from profiler_gui.timeline.kept_arrangement import arrangement_of, arrangement_text
from profiler_gui.timeline.layout import (
    Arrangement,
    Layout,
    Measures,
    TrackKey,
    TrackNode,
    lay_out,
    moved,
    next_sibling,
)
from profiler_gui.timeline.nodes import first_folds, group_labels, nodes_of
from profiler_gui.timeline.settings import LANE_HEIGHT_PX
from profiler_gui.toolkit.preferences import MIN_TRACK_HEIGHT_PX
from profiler_gui.toolkit.settings import SettingsStore

KEPT_NAME = "timeline"
"""Under what the arrangement of a capture is kept."""


class TimelineState(QObject):
    """View-local state of one timeline. Rows are derived from the trace, the arrangement and the settings.

    Signals:
        layout_changed: Other rows, or rows elsewhere.
        scroll_changed: Rows are scrolled to another height (logical px).
        origin_changed: The ruler counts from another moment.
        visible_height_changed: The canvas is higher or lower.
    """

    layout_changed = Signal()
    scroll_changed = Signal(int)
    origin_changed = Signal()
    visible_height_changed = Signal()

    def __init__(self, session: Session, settings: SettingsStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._settings = settings
        self._arrangement = Arrangement()
        self._arranged_ranks: frozenset[int] = frozenset()
        self._layout: Layout | None = None
        self._scroll_px = 0
        self._visible_height_px = 0
        self._origin_ns = 0
        self.cursor_ns: int | None = None
        session.document_changed.connect(self._take_document)
        session.rank_changed.connect(self._take_rank)
        session.summary_changed.connect(self._rebuild)
        session.annotations_changed.connect(self._rebuild)
        settings.changed.connect(self._on_setting)
        self._restore()

    @property
    def nodes(self) -> tuple[TrackNode, ...]:
        """The tracks of the rank in view."""
        return self._tracks[0]

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The counters of the rank in view."""
        return self._tracks[1]

    @property
    def arrangement(self) -> Arrangement:
        """How the tracks are arranged; pins are the session's."""
        return replace(self._arrangement, pins=self._session.annotations.pins)

    @property
    def layout(self) -> Layout:
        """The rows."""
        if self._layout is None:
            measures = Measures(
                lane_px=self._settings.value(LANE_HEIGHT_PX), min_track_px=self._settings.value(MIN_TRACK_HEIGHT_PX)
            )
            self._layout = lay_out(self.nodes, self.arrangement, measures)
        return self._layout

    @property
    def scroll_px(self) -> int:
        """How far the rows below the pinned ones are scrolled."""
        return self._scroll_px

    @property
    def max_scroll_px(self) -> int:
        """The furthest they can be scrolled."""
        room_px = max(self._visible_height_px - self.layout.pinned_height_px, 0)
        return max(self.layout.height_px - room_px, 0)

    @property
    def visible_height_px(self) -> int:
        """Of the canvas."""
        return self._visible_height_px

    @property
    def origin_ns(self) -> int:
        """The moment the ruler counts from."""
        return self._origin_ns

    def set_visible_height(self, height_px: int) -> None:
        """Says how high the canvas is."""
        self._visible_height_px = height_px
        self.scroll_to(self._scroll_px)
        self.visible_height_changed.emit()

    def scroll_to(self, scroll_px: int) -> None:
        """Scrolls, as far as there are rows."""
        scroll_px = min(max(scroll_px, 0), self.max_scroll_px)
        if scroll_px != self._scroll_px:
            self._scroll_px = scroll_px
            self.scroll_changed.emit(scroll_px)

    def set_origin(self, origin_ns: int) -> None:
        """Makes the ruler count from a moment (0: the trace start)."""
        if origin_ns != self._origin_ns:
            self._origin_ns = origin_ns
            self.origin_changed.emit()

    def toggle_collapsed(self, key: TrackKey) -> None:
        """Folds a group or a track, or unfolds it."""
        self._arrange(self._arrangement.with_collapsed_toggled(key))

    def collapse_all(self) -> None:
        """Folds every group and every track of more than one lane."""
        keys = {row.node.key for row in self.layout.rows if row.is_collapsible}
        self._arrange(replace(self._arrangement, collapsed=self._arrangement.collapsed | keys))

    def expand_all(self) -> None:
        """Unfolds everything."""
        self._arrange(replace(self._arrangement, collapsed=frozenset()))

    def move(self, key: TrackKey, before: TrackKey | None) -> None:
        """Moves a track before a sibling, or (None) behind all of them."""
        self._arrange(replace(moved(self.nodes, self.arrangement, key, before), pins=()))

    def move_by(self, key: TrackKey, step: int) -> None:
        """Moves a track up (−1) or down (1) among its siblings."""
        self.move(key, next_sibling(self.nodes, self.arrangement, key, step))

    def hide(self, key: TrackKey) -> None:
        """Takes a track out of the view."""
        self._arrange(replace(self._arrangement, hidden=self._arrangement.hidden | {key}))

    def show_hidden(self) -> None:
        """Brings all hidden tracks back."""
        self._arrange(replace(self._arrangement, hidden=frozenset()))

    def toggle_pin(self, key: TrackKey) -> None:
        """Pins a track on top, or unpins it."""
        rank, track = key
        self._session.annotate(self._session.annotations.with_pin_toggled(rank, track))

    def reveal_selection(self) -> None:
        """Unfolds groups and scrolls to the row of the selected event or track."""
        found = self.selected_place()
        if found is None:
            return
        key, depth = found
        self._bring_into_layout(key)
        row = self.layout.row_of(key)
        if row is None:
            return
        top_px = row.top_px + min(row.lane_of(depth), max(row.lane_count - 1, 0)) * row.lane_px
        bottom_px = top_px + (row.lane_px or row.height_px)
        room_px = self._visible_height_px - self.layout.pinned_height_px
        if bottom_px <= self._scroll_px or top_px >= self._scroll_px + room_px:
            self.scroll_to(top_px - max(room_px // 3, 0))
        elif top_px < self._scroll_px:
            self.scroll_to(top_px)
        elif bottom_px > self._scroll_px + room_px:
            self.scroll_to(bottom_px - room_px)

    def next_track(self, step: int) -> TrackKey | None:
        """Returns the track of the row below (1) or above (−1) the selected one; the first row without any."""
        keys = [row.node.key for row in self.layout.rows if row.node.key[1] >= 0]
        place = self.selected_place()
        if not keys or place is None or place[0] not in keys:
            return keys[0] if keys else None
        return keys[min(max(keys.index(place[0]) + step, 0), len(keys) - 1)]

    def selected_place(self) -> tuple[TrackKey, int] | None:
        """Returns track and depth of the selected event or track; None where neither is selected."""
        trace = self._session.trace
        match self._session.selection:
            case EventSelection(rank, event) if trace is not None and rank == self._session.rank:
                return (rank, int(trace.events.track[event])), int(trace.events.depth[event])
            case TrackSelection(rank, track):
                return (rank, track), 0
        return None

    def _bring_into_layout(self, key: TrackKey) -> None:
        """Unfolds the groups around a track; a track that is folded itself shows its slices in its strip."""
        by_key = {node.key: node for node in self.nodes}
        folded = set()
        node = by_key.get(key)
        while node is not None and (node.key[0], node.parent) in by_key:
            node = by_key[(node.key[0], node.parent)]
            folded.add(node.key)
        arrangement = self._arrangement
        self._arrange(
            replace(
                arrangement,
                collapsed=arrangement.collapsed - folded,
                hidden=arrangement.hidden - folded - {key},
            )
        )

    @property
    def _tracks(self) -> tuple[tuple[TrackNode, ...], tuple[Counter, ...]]:
        trace, rank = self._session.trace, self._session.rank
        if trace is None:
            return (), ()
        summary = self._session.job_summary
        collectives = summary.communication.collectives.get(rank, ()) if summary else ()
        return self._session.derived(
            ("timeline.nodes", rank), lambda: nodes_of(trace, rank, group_labels(trace, collectives))
        )

    def _arrange(self, arrangement: Arrangement) -> None:
        document = self._session.document
        if arrangement != self._arrangement and document is not None:
            self._arrangement = arrangement
            text = arrangement_text(arrangement, self._arranged_ranks)
            self._settings.save_capture_state(document.key, KEPT_NAME, text)
            self._rebuild()

    def _restore(self) -> None:
        document = self._session.document
        text = self._settings.capture_state(document.key, KEPT_NAME) if document else ""
        self._arrangement, self._arranged_ranks = arrangement_of(text)
        self._fold_new_rank()

    def _fold_new_rank(self) -> None:
        trace, rank = self._session.trace, self._session.rank
        if trace is not None and rank not in self._arranged_ranks:
            self._arranged_ranks |= {rank}
            folds = first_folds(trace, self.nodes)
            self._arrangement = replace(self._arrangement, collapsed=self._arrangement.collapsed | folds)

    def _rebuild(self) -> None:
        self._layout = None
        self.layout_changed.emit()
        self.scroll_to(self._scroll_px)

    def _take_rank(self) -> None:
        self._fold_new_rank()
        self._rebuild()

    def _take_document(self) -> None:
        self._restore()
        self._scroll_px = 0
        self.cursor_ns = None
        self._layout = None
        self.set_origin(0)
        self.layout_changed.emit()
        self.scroll_changed.emit(0)

    def _on_setting(self, setting_id: str) -> None:
        if setting_id in (LANE_HEIGHT_PX.id, MIN_TRACK_HEIGHT_PX.id):
            self._rebuild()
