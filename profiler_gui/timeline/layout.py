"""From tracks to rows: groups, order, pins, collapsed tracks, heights. Pure functions; no Qt, no pixels of a device."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

TrackKey = tuple[int, int]
"""(rank, index into ``Trace.tracks``); curves that belong to no track have indices from ``CURVE_TRACKS`` down."""
CURVE_TRACKS = -100
"""Index of the group of memory curves; the curves stand below it at −101, −102 …"""
NO_TRACK = -1


class RowKind(StrEnum):
    """What a row shows."""

    GROUP = "group"
    SLICES = "slices"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class TrackNode:
    """A track as far as layout goes.

    Attributes:
        key: Which track.
        kind: What its row shows.
        label: What it is called.
        parent: Index of the enclosing track in ``key``'s rank, or NO_TRACK.
        sort_key: Order among siblings; ties keep the order given.
        lane_count: Depths of slices.
        counter: Index of the counter that is drawn, or −1.
    """

    key: TrackKey
    kind: RowKind
    label: str
    parent: int = NO_TRACK
    sort_key: int = 0
    lane_count: int = 0
    counter: int = -1


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What the user did to the tracks.

    Attributes:
        collapsed: Groups that show no children, tracks that show one strip.
        hidden: Tracks that are not shown.
        order: Parent (rank, track) → its children in the user's order; children not named follow.
        pins: Tracks on top, in the order they were pinned.
    """

    collapsed: frozenset[TrackKey] = frozenset()
    hidden: frozenset[TrackKey] = frozenset()
    order: Mapping[TrackKey, tuple[TrackKey, ...]] = field(default_factory=dict)
    pins: tuple[TrackKey, ...] = ()

    def with_collapsed_toggled(self, key: TrackKey) -> "Arrangement":
        """Returns the arrangement with a track collapsed or, if it was, expanded."""
        return replace(self, collapsed=self.collapsed ^ {key})


@dataclass(frozen=True, slots=True)
class Measures:
    """Heights in logical pixels.

    Attributes:
        lane_px: One depth of slices.
        min_track_px: No row of slices or counters is lower.
        counter_px: A counter.
        group_px: A group's header.
        gap_px: Between rows.
    """

    lane_px: int = 18
    min_track_px: int = 18
    counter_px: int = 40
    group_px: int = 24
    gap_px: int = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One drawn row.

    Attributes:
        node: What it shows.
        top_px: Below the top of its area (the pinned one or the scrolled one).
        height_px: Without the gap below.
        lane_px: Height of a lane.
        lane_count: Lanes shown.
        indent: Depth in the tree of groups.
        is_collapsed: Whether children are folded away, or all lanes into one strip of what runs innermost.
        is_collapsible: Whether there is anything to fold away.
        is_pinned: Whether it stands in the pinned area.
    """

    node: TrackNode
    top_px: int
    height_px: int
    lane_px: int
    lane_count: int
    indent: int
    is_collapsed: bool
    is_collapsible: bool
    is_pinned: bool

    @property
    def bottom_px(self) -> int:
        """The first pixel below."""
        return self.top_px + self.height_px

    @property
    def is_strip(self) -> bool:
        """Whether lanes are folded into one that shows, at every moment, the innermost slice."""
        return self.is_collapsed and self.node.lane_count > 1

    def lane_of(self, depth: int) -> int:
        """Returns in which of the row's lanes slices of a depth are drawn."""
        return 0 if self.is_strip else depth


@dataclass(frozen=True, slots=True)
class Layout:
    """All rows, from top to bottom.

    Attributes:
        pinned: The area that does not scroll.
        rows: The area that does.
        pinned_height_px: Of the pinned area.
        height_px: Of the scrolled area.
    """

    pinned: tuple[Row, ...]
    rows: tuple[Row, ...]
    pinned_height_px: int
    height_px: int

    def row_of(self, key: TrackKey) -> Row | None:
        """Returns the scrolled row of a track; None where it is folded away or hidden."""
        return next((row for row in self.rows if row.node.key == key), None)


def row_at(rows: Sequence[Row], y_px: float) -> Row | None:
    """Returns the row at a height; None in gaps and beyond."""
    index = bisect_right(rows, y_px, key=lambda row: row.top_px) - 1
    return rows[index] if index >= 0 and y_px < rows[index].bottom_px else None


def rows_between(rows: Sequence[Row], top_px: float, bottom_px: float) -> Sequence[Row]:
    """Returns the rows that reach into a stretch of heights."""
    first = max(bisect_right(rows, top_px, key=lambda row: row.top_px) - 1, 0)
    last = bisect_right(rows, bottom_px, key=lambda row: row.top_px)
    return rows[first:last]


