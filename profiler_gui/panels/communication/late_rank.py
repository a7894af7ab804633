"""What the last member of a collective did while the others waited for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.core.number_format import format_duration_ns, format_ratio
from profiler_gui.panels.communication.descriptions import short_name
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.communication import Collective
    from engine.analyses.device import DeviceTotals
    from engine.analyses.operators import OperatorStatistic
    from engine.trace import Job
    from engine.trace.intervals import Intervals

SHOWN_OPERATORS = 3


@dataclass(frozen=True, slots=True, eq=False)
class LateRankWork:
    """The last member between the first arrival and its own.

    Attributes:
        rank: The last member.
        window_ns: First and last arrival in the last member's trace time.
        offset_ns: Job time of that trace's ns 0.
        computing: What it computed, in its trace time.
        totals: Of the window; None where its capture holds no device work.
        operators: Of the window, the largest first.
        waited_for: Index of its own collective in which it waited the longest inside the window: the next link in the
            chain of blame; None where it waited in none.
    """

    rank: int
    window_ns: tuple[int, int]
    offset_ns: int
    computing: Intervals
    totals: DeviceTotals | None
    operators: tuple[OperatorStatistic, ...]
    waited_for: int | None


def late_rank_work(
    job: Job, collectives: Mapping[int, tuple[Collective, ...]], collective: Collective
) -> LateRankWork | None:
    """Returns what the last member did before it arrived; None while unsplit or where nobody was late."""
    from engine.analyses.device import device_totals, device_work
    from engine.analyses.operators import operator_statistics
    from engine.trace.trace import TimeRange

    if collective.late_rank is None or not collective.members:
        return None
    entry = job.rank_trace(collective.late_rank)
    first_ns = collective.members[0].start_ns - entry.offset_ns
    last_ns = collective.members[-1].start_ns - entry.offset_ns
    window = TimeRange(first_ns, last_ns)
    return LateRankWork(
        collective.late_rank,
        (first_ns, last_ns),
        entry.offset_ns,
        device_work(entry.trace).within(window).computing,
        device_totals(entry.trace, window),
        operator_statistics(entry.trace, window),
        _longest_wait(collectives.get(collective.late_rank, ()), first_ns, last_ns),
    )


def _longest_wait(own: Sequence[Collective], start_ns: int, end_ns: int) -> int | None:
    """Returns the index of the collective whose waiting fills most of ``[start, end)``."""
    waits_ns = [
        min(item.start_ns + (item.wait_ns or 0), end_ns) - max(item.start_ns, start_ns) if item.wait_ns else 0
        for item in own
    ]
    longest_ns = max(waits_ns, default=0)
    return waits_ns.index(longest_ns) if longest_ns > 0 else None


def lateness_text(rank: int, collective: Collective, work: LateRankWork | None) -> str:
    """Returns who was late by how much and what it did before, or why that cannot be said."""
    if collective.wait_ns is None:
        return unsplit_text(collective.missing_ranks)
    if collective.late_rank is None or not collective.members:
        return tr("All members arrived at the same time.")
    first, last = collective.members[0], collective.members[-1]
    text = tr(
        "Rank {rank} arrived last, {duration} after rank {first}.",
        rank=last.rank,
        duration=format_duration_ns(last.start_ns - first.start_ns),
        first=first.rank,
    )
    if rank != last.rank:
        text += " " + tr("Rank {rank} waited {duration}.", rank=rank, duration=format_duration_ns(collective.wait_ns))
    return text if work is None else f"{text} {_work_text(work)}"


def unsplit_text(missing_ranks: tuple[int, ...]) -> str:
    """Returns why waiting and transfer are not told apart, and what to do about it."""
    if len(missing_ranks) == 1:
        return tr("unsplit: open the peer (rank {rank})", rank=missing_ranks[0])
    if missing_ranks:
        return tr("unsplit: open the peers (ranks {ranks})", ranks=", ".join(map(str, missing_ranks)))
    return tr("unsplit: the capture does not say who took part, or its clocks are not related")


def _work_text(work: LateRankWork) -> str:
    totals = work.totals
    if totals is None or totals.span_ns == 0 or not work.operators:
        return tr("Its capture lists no kernels in that time.")
    parts = ", ".join(
        f"{title} {format_ratio(ns / totals.span_ns)}"
        for title, ns in (
            (tr("computing"), totals.compute_ns),
            (tr("communicating"), totals.exposed_communication_ns),
            (tr("idle"), totals.idle_ns),
        )
        if ns > 0
    )
    totals_ns: Counter[str] = Counter()
    for item in work.operators:  # one per operator type and core
        totals_ns[short_name(item.type)] += item.total_ns
    largest = totals_ns.most_common(SHOWN_OPERATORS)
    operators = ", ".join(f"{name} {format_duration_ns(total_ns)}" for name, total_ns in largest)
    return tr(
        "Meanwhile rank {rank} was: {parts}. Most of it: {operators}.",
        rank=work.rank,
        parts=parts,
        operators=operators,
    )
