"""Collectives: payload, waiting and transfer, the late rank, and what could be hidden."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from engine.analyses.activity import Activity, activities, activity_intervals
from engine.analyses.communication.collective_matching import Matching, match_collectives, start_ns
from engine.analyses.communication.collective_rows import CollectiveRows, collective_rows
from engine.analyses.communication.collectives import Arrival, Collective, LinkStatistic, SlowRank
from engine.analyses.communication.hiding import with_hideable
from engine.analyses.communication.pipeline_stages import pipeline_stages
from engine.analyses.communication.send_receive import Place
from engine.analyses.communication.slow_ranks import slow_ranks
from engine.analyses.step_ranges import positions_of_collectives, positions_of_starts
from engine.analyses.steps import Step, steps
from engine.core.arrays import Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.core.units import NS_PER_S
from engine.trace.diagnostics import Diagnostic
from engine.trace.intervals import EMPTY, Intervals, covered_ns, difference, union
from engine.trace.job import Job
from engine.trace.tables import CollectiveTable
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

__all__ = [
    "Arrival",
    "Collective",
    "JobCommunication",
    "LinkStatistic",
    "SlowRank",
    "communication",
    "split_waiting",
]


@dataclass(frozen=True, slots=True)
class JobCommunication:
    """Collectives of every rank by start, links of every rank, and who was late.

    Attributes:
        collectives: Rank → its collectives.
        links: Rank → its links, the most bytes first.
        slow_ranks: The most expensive first.
        stages: Rank → pipeline stage from 0; empty where the captures name no pipeline groups.
        diagnostics: What could not be paired.
    """

    collectives: Mapping[int, tuple[Collective, ...]]
    links: Mapping[int, tuple[LinkStatistic, ...]]
    slow_ranks: tuple[SlowRank, ...]
    stages: Mapping[int, int] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()


def communication(
    job: Job,
    steps_of_rank: Mapping[int, tuple[Step, ...]] | None = None,
    cancel: CancelToken = NEVER_CANCELLED,
) -> JobCommunication:
    """Returns the communication of a job; waiting and transfer are split where all members are open.

    A collective moves data only after its last member arrived: what every other member spends before that is
    waiting, the rest is transfer. Members are compared on the job's clock, so ranks whose clocks are not related
    stay unsplit, and a wait below the clock error counts as 0: the rounding of the starts in the files (0.25 µs in
    communication.json, 1 µs in old Kineto traces), or what members that leave before the last one arrived prove.

    Args:
        job: The ranks.
        steps_of_rank: Steps of every rank where the caller has them already.
        cancel: Asks to stop.

    Raises:
        OperationCancelled: ``cancel`` was set.
    """
    known_steps = steps_of_rank or {entry.rank: steps(entry.trace) for entry in job.ranks}
    work = {}
    for entry in job.ranks:
        cancel.check()
        work[entry.rank] = _RankWork.of(entry.trace)
    rows = {rank: part.rows for rank, part in work.items()}
    matching = match_collectives(job, rows, cancel)
    offset_ns = {entry.rank: entry.offset_ns for entry in job.ranks}
    meetings = {
        place: meeting
        for match in matching.complete
        for place, meeting in _meetings(rows, offset_ns, match, matching.clock_error_ns)
    }
    collectives = {}
    for rank, part in work.items():
        cancel.check()
        own = _collectives(rank, part, known_steps[rank], matching, meetings)
        collectives[rank] = with_hideable(own, known_steps[rank])
    return JobCommunication(
        collectives=collectives,
        links={entry.rank: _links(entry.trace) for entry in job.ranks},
        slow_ranks=slow_ranks(job, collectives, {rank: part.computing for rank, part in work.items()}),
        stages=pipeline_stages(job),
        diagnostics=matching.diagnostics,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _RankWork:
    """What the analysis needs of one trace; ``computing`` is None where the capture lists none."""

    rows: CollectiveRows
    computing: Intervals | None

    @staticmethod
    def of(trace: Trace) -> "_RankWork":
        kinds = activities(trace)
        rows = collective_rows(trace, kinds)
        if rows.on_host:
            return _RankWork(rows, _host_computing(trace))
        computes = bool(np.any(kinds == Activity.COMPUTING))
        return _RankWork(rows, activity_intervals(trace, kinds, Activity.COMPUTING) if computes else None)


def _host_computing(trace: Trace) -> Intervals | None:
    """Returns when the host ran ATen operators: they compute and never wait for a collective."""
    host = trace.events_of(TrackKind.HOST_THREAD)
    names = np.unique(trace.events.name[host]).tolist()
    operators = [name for name in names if trace.strings.text(name).startswith("aten::")]
    rows = host[np.isin(trace.events.name[host], operators)]
    return union(trace.events.start_ns[rows], trace.events.end_ns[rows]) if len(rows) else None


@dataclass(frozen=True, slots=True)
class _Meeting:
    """One member's view of a complete collective."""

    wait_ns: int
    late_rank: int | None
    members: tuple[Arrival, ...]


