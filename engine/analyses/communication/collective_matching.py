"""Which collectives of different ranks are the same one.

Members of a group come from the job's metadata where it names the group, else from who has the group in its tables.
Collectives pair by group and running number where names carry one, else by group and order; sends meet receives, each
direction by itself (``send_receive.py``). A pairing in which a
member of a symmetric operation leaves before the last one arrived cannot be right and is given up.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.analyses.communication.collective_rows import (
    INDEXED_NAME,
    MAY_LEAVE_EARLY,
    POINT_TO_POINT,
    RECEIVES,
    SENDS,
    CollectiveRows,
)
from engine.analyses.communication.group_members import GroupDirectory
from engine.analyses.communication.send_receive import Place, meetings_of_ends
from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.core.units import NS_PER_US
from engine.trace.diagnostics import Diagnostic, DiagnosticLog, Severity
from engine.trace.job import Alignment, Job
from engine.trace.trace import Trace

MAX_EARLY_LEAVE_NS = 50 * NS_PER_US
"""By how much a member of a symmetric operation may seem to leave before the last one arrived. Every device's clock is
converted to host time separately: true pairs of the Qwen3 job miss by up to 10.1 µs, wrong ones (operations of two
subgroups taken for one of all ranks) in the Gloo job by 620 µs and more."""

_ENDS = "ends"
"""Last word of the families of sends and receives: those of a pair meet end by end, not call by call."""

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
        clock_error_ns: The most by which a member of a symmetric operation seems to leave before the last one arrived:
            so far at least the ranks' clocks are apart, and shorter waits mean nothing. 0 where none does.
        diagnostics: What could not be paired although all members are open.
    """

    complete: tuple[tuple[Place, ...], ...]
    missing: Mapping[Place, tuple[int, ...]]
    group_names: Mapping[Place, str]
    clock_error_ns: int
    diagnostics: tuple[Diagnostic, ...]


def match_collectives(job: Job, rows: Mapping[int, CollectiveRows], cancel: CancelToken = NEVER_CANCELLED) -> Matching:
    """Returns which rows of different ranks are one collective. ``rows`` holds every rank of the job."""
    log = DiagnosticLog()
    ranks = _Ranks.of(job, rows)
    directory = GroupDirectory(job)
    families = _families(rows)
    members_of = {
        group: directory.members(group, frozenset(seen.ranks), seen.only_pairs)
        for group, seen in _groups(rows, families).items()
    }
    complete: list[tuple[Place, ...]] = []
    missing: dict[Place, tuple[int, ...]] = {}
    names: dict[Place, str] = {}
    for family, places in families.items():
        cancel.check()
        in_pairs = _only_pairs(rows, places)
        if family[0]:
            members = members_of[family[0]]
            names |= dict.fromkeys(_flat(places), members.name)
            candidates = [members.ranks] if members.ranks is not None else []
        else:
            members = directory.unnamed_members()
            candidates = directory.unnamed_candidates(tuple(places), in_pairs)
        if in_pairs and candidates and len(candidates[0]) > 2:  # whose send meets whose receive is not recorded
            _count_unpaired(log, "peers-unknown", places, 0)
            continue
        paired = _pair_ends(ranks, places, candidates) if family[1] == _ENDS else _pair(ranks, places, candidates)
        if candidates:
            _count_unpaired(log, "unpaired-collectives", places, sum(map(len, paired)))
        complete += paired
        if members.missing:
            done = {place for match in paired for place in match}
            missing |= {place: members.missing for place in _flat(places) if place not in done}
    error_ns = max((_early_leave_ns(ranks, match) for match in complete), default=0)
    return Matching(tuple(complete), missing, names, error_ns, log.diagnostics())


_UNPAIRED = {
    "peers-unknown": "sends and receives of a group of more than two: the captures do not say whose meets whose",
    "unpaired-collectives": "collectives whose members are all open, but whose counts, order or clocks differ",
}


