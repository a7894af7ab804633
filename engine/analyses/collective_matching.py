"""Which collectives of different ranks are the same one.

Members of a group come from the job's metadata where it names the group, else from who has the group in its tables.
Collectives pair by group and running number where names carry one, else by group and order. A pairing in which a
member of a symmetric operation leaves before the last one arrived cannot be right and is given up.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.analyses.collective_rows import INDEXED_NAME, MAY_LEAVE_EARLY, POINT_TO_POINT, CollectiveRows
from engine.analyses.group_members import GroupDirectory
from engine.core.units import NS_PER_US
from engine.trace.diagnostics import Diagnostic, DiagnosticLog, Severity
from engine.trace.job import Alignment, Job

MAX_EARLY_LEAVE_NS = 50 * NS_PER_US
"""By how much a member of a symmetric operation may seem to leave before the last arrival. Ranks of one host convert
their device clocks to host time separately; in the captures at hand true pairs stay within 5 µs, wrong ones miss by
hundreds."""

Place = tuple[int, int]
"""Rank, and row of its CollectiveRows."""
Family = tuple[str, ...]
"""Collectives that pair by order: a group (and a name, where names are numbered)."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What belongs together.

    Attributes:
        complete: The collectives all of whose members are open: every member's place, in rank order.
        missing: Members whose captures are not open, of every place that is not in ``complete`` and where they are
            known.
        group_names: The framework's word for the group of every place that has one.
        diagnostics: What could not be paired although all members are open.
    """

    complete: tuple[tuple[Place, ...], ...]
    missing: Mapping[Place, tuple[int, ...]]
    group_names: Mapping[Place, str]
    diagnostics: tuple[Diagnostic, ...]


def match_collectives(job: Job, rows: Mapping[int, CollectiveRows]) -> Matching:
    """Returns which rows of different ranks are one collective. ``rows`` holds every rank of the job."""
    log = DiagnosticLog()
    directory = GroupDirectory(job)
    complete: list[tuple[Place, ...]] = []
    missing: dict[Place, tuple[int, ...]] = {}
    names: dict[Place, str] = {}
    families = _families(rows)
    for family, places in families.items():
        if family[0]:
            members = directory.members(family[0], _ranks_with(families, family[0]), _only_pairs(rows, places))
            names |= dict.fromkeys(_flat(places), members.name)
            candidates = [members.ranks] if members.ranks is not None else []
        else:
            members = directory.unnamed_members()
            candidates = directory.unnamed_candidates(tuple(places), _only_pairs(rows, places))
        paired = _pair(job, rows, places, candidates, log)
        complete += paired
        if members.missing:
            done = {place for match in paired for place in match}
            missing |= {place: members.missing for place in _flat(places) if place not in done}
    return Matching(tuple(complete), missing, names, log.diagnostics())


def _families(rows: Mapping[int, CollectiveRows]) -> dict[Family, dict[int, list[int]]]:
    """Returns rank → rows in order, per family. Loops over collectives: a step has some thousands at most."""
    full_ids = {group for part in rows.values() for group in part.group if len(group) > len("612")}
    families: dict[Family, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, part in rows.items():
        for row in range(len(part)):
            group = _full_id(part.group[row], full_ids)
            operation = part.operation[row]
            family: Family
            if INDEXED_NAME.match(part.name[row]):
                family = (group, part.name[row])
            elif group:
                family = (group, "pairs") if operation in POINT_TO_POINT else (group, "collectives")
            else:
                family = ("", "pairs") if operation in POINT_TO_POINT else ("", operation, part.shape[row])
            families[family][rank].append(row)
    return families


def _full_id(group: str, full_ids: set[str]) -> str:
    """Returns the whole id of a group of which an operator's name gave only the last digits."""
    fitting = [full for full in full_ids if full.endswith(group)] if group.isdecimal() else []
    return fitting[0] if len(fitting) == 1 else group


def _flat(places: Mapping[int, Sequence[int]]) -> Iterator[Place]:
    for rank, rank_rows in places.items():
        for row in rank_rows:
            yield rank, row


def _ranks_with(families: Mapping[Family, Mapping[int, list[int]]], group: str) -> frozenset[int]:
    return frozenset(rank for family, places in families.items() if family[0] == group for rank in places)