def _meetings(
    rows: Mapping[int, CollectiveRows], offset_ns: Mapping[int, int], match: tuple[Place, ...], clock_error_ns: int
) -> Iterator[tuple[Place, _Meeting]]:
    """Yields every member's place and its view."""
    arrivals = sorted(
        (_arrival(rows, offset_ns, place) for place in match), key=lambda arrival: (arrival.start_ns, arrival.rank)
    )
    error_ns = max(clock_error_ns, *(rows[rank].rounding_ns for rank, _ in match))
    last = arrivals[-1]
    late_rank = last.rank if last.start_ns - arrivals[0].start_ns > error_ns else None
    for rank, row in match:
        elapsed_ns = int(rows[rank].table.elapsed_ns[row])
        wait_ns = min(last.start_ns - start_ns(rows, offset_ns, (rank, row)), elapsed_ns)
        yield (rank, row), _Meeting(wait_ns if wait_ns > error_ns else 0, late_rank, tuple(arrivals))


def _collectives(
    rank: int,
    work: _RankWork,
    rank_steps: tuple[Step, ...],
    matching: Matching,
    meetings: Mapping[Place, _Meeting],
) -> tuple[Collective, ...]:
    """Returns the collectives of one rank by start. A loop over collectives: each becomes an object."""
    rows, table = work.rows, work.rows.table
    computing = work.computing or EMPTY
    waits_ns = np.array([meetings[rank, row].wait_ns if (rank, row) in meetings else 0 for row in range(len(rows))])
    transfer_start_ns = table.start_ns + waits_ns.astype(np.int64)
    end_ns = table.start_ns + table.elapsed_ns
    exposed_wait_ns = waits_ns - covered_ns(computing, table.start_ns, transfer_start_ns)
    exposed_ns = table.elapsed_ns - covered_ns(computing, table.start_ns, end_ns)
    step_numbers = _step_numbers(table, rank_steps)
    collectives = []
    for row in range(len(rows)):
        meeting = meetings.get((rank, row))
        transit_ns = _known(table.vendor_transit_ns, row)
        transfer_ns = int(table.elapsed_ns[row] - waits_ns[row]) if meeting else None
        size_bytes = _known(table.bytes, row)
        collectives.append(
            Collective(
                name=rows.name[row],
                group=rows.group[row],
                group_name=matching.group_names.get((rank, row), ""),
                event=int(table.event[row]),
                start_ns=int(table.start_ns[row]),
                elapsed_ns=int(table.elapsed_ns[row]),
                bytes=size_bytes,
                wait_ns=meeting.wait_ns if meeting else None,
                transfer_ns=transfer_ns,
                exposed_ns=int(exposed_ns[row]),
                exposed_wait_ns=int(exposed_wait_ns[row]) if meeting else None,
                hideable_ns=None,
                late_rank=meeting.late_rank if meeting else None,
                members=meeting.members if meeting else (),
                missing_ranks=matching.missing.get((rank, row), ()),
                vendor_transit_ns=transit_ns,
                vendor_wait_ns=_known(table.vendor_wait_ns, row),
                vendor_idle_ns=_known(table.vendor_idle_ns, row),
                bandwidth_bytes_per_s=_bandwidth(size_bytes, transit_ns if transfer_ns is None else transfer_ns),
                step=step_numbers[row],
            )
        )
    return tuple(collectives)