def _count_unpaired(log: DiagnosticLog, code: str, places: Mapping[int, Sequence[int]], paired_count: int) -> None:
    count = sum(map(len, places.values())) - paired_count
    log.add(code, Severity.NOTICE, f"{_UNPAIRED[code]}; their waiting and transfer stay unsplit", count=count)


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The rows of every rank and how its clock relates to the job's."""

    rows: Mapping[int, CollectiveRows]
    traces: Mapping[int, Trace]
    offset_ns: Mapping[int, int]
    aligned: frozenset[int]

    @staticmethod
    def of(job: Job, rows: Mapping[int, CollectiveRows]) -> "_Ranks":
        return _Ranks(
            rows=rows,
            traces={entry.rank: entry.trace for entry in job.ranks},
            offset_ns={entry.rank: entry.offset_ns for entry in job.ranks},
            aligned=frozenset(entry.rank for entry in job.ranks if entry.alignment is not Alignment.UNALIGNED),
        )


@dataclass(slots=True)
class _SeenGroup:
    """Who has a group in its tables, and whether it only sends and receives in it."""

    ranks: set[int]
    only_pairs: bool


def _families(rows: Mapping[int, CollectiveRows]) -> dict[Family, dict[int, list[int]]]:
    """Returns rank → rows in order, per family. Loops over collectives: a step has some thousands at most."""
    full_ids = {group for part in rows.values() for group in part.group}
    whole = {group: _full_id(group, full_ids) for group in full_ids}
    families: dict[Family, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank, part in rows.items():
        for row in range(len(part)):
            group = whole[part.group[row]]
            operation = part.operation[row]
            family: Family
            if operation in SENDS | RECEIVES:
                family = (group, _ENDS)
            elif INDEXED_NAME.match(part.name[row]):
                family = (group, part.name[row])
            elif group:
                family = (group, "pairs") if operation in POINT_TO_POINT else (group, "collectives")
            else:
                family = ("", "pairs") if operation in POINT_TO_POINT else ("", operation, part.shape[row])
            families[family][rank].append(row)
    return families


def _full_id(group: str, ids: set[str]) -> str:
    """Returns the whole id of a group of which an operator's name gave only the last digits."""
    longer = [item for item in ids if len(item) > len(group) and item.endswith(group)] if group.isdecimal() else []
    return longer[0] if len(longer) == 1 else group


def _groups(
    rows: Mapping[int, CollectiveRows], families: Mapping[Family, Mapping[int, list[int]]]
) -> dict[str, _SeenGroup]:
    groups: dict[str, _SeenGroup] = {}
    for family, places in families.items():
        if family[0]:
            seen = groups.setdefault(family[0], _SeenGroup(set(), only_pairs=True))
            seen.ranks |= set(places)
            seen.only_pairs &= _only_pairs(rows, places)
    return groups


def _flat(places: Mapping[int, Sequence[int]]) -> Iterator[Place]:
    for rank, rank_rows in places.items():
        for row in rank_rows:
            yield rank, row


def _only_pairs(rows: Mapping[int, CollectiveRows], places: Mapping[int, Sequence[int]]) -> bool:
    return all(rows[rank].operation[row] in POINT_TO_POINT for rank, row in _flat(places))


def _pair(
    ranks: _Ranks, places: Mapping[int, Sequence[int]], candidates: Sequence[tuple[int, ...]]
) -> list[tuple[Place, ...]]:
    """Returns the collectives of one family.

    With several candidate groups the first in which nothing contradicts is taken; the ranks outside it go on.
    """
    paired: list[tuple[Place, ...]] = []
    settled: set[int] = set()
    for members in candidates:
        if settled & set(members) or not ranks.aligned.issuperset(members):
            continue
        matches = _together(ranks, places, members)
        possible = [match for match in matches if _early_leave_ns(ranks, match) <= MAX_EARLY_LEAVE_NS]
        if possible and (len(candidates) == 1 or len(possible) == len(matches)):
            settled |= set(members)
            paired += possible
    return paired


def _pair_ends(
    ranks: _Ranks, places: Mapping[int, Sequence[int]], candidates: Sequence[tuple[int, ...]]
) -> list[tuple[Place, ...]]:
    """Returns the sends of a pair of ranks with their receives; a group of one has no peer.

    Nothing arrives before it is sent: a direction in which a receive was over before its send began is given up.
    """
    # One candidate at most: the members of a named group, or the only two ranks that sent or received.
    members = candidates[0] if candidates else ()
    if len(members) != 2 or not ranks.aligned.issuperset(members):
        return []
    directions = meetings_of_ends(ranks.rows, places, (members[0], members[1]))
    return [
        pair
        for pairs in directions
        if max(_arrived_early_ns(ranks, pair) for pair in pairs) <= MAX_EARLY_LEAVE_NS
        for pair in pairs
    ]


def _arrived_early_ns(ranks: _Ranks, pair: tuple[Place, Place]) -> int:
    """Returns by how much a receive was over before its send began, negative where it was not."""
    sent, received = sorted(pair, key=lambda place: ranks.rows[place[0]].operation[place[1]] not in SENDS)
    rank, row = received
    end_ns = start_ns(ranks.rows, ranks.offset_ns, received) + int(ranks.rows[rank].table.elapsed_ns[row])
    return start_ns(ranks.rows, ranks.offset_ns, sent) - end_ns


def _together(ranks: _Ranks, places: Mapping[int, Sequence[int]], members: tuple[int, ...]) -> list[tuple[Place, ...]]:
    """Returns the n-th row of every member together.

    Where the members disagree on how many there are (their captures begin or end at different times) the sequence
    numbers of PyTorch's process group tell which belong together; without them nothing does.
    """
    columns = [places.get(rank, ()) for rank in members]
    if len(set(map(len, columns))) != 1:
        columns = _by_sequence(ranks, dict(zip(members, columns, strict=True)))
    together = [tuple(zip(members, match, strict=True)) for match in zip(*columns, strict=True)]
    return [match for match in together if _same_operation(ranks.rows, match)]


def _by_sequence(ranks: _Ranks, places: Mapping[int, Sequence[int]]) -> list[Sequence[int]]:
    """Returns for every member the rows whose sequence number all members have, in its order.

    Decodes the arguments of the family's events; only families whose counts differ come here.
    """
    numbered: list[dict[int, int]] = []
    for rank, rank_rows in places.items():
        own = {}
        for row in rank_rows:
            event = int(ranks.rows[rank].table.event[row])
            number = ranks.traces[rank].arguments(event).get("Seq") if event >= 0 else None
            if isinstance(number, int):
                own[number] = row
        numbered.append(own)
    common = sorted(set.intersection(*(set(own) for own in numbered)))
    return [[own[number] for number in common] for own in numbered]


def _same_operation(rows: Mapping[int, CollectiveRows], match: tuple[Place, ...]) -> bool:
    operations = {rows[rank].operation[row] for rank, row in match}
    return len(operations) == 1


def _early_leave_ns(ranks: _Ranks, match: tuple[Place, ...]) -> int:
    """Returns by how much the first member of a symmetric operation left before the last one arrived, else 0."""
    rank, row = match[0]
    if ranks.rows[rank].operation[row] in MAY_LEAVE_EARLY:
        return 0
    starts_ns = [start_ns(ranks.rows, ranks.offset_ns, place) for place in match]
    ends_ns = [
        start + int(ranks.rows[rank].table.elapsed_ns[row]) for start, (rank, row) in zip(starts_ns, match, strict=True)
    ]
    return max(0, max(starts_ns) - min(ends_ns))


def start_ns(rows: Mapping[int, CollectiveRows], offset_ns: Mapping[int, int], place: Place) -> int:
    """Returns when the member at ``place`` arrived, in job time; ``offset_ns`` is every rank's."""
    rank, row = place
    return int(rows[rank].table.start_ns[row]) + offset_ns[rank]
