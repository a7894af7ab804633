"""Which send of one rank meets which receive of its peer, in a group of two."""

from collections.abc import Mapping, Sequence

from engine.analyses.communication.collective_rows import INDEXED_NAME, RECEIVES, SENDS, CollectiveRows

Place = tuple[int, int]
"""Rank, and row of its CollectiveRows."""


def meetings_of_ends(
    rows: Mapping[int, CollectiveRows], places: Mapping[int, Sequence[int]], members: tuple[int, int]
) -> list[list[tuple[Place, Place]]]:
    """Returns the pairs of each direction that has any, members in the order given, by the sender's start.

    Libraries hand messages over in order: the k-th send of one side meets the k-th receive of the other, each direction
    by itself. Numbers in names count the calls of a side, so they agree between the sides only where both call in the
    same order (one sends when the other receives). Where every number both have joins a send with a receive they
    decide, so captures that begin at different times pair too. Otherwise order decides, in a direction with as many
    sends as receives; in any other nothing does.

    Args:
        rows: Every rank's collectives.
        places: Rank → its sends and receives in the group, by start.
        members: The two ranks.
    """
    first, second = members
    by_number = _by_number(rows, places, members)
    if by_number:
        outward = [pair for pair in by_number if _sends(rows, pair[0])]
        inward = [pair for pair in by_number if not _sends(rows, pair[0])]
        return [pairs for pairs in (outward, inward) if pairs]
    outward = _in_order(rows, places, first, second)
    inward = [(own, peer) for peer, own in _in_order(rows, places, second, first)]
    return [pairs for pairs in (outward, inward) if pairs]


def _sends(rows: Mapping[int, CollectiveRows], place: Place) -> bool:
    rank, row = place
    return rows[rank].operation[row] in SENDS


def _by_number(
    rows: Mapping[int, CollectiveRows], places: Mapping[int, Sequence[int]], members: tuple[int, int]
) -> list[tuple[Place, Place]]:
    """Returns the pairs of equal numbers; none where a number of both joins two sends or two receives."""
    first, second = (_numbered(rows[rank], places.get(rank, ())) for rank in members)
    pairs = [((members[0], row), (members[1], second[number])) for number, row in first.items() if number in second]
    agree = all(_sends(rows, own) != _sends(rows, peer) for own, peer in pairs)
    return pairs if agree else []


def _numbered(own: CollectiveRows, places: Sequence[int]) -> dict[str, int]:
    """Returns number and part of a name → its row, by start; empty where names have none or repeat them."""
    found = [INDEXED_NAME.match(own.name[row]) for row in places]
    numbers = {f"{item['index']}_{item['part']}": row for item, row in zip(found, places, strict=True) if item}
    return numbers if len(numbers) == len(places) else {}


def _in_order(
    rows: Mapping[int, CollectiveRows], places: Mapping[int, Sequence[int]], sender: int, receiver: int
) -> list[tuple[Place, Place]]:
    sent = [(sender, row) for row in places.get(sender, ()) if rows[sender].operation[row] in SENDS]
    received = [(receiver, row) for row in places.get(receiver, ()) if rows[receiver].operation[row] in RECEIVES]
    return list(zip(sent, received, strict=True)) if len(sent) == len(received) else []
