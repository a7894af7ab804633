"""The tracks, counters and memory curves of a trace as nodes for the layout."""

from engine.trace import Trace, TrackKind
from profiler_gui.timeline.counters import Counter, counters_of
from profiler_gui.timeline.lanes import lane_counts
from profiler_gui.timeline.layout import CURVE_TRACKS, NO_TRACK, RowKind, TrackNode
from profiler_gui.toolkit.translations import tr

_SERIES_TRACKS = -10_000
"""Series that share a track stand below it with indices from here down."""


def nodes_of(trace: Trace, rank: int) -> tuple[tuple[TrackNode, ...], tuple[Counter, ...]]:
    """Returns the nodes of a rank in the order of the trace, and the counters they name by index."""
    found = counters_of(trace)
    series: dict[int, list[int]] = {}
    for index, (track, _) in enumerate(found):
        series.setdefault(track, []).append(index)
    counters = tuple(counter for _, counter in found)
    nodes = []
    for track, lane_count in enumerate(lane_counts(trace)):
        nodes += _track_nodes(trace, rank, track, lane_count, series.get(track, []), counters)
    return (*nodes, *_curve_nodes(trace, rank, series.get(NO_TRACK, []), counters)), counters


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
