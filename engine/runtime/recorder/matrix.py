"""communication_matrix: which pair of ranks moved how much, per kind of operator.

The transfer of a collective is taken to reach every other member of its group in equal parts at the same time, as in a
mesh; a send reaches its peer.
"""

import numpy as np

from engine.graph.collective_kinds import POINT_TO_POINT, collective_kind
from engine.trace.strings import ABSENT, StringInterner
from engine.trace.tables import RecordedTable
from engine.trace.trace import Trace

BYTES_PER_MB = 1_000_000
NS_PER_MS = 1_000_000
_TEXTS = ("Step", "Kind", "Operator", "Group", "Source", "Destination", "Transport Type", "Op Name")
_NUMBERS = ("Transit Size(MB)", "Transit Time(ms)", "Bandwidth(GB/s)")
_DIGITS = 4
LOCAL = "LOCAL"

Move = tuple[str, float, float, str]
"""Operator, MB, ms, link."""


def matrix_table(trace: Trace, words: StringInterner) -> RecordedTable:
    """Returns the table: per step, kind of operator, group and pair the fastest, middle, slowest and the sum."""
    texts: list[list[str]] = []
    numbers: list[list[float]] = []
    for (step, kind, operation, group), moves in _moves(trace).items():
        ranked = sorted(moves, key=lambda move: -move[1] / move[2] if move[2] else 0.0)
        for suffix, move in _chosen(ranked):
            for source, destination in _pairs(trace, group):
                name, size_mb, time_ms, link = (move[0], 0.0, 0.0, LOCAL) if source == destination else move
                texts.append([step, kind, f"{operation}-{suffix}", group, source, destination, link, name])
                numbers.append([size_mb, time_ms, round(size_mb / time_ms, _DIGITS) if time_ms else 0.0])
    return RecordedTable(
        name="communication_matrix",
        numbers={title: np.array([row[i] for row in numbers], dtype=np.float64) for i, title in enumerate(_NUMBERS)},
        texts={
            title: np.array([words.intern(row[i]) if row[i] else ABSENT for row in texts], dtype=np.int32)
            for i, title in enumerate(_TEXTS)
        },
        columns=(*_TEXTS, *_NUMBERS),
    )


def _moves(trace: Trace) -> dict[tuple[str, str, str, str], list[Move]]:
    """Returns what each operator moved to one other member, by (step, kind, operation, group)."""
    table, links = trace.collectives, trace.links
    names, groups = trace.strings.texts(table.name), trace.strings.texts(table.group)
    sizes = {group.id: len(group.ranks) for group in trace.metadata.parallel_groups}
    found: dict[tuple[str, str, str, str], list[Move]] = {}
    columns = (links.collective, links.bytes, links.transit_ns)
    # A Python loop: one turn per collective, not per event.
    for word, row, size_bytes, transit_ns in zip(
        trace.strings.texts(links.link), *(column.tolist() for column in columns), strict=True
    ):
        operation = names[row].partition("__")[0].removeprefix("hcom_").rstrip("_").lower()
        kind = "p2p" if collective_kind(names[row]) in POINT_TO_POINT else "collective"
        step = f"step{table.step[row]}" if table.step[row] >= 0 else "step"
        peers = max(sizes.get(groups[row], 2) - 1, 1) if kind == "collective" else 1
        move = (names[row], size_bytes / peers / BYTES_PER_MB, transit_ns / NS_PER_MS, word)
        found.setdefault((step, kind, operation, groups[row]), []).append(move)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] != "p2p")))


def _pairs(trace: Trace, group: str) -> list[tuple[str, str]]:
    """Returns the rank's pairs in the group, as places in it, itself first; none where it is not known to be in it.

    The pair with itself (a local copy, which the runtime does not tell from the transfer) is how the vendor's tools
    learn which place is whose.
    """
    members = next((item.ranks for item in trace.metadata.parallel_groups if item.id == group), ())
    if trace.metadata.rank not in members:
        return []
    own = members.index(trace.metadata.rank)
    others = [place for place in range(len(members)) if place != own]
    return [(str(own), str(place)) for place in (own, *others)]


def _chosen(ranked: list[Move]) -> list[tuple[str, Move]]:
    """Returns the operators the file shows of a list sorted by bandwidth, and their sum."""
    count = len(ranked)
    places = [
        ("top1", 0),
        ("middle", count // 2),
        ("bottom1", count - 1),
        ("bottom2", count - 2),
        ("bottom3", count - 3),
    ]
    chosen = [(suffix, ranked[place]) for suffix, place in places if place >= 0]
    total = ("", sum(move[1] for move in ranked), sum(move[2] for move in ranked), ranked[0][3])
    return [*chosen, ("total", total)]