def lay_out(nodes: Sequence[TrackNode], arrangement: Arrangement, measures: Measures) -> Layout:
    """Returns the rows of ``nodes``; groups without anything to show are left out.

    Nodes of several ranks may stand together: parents are looked up in their own rank.
    """
    children = _children(nodes, arrangement)
    by_key = {node.key: node for node in nodes}
    roots = [node for node in nodes if (node.key[0], node.parent) not in by_key]
    shown = [
        pair
        for root in _ordered(roots, arrangement.order.get((roots[0].key[0], NO_TRACK), ()) if roots else ())
        for pair in _visible(root, 0, children, arrangement)
    ]
    rows, height_px = _stacked(shown, arrangement, measures, children, is_pinned=False)
    pinned = [(by_key[key], 0) for key in arrangement.pins if key in by_key]
    pinned_rows, pinned_height_px = _stacked(pinned, arrangement, measures, children, is_pinned=True)
    return Layout(pinned_rows, rows, pinned_height_px, height_px)


def moved(nodes: Sequence[TrackNode], arrangement: Arrangement, key: TrackKey, before: TrackKey | None) -> Arrangement:
    """Returns the arrangement with a track moved before a sibling, or behind all of them.

    Pinned tracks move among the pins when both are pinned. A sibling of another group changes nothing.
    """
    by_key = {node.key: node for node in nodes}
    node = by_key[key]
    parent = (key[0], node.parent)
    siblings = [item for item in nodes if (item.key[0], item.parent) == parent]
    keys = [item.key for item in _ordered(siblings, arrangement.order.get(parent, ()))]
    if before == key or (before is not None and before not in keys):
        return arrangement
    keys.remove(key)
    keys.insert(len(keys) if before is None else keys.index(before), key)
    return replace(arrangement, order={**arrangement.order, parent: tuple(keys)})


def next_sibling(nodes: Sequence[TrackNode], arrangement: Arrangement, key: TrackKey, step: int) -> TrackKey | None:
    """Returns the track before which ``key`` must be moved to go up (−1) or down (1) by one; None for "the end"."""
    node = next(item for item in nodes if item.key == key)
    siblings = [item for item in nodes if item.key[0] == key[0] and item.parent == node.parent]
    keys = [item.key for item in _ordered(siblings, arrangement.order.get((key[0], node.parent), ()))]
    position = keys.index(key) + (step if step < 0 else step + 1)
    return keys[max(position, 0)] if position < len(keys) else None


def _children(nodes: Sequence[TrackNode], arrangement: Arrangement) -> dict[TrackKey, list[TrackNode]]:
    grouped: dict[TrackKey, list[TrackNode]] = {}
    for node in nodes:
        grouped.setdefault((node.key[0], node.parent), []).append(node)
    return {parent: _ordered(items, arrangement.order.get(parent, ())) for parent, items in grouped.items()}


def _ordered(nodes: Sequence[TrackNode], order: Sequence[TrackKey]) -> list[TrackNode]:
    place = {key: index for index, key in enumerate(order)}
    return sorted(nodes, key=lambda node: (place.get(node.key, len(place)), node.sort_key))


def _visible(
    node: TrackNode, indent: int, children: Mapping[TrackKey, list[TrackNode]], arrangement: Arrangement
) -> Iterator[tuple[TrackNode, int]]:
    if node.key in arrangement.hidden or not _has_content(node, children):
        return
    yield node, indent
    if node.key not in arrangement.collapsed or node.kind is not RowKind.GROUP:
        for child in children.get(node.key, ()):
            yield from _visible(child, indent + 1, children, arrangement)


def _has_content(node: TrackNode, children: Mapping[TrackKey, list[TrackNode]]) -> bool:
    return (
        node.lane_count > 0
        or node.counter >= 0
        or any(_has_content(child, children) for child in children.get(node.key, ()))
    )


def _stacked(
    shown: Sequence[tuple[TrackNode, int]],
    arrangement: Arrangement,
    measures: Measures,
    children: Mapping[TrackKey, list[TrackNode]],
    *,
    is_pinned: bool,
) -> tuple[tuple[Row, ...], int]:
    rows = []
    top_px = 0
    for node, indent in shown:
        is_collapsed = node.key in arrangement.collapsed
        lanes = min(node.lane_count, 1) if is_collapsed else node.lane_count
        if node.kind is RowKind.GROUP and not lanes:
            height_px, lane_px = measures.group_px, 0
        elif node.kind is RowKind.COUNTER:
            height_px, lane_px = max(measures.counter_px, measures.min_track_px), 0
        else:
            lane_px = max(measures.lane_px, measures.min_track_px if lanes == 1 else 0)
            height_px = max(lanes * lane_px, measures.min_track_px)
        is_collapsible = node.lane_count > 1 or (node.kind is RowKind.GROUP and bool(children.get(node.key)))
        rows.append(Row(node, top_px, height_px, lane_px, lanes, indent, is_collapsed, is_collapsible, is_pinned))
        top_px += height_px + measures.gap_px
    return tuple(rows), top_px
