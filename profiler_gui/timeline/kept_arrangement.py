"""Folds, hidden tracks and order of a capture as text, so that they are found again at the next opening."""

import msgspec

from profiler_gui.timeline.layout import Arrangement, TrackKey


class _Kept(msgspec.Struct, frozen=True):
    """What is kept; pins are kept with the marks.

    Attributes:
        ranks: Ranks whose tracks were arranged; the others get their first folds.
        collapsed: See ``Arrangement``.
        hidden: See ``Arrangement``.
        order: Parents with their children.
    """

    ranks: tuple[int, ...]
    collapsed: tuple[TrackKey, ...]
    hidden: tuple[TrackKey, ...]
    order: tuple[tuple[TrackKey, tuple[TrackKey, ...]], ...]


def arrangement_text(arrangement: Arrangement, ranks: frozenset[int]) -> str:
    """Returns an arrangement as text.

    Args:
        arrangement: What the user did to the tracks.
        ranks: Ranks it says something about.
    """
    kept = _Kept(
        tuple(sorted(ranks)),
        tuple(sorted(arrangement.collapsed)),
        tuple(sorted(arrangement.hidden)),
        tuple(arrangement.order.items()),
    )
    return msgspec.json.encode(kept).decode()


def arrangement_of(text: str) -> tuple[Arrangement, frozenset[int]]:
    """Returns the arrangement and its ranks from a text; nothing arranged where the text is no arrangement."""
    try:
        kept = msgspec.json.decode(text, type=_Kept)
    except (msgspec.DecodeError, UnicodeError):
        return Arrangement(), frozenset()
    arrangement = Arrangement(frozenset(kept.collapsed), frozenset(kept.hidden), dict(kept.order))
    return arrangement, frozenset(kept.ranks)
