"""Between positions on the canvas and what is drawn there: hits, rectangles of events, snapping."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

from engine.trace import Trace
from profiler_gui.timeline.lanes import Lanes
from profiler_gui.timeline.layout import Layout, Row, TrackKey, row_at
from profiler_gui.toolkit.time_axis import TimeScale

HIT_PX = 3
"""How far from a thin slice the pointer may be."""
SNAP_PX = 7
"""How near an edge attracts the pointer while a range is dragged."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What is under a point.

    Attributes:
        row: The row.
        depth: Lane of the row, or −1 where it has none.
        event: Event row of the trace, or −1.
    """

    row: Row
    depth: int
    event: int


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The geometry of one state of the canvas. Heights and positions are logical pixels of the canvas.

    Attributes:
        layout: The rows.
        scroll_px: How far the unpinned rows are scrolled.
        scale: Time to x.
        lanes_of: Lanes of a row; None while they are made.
    """

    layout: Layout
    scroll_px: int
    scale: TimeScale
    lanes_of: Callable[[Row], Lanes | None]

    def row_under(self, y_px: float) -> tuple[Row, float] | None:
        """Returns the row at a height and how far below its top the height is."""
        if y_px < self.layout.pinned_height_px:
            row = row_at(self.layout.pinned, y_px)
            return (row, y_px - row.top_px) if row else None
        inside_px = y_px - self.layout.pinned_height_px + self.scroll_px
        row = row_at(self.layout.rows, inside_px)
        return (row, inside_px - row.top_px) if row else None

    def hit(self, point: QPointF) -> Hit | None:
        """Returns what is under a point; None between rows. Costs a binary search."""
        found = self.row_under(point.y())
        if found is None:
            return None
        row, below_px = found
        depth = int(below_px // row.lane_px) if row.lane_px else -1
        lanes = self.lanes_of(row) if 0 <= depth < row.lane_count else None
        if lanes is None or depth >= len(lanes):
            return Hit(row, depth if 0 <= depth < row.lane_count else -1, -1)
        time_ns = self.scale.start_ns + int(point.x() * self.scale.ns_per_px)
        index = lanes[depth].slice_at(time_ns, int(HIT_PX * self.scale.ns_per_px))
        return Hit(row, depth, int(lanes[depth].events[index]) if index >= 0 else -1)

    def snapped(self, point: QPointF) -> tuple[int, bool]:
        """Returns the time at a point, or that of the nearest edge of a slice of the lane there, and which it is."""
        time_ns = self.scale.time_ns(point.x())
        hit = self.hit(point)
        lanes = self.lanes_of(hit.row) if hit and hit.depth >= 0 else None
        if hit is None or lanes is None or hit.depth >= len(lanes):
            return time_ns, False
        lane = lanes[hit.depth]
        reach_ns = max(int(SNAP_PX * self.scale.ns_per_px), 1)
        edges_ns = []
        for probe_ns in (time_ns - reach_ns, time_ns, time_ns + reach_ns):
            index = lane.slice_at(probe_ns, reach_ns)
            if index >= 0:
                start_ns = int(lane.start_ns[index])
                edges_ns += [start_ns, start_ns + int(lane.duration_ns[index])]
        nearest_ns = min(edges_ns, key=lambda edge_ns: abs(edge_ns - time_ns), default=None)
        if nearest_ns is None or abs(nearest_ns - time_ns) > reach_ns:
            return time_ns, False
        return nearest_ns, True

    def rows_of(self, key: TrackKey) -> Iterator[tuple[Row, float]]:
        """Yields every row of a track (pinned, scrolled) with the y of its top on the canvas."""
        for row in self.layout.pinned:
            if row.node.key == key:
                yield row, float(row.top_px)
        for row in self.layout.rows:
            if row.node.key == key:
                yield row, float(row.top_px + self.layout.pinned_height_px - self.scroll_px)

    def rectangles(self, trace: Trace, rank: int, event: int) -> Iterator[tuple[Row, QRectF]]:
        """Yields where an event is drawn, at least one pixel wide; nothing where its row or lane is folded away."""
        events = trace.events
        start_ns, depth = int(events.start_ns[event]), int(events.depth[event])
        left_px = self.scale.x_px(start_ns)
        right_px = self.scale.x_px(start_ns + int(events.duration_ns[event]))
        # Painters take coordinates beyond a few million pixels badly.
        left_px, right_px = max(left_px, -10.0), min(max(right_px, left_px + 1.0), self.scale.width_px + 10.0)
        for row, top_px in self.rows_of((rank, int(events.track[event]))):
            lane = row.lane_of(depth)
            if lane < row.lane_count:
                y_px = top_px + lane * row.lane_px
                yield row, QRectF(left_px, y_px, max(right_px - left_px, 1.0), row.lane_px - 1)
