"""What a rank's table of links tells about its communication groups: its own place in them, and how large they are."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from engine.trace.trace import Trace

_PLACE = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class GroupHint:
    """What one rank's links say of one group.

    Attributes:
        own_index: The rank's place inside the group, or None where the links do not tell.
        size_at_least: Members the group has at least.
        has_peers: Whether a link leads to another member: the root of a star writes only into its own memory.
    """

    own_index: int | None
    size_at_least: int
    has_peers: bool


def group_hints(trace: Trace) -> Mapping[str, GroupHint]:
    """Returns group id → hint, from ``communication_matrix`` (ranks in it count inside the group); empty without it.

    Each row is a link from this rank (``0-7``).
    """
    table = trace.tables.get("communication_matrix")
    if table is None or not {"Group", "Source", "Destination"} <= set(table.texts):
        return {}
    columns = [trace.strings.texts(table.texts[title]) for title in ("Group", "Source", "Destination")]
    sources: dict[str, set[int]] = defaultdict(set)
    ends: dict[str, set[int]] = defaultdict(set)
    # One step per distinct link: a rank has some dozens.
    for group, source, destination in set(zip(*columns, strict=True)):
        places = {int(place) for place in (source, destination) if _PLACE.fullmatch(place)}
        if len(places) == len({source, destination}):
            sources[group].add(int(source))
            ends[group] |= places
    return {
        group: GroupHint(
            own_index=next(iter(sources[group])) if len(sources[group]) == 1 else None,
            size_at_least=max(places) + 1,
            has_peers=len(places) > 1,
        )
        for group, places in ends.items()
    }