def _arrival(rows: Mapping[int, CollectiveRows], offset_ns: Mapping[int, int], place: Place) -> Arrival:
    arrived_ns = start_ns(rows, offset_ns, place)
    return Arrival(place[0], arrived_ns, arrived_ns + int(rows[place[0]].table.elapsed_ns[place[1]]))


def _known(column: Int64Array, row: int) -> int | None:
    value = int(column[row])
    return value if value >= 0 else None


def _bandwidth(size_bytes: int | None, duration_ns: int | None) -> float | None:
    if not size_bytes or not duration_ns:
        return None
    return size_bytes * NS_PER_S / duration_ns


def _step_numbers(table: CollectiveTable, rank_steps: tuple[Step, ...]) -> list[int | None]:
    """Returns the recorded step numbers, filled up with those of the steps the collectives start in."""
    positions = positions_of_starts(table.start_ns, table.step, rank_steps).tolist()
    return [
        recorded if recorded >= 0 else rank_steps[position].step if position >= 0 else None
        for recorded, position in zip(table.step.tolist(), positions, strict=True)
    ]


def _links(trace: Trace) -> tuple[LinkStatistic, ...]:
    """Returns the sums per kind of link, the most bytes first; links that moved nothing are left out."""
    links = trace.links
    statistics = []
    for link in np.unique(links.link).tolist():
        rows = links.link == link
        size_bytes = links.bytes[rows]
        if size_bytes.sum() == 0:
            continue
        ratios = links.large_packet_ratio[rows]
        weights = np.where(np.isnan(ratios), 0, size_bytes)
        ratio = float(np.average(np.nan_to_num(ratios), weights=weights)) if weights.sum() > 0 else None
        transit_ns = int(links.transit_ns[rows].sum())
        statistics.append(LinkStatistic(trace.strings.text(link), int(size_bytes.sum()), transit_ns, ratio))
    return tuple(sorted(statistics, key=lambda item: (-item.bytes, item.link)))


def split_waiting(steps: tuple[Step, ...], collectives: tuple[Collective, ...]) -> tuple[Step, ...]:
    """Returns the steps of one rank with ``wait_ns`` and ``transfer_ns`` filled where every collective is split.

    Both are unions: where collectives overlap each other, a moment in which one transfers counts as transfer. They
    add up to the step's communication exactly.
    """
    by_position: dict[int, list[Collective]] = {}
    for collective, position in zip(collectives, positions_of_collectives(collectives, steps).tolist(), strict=True):
        by_position.setdefault(position, []).append(collective)
    return tuple(_split_step(step, by_position.get(position, [])) for position, step in enumerate(steps))


def _split_step(step: Step, collectives: list[Collective]) -> Step:
    if any(collective.wait_ns is None for collective in collectives):
        return step
    if not collectives:
        return replace(step, wait_ns=0.0, transfer_ns=0.0) if step.communication_ns == 0 else step
    start = np.array([collective.start_ns for collective in collectives], dtype=np.int64)
    wait = np.array([collective.wait_ns for collective in collectives], dtype=np.int64)
    end = start + np.array([collective.elapsed_ns for collective in collectives], dtype=np.int64)
    transferring = union(start + wait, end)
    wait_ns = float(difference(union(start, start + wait), transferring).total_ns)
    whole_ns = step.communication_ns
    if whole_ns is None:
        return replace(step, wait_ns=wait_ns, transfer_ns=float(transferring.total_ns))
    wait_ns = min(wait_ns, whole_ns)
    return replace(step, wait_ns=wait_ns, transfer_ns=whole_ns - wait_ns)