def _only_pairs(rows: Mapping[int, CollectiveRows], places: Mapping[int, Sequence[int]]) -> bool:
    return all(rows[rank].operation[row] in POINT_TO_POINT for rank, row in _flat(places))


def _pair(
    job: Job,
    rows: Mapping[int, CollectiveRows],
    places: Mapping[int, Sequence[int]],
    candidates: Sequence[tuple[int, ...]],
    log: DiagnosticLog,
) -> list[tuple[Place, ...]]:
    """Returns the collectives of one family, counting those that cannot be paired although all members are open.

    With several candidate groups the first in which nothing contradicts is taken; the ranks outside it go on.
    """
    paired: list[tuple[Place, ...]] = []
    settled: set[int] = set()
    for members in candidates:
        if settled & set(members):
            continue
        if any(job.rank_trace(rank).alignment is Alignment.UNALIGNED for rank in members):
            continue
        matches = _together(job, rows, places, members)
        possible = [match for match in matches if _possible(job, rows, match)]
        if len(candidates) > 1 and len(possible) < len(matches):
            continue
        if possible:
            settled |= set(members)
            paired += possible
    if candidates:
        log.add(
            "unpaired-collectives",
            Severity.NOTICE,
            "collectives whose members are all open could not be paired across ranks (counts, order or clocks differ); "
            "their waiting and transfer stay unsplit",
            count=sum(map(len, places.values())) - sum(map(len, paired)),
        )
    return paired


def _together(
    job: Job, rows: Mapping[int, CollectiveRows], places: Mapping[int, Sequence[int]], members: tuple[int, ...]
) -> list[tuple[Place, ...]]:
    """Returns the n-th row of every member together.

    Where the members disagree on how many there are (their captures begin or end at different times) the sequence
    numbers of PyTorch's process group tell which belong together; without them nothing does.
    """
    columns = [places.get(rank, ()) for rank in members]
    if len(set(map(len, columns))) != 1:
        columns = _by_sequence(job, rows, dict(zip(members, columns, strict=True)))
    together = [tuple(zip(members, match, strict=True)) for match in zip(*columns, strict=True)]
    return [match for match in together if _same_operation(rows, match)]


def _by_sequence(
    job: Job, rows: Mapping[int, CollectiveRows], places: Mapping[int, Sequence[int]]
) -> list[Sequence[int]]:
    """Returns for every member the rows whose sequence number all members have, in its order.

    Decodes the arguments of the family's events; only families whose counts differ come here.
    """
    numbered: list[dict[int, int]] = []
    for rank, rank_rows in places.items():
        trace = job.rank_trace(rank).trace
        own = {}
        for row in rank_rows:
            event = int(rows[rank].table.event[row])
            number = trace.arguments(event).get("Seq") if event >= 0 else None
            if isinstance(number, int):
                own[number] = row
        numbered.append(own)
    common = sorted(set.intersection(*(set(own) for own in numbered)))
    return [[own[number] for number in common] for own in numbered]


def _same_operation(rows: Mapping[int, CollectiveRows], match: tuple[Place, ...]) -> bool:
    operations = {rows[rank].operation[row] for rank, row in match}
    return len(operations) == 1 or operations <= POINT_TO_POINT


def _possible(job: Job, rows: Mapping[int, CollectiveRows], match: tuple[Place, ...]) -> bool:
    """Returns whether no member of a symmetric operation left before the last one arrived."""
    rank, row = match[0]
    if rows[rank].operation[row] in MAY_LEAVE_EARLY:
        return True
    starts_ns = [start_ns(job, rows, place) for place in match]
    ends_ns = [
        start + int(rows[rank].table.elapsed_ns[row]) for start, (rank, row) in zip(starts_ns, match, strict=True)
    ]
    return min(ends_ns) >= max(starts_ns) - MAX_EARLY_LEAVE_NS


def start_ns(job: Job, rows: Mapping[int, CollectiveRows], place: Place) -> int:
    """Returns when the member at ``place`` arrived, in job time."""
    rank, row = place
    return int(rows[rank].table.start_ns[row]) + job.rank_trace(rank).offset_ns
