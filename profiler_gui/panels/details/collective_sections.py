"""The lines of one collective."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.number_format import format_count
from profiler_gui.panels.details.sections import Line, bytes_line, duration_line, text_line
from profiler_gui.session.selection import CollectiveSelection, EventSelection
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.communication import Collective

MAX_MEMBERS = 16


def collective_lines(rank: int, index: int, item: Collective, *, links_to_event: bool) -> list[Line | None]:
    """Returns what is known of a collective.

    Args:
        rank: Whose.
        index: In the rank's collectives.
        item: The collective.
        links_to_event: Whether the first link leads to its event (from the collective) or the other way round.
    """
    hidden_ns = item.elapsed_ns - item.exposed_ns
    lines = [
        _link(rank, index, item, links_to_event=links_to_event),
        text_line(tr("Group"), item.group_name or item.group),
        duration_line(tr("Elapsed"), item.elapsed_ns),
        bytes_line(tr("Payload"), item.bytes),
        duration_line(tr("Exposed"), item.exposed_ns),
        duration_line(tr("Hidden behind computing"), hidden_ns),
    ]
    if item.wait_ns is None:
        lines.append(Line(tr("Waiting, transfer"), unsplit_text(item)))
    else:
        lines += [
            duration_line(tr("Waiting"), item.wait_ns),
            duration_line(tr("Transfer"), item.transfer_ns),
            duration_line(tr("Hideable at most"), item.hideable_ns),
            Line(tr("Last to arrive"), tr("rank {rank}", rank=item.late_rank)) if item.late_rank is not None else None,
        ]
    if item.bandwidth_bytes_per_s is not None:
        lines.append(Line(tr("Bandwidth"), f"{item.bandwidth_bytes_per_s / 1e9:.2f} GB/s"))
    lines += [
        duration_line(tr("Wait (file)"), item.vendor_wait_ns),
        duration_line(tr("Transit (file)"), item.vendor_transit_ns),
        duration_line(tr("Idle (file)"), item.vendor_idle_ns),
        Line(tr("Step"), str(item.step)) if item.step is not None else None,
    ]
    return lines + _members(item)


def unsplit_text(item: Collective) -> str:
    """Returns why waiting and transfer cannot be told apart."""
    if not item.missing_ranks:
        return tr("unsplit: the other members are not known")
    shown = ", ".join(str(rank) for rank in item.missing_ranks[:MAX_MEMBERS])
    more = "…" if len(item.missing_ranks) > MAX_MEMBERS else ""
    return tr("unsplit: open the peers (ranks {ranks})", ranks=f"{shown}{more}")


def _link(rank: int, index: int, item: Collective, *, links_to_event: bool) -> Line | None:
    if not links_to_event:
        return Line(tr("Collective"), item.name, CollectiveSelection(rank, index))
    return Line(tr("Event"), item.name, EventSelection(rank, item.event)) if item.event >= 0 else None


def _members(item: Collective) -> list[Line | None]:
    lines: list[Line | None] = []
    if item.members:
        first_ns = item.members[0].start_ns
        for place, member in enumerate(item.members[:MAX_MEMBERS]):
            line = duration_line("", member.start_ns - first_ns)
            after = line.text if line is not None else ""
            text = tr("rank {rank}, {after} after the first", rank=member.rank, after=after)
            lines.append(Line(tr("Arrivals") if place == 0 else "", text))
        rest = len(item.members) - MAX_MEMBERS
        lines.append(Line("", tr("and {count} more", count=format_count(rest))) if rest > 0 else None)
    return lines
