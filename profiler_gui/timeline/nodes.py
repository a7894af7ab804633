"""The tracks, counters and memory curves of a trace as nodes for the layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.trace import Trace, TrackKind
from profiler_gui.timeline.counters import Counter, counters_of
from profiler_gui.timeline.lanes import lane_counts
from profiler_gui.timeline.layout import CURVE_TRACKS, NO_TRACK, RowKind, TrackKey, TrackNode
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication.collectives import Collective

MAX_HOST_LANES_AT_FIRST = 12
"""As long as the host's tracks have more lanes together, the deepest is folded: the device stays in view."""
GROUP_CHARACTERS = 4
"""Last ones of a group's hash (first ones are often equal), behind the framework's word for it."""
_HOST_KINDS = (TrackKind.HOST_THREAD, TrackKind.CANN_THREAD)
_SERIES_TRACKS = -10_000
"""Series that share a track stand below it with indices from here down."""


def nodes_of(
    trace: Trace, rank: int, labels: Mapping[int, str] | None = None
) -> tuple[tuple[TrackNode, ...], tuple[Counter, ...]]:
    """Returns the nodes of a rank in the order of the trace, and the counters they name by index.

    Args:
        trace: Whose tracks.
        rank: Its rank.
        labels: Track → what it is called instead of its own name.
    """
    found = counters_of(trace)
    series: dict[int, list[int]] = {}
    for index, (track, _) in enumerate(found):
        series.setdefault(track, []).append(index)
    counters = tuple(counter for _, counter in found)
    nodes = []
    for track, lane_count in enumerate(lane_counts(trace)):
        nodes += _track_nodes(trace, rank, track, lane_count, series.get(track, []), counters)
    labelled = [replace(node, label=(labels or {}).get(node.key[1], node.label)) for node in nodes]
    return (*labelled, *_curve_nodes(trace, rank, series.get(NO_TRACK, []), counters)), counters


def first_folds(trace: Trace, nodes: Sequence[TrackNode]) -> frozenset[TrackKey]:
    """Returns the tracks that are folded until the user unfolds them.

    Deep call stacks of host threads would push the device below the edge of the screen. Without a device they are what
    the capture is about.
    """
    filled = [(node, trace.tracks[node.key[1]].kind) for node in nodes if node.lane_count]
    if TrackKind.DEVICE_STREAM not in {kind for _, kind in filled}:
        return frozenset()
    host = sorted((node for node, kind in filled if kind in _HOST_KINDS), key=lambda node: -node.lane_count)
    lanes = sum(node.lane_count for node in host)
    folded = set()
    for node in host:
        if lanes <= MAX_HOST_LANES_AT_FIRST or node.lane_count == 1:
            break
        folded.add(node.key)
        lanes -= node.lane_count - 1
    return frozenset(folded)


def group_labels(trace: Trace, collectives: Sequence[Collective]) -> dict[int, str]:
    """Returns track → label for the communication groups that the framework has a word for (``"dp_cp · …1612"``)."""
    words = {item.group: item.group_name for item in collectives if item.group and item.group_name}
    words |= {group.id: words.get(group.id) or group.name for group in trace.metadata.parallel_groups if group.name}
    return {
        track: f"{words[described.group]} · {_shortened(described.group)}"
        for track, described in enumerate(trace.tracks)
        if described.kind is TrackKind.COMMUNICATION_GROUP and words.get(described.group)
    }


def _shortened(group: str) -> str:
    return group if len(group) <= GROUP_CHARACTERS + 1 else "…" + group[-GROUP_CHARACTERS:]


def _track_nodes(
    trace: Trace, rank: int, track: int, lane_count: int, series: list[int], counters: tuple[Counter, ...]
) -> list[TrackNode]:
    described = trace.tracks[track]
    key = (rank, track)
    label = described.name or tr("Track {number}", number=track)
    parent, sort_key = described.parent, described.sort_key
    if len(series) == 1 and not lane_count:
        return [TrackNode(key, RowKind.COUNTER, label, parent, sort_key, 0, series[0])]
    kind = RowKind.GROUP if described.kind is TrackKind.PROCESS or series else RowKind.SLICES
    below = [
        TrackNode((rank, _SERIES_TRACKS - index), RowKind.COUNTER, counters[index].label, track, 0, 0, index)
        for index in series
    ]
    return [TrackNode(key, kind, label, parent, sort_key, lane_count), *below]


def _curve_nodes(trace: Trace, rank: int, series: list[int], counters: tuple[Counter, ...]) -> list[TrackNode]:
    if not series:
        return []
    last = max((track.sort_key for track in trace.tracks), default=0) + 1
    group = TrackNode((rank, CURVE_TRACKS), RowKind.GROUP, tr("Memory"), NO_TRACK, last)
    curves = [
        TrackNode(
            (rank, CURVE_TRACKS - 1 - place), RowKind.COUNTER, counters[index].label, CURVE_TRACKS, place, 0, index
        )
        for place, index in enumerate(series)
    ]
    return [group, *curves]
