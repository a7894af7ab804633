"""Which collectives of different ranks are one meeting, by the numbers a graph knows them by."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.analyses.communication import Collective, JobCommunication
from engine.analyses.communication.collective_rows import MAY_LEAVE_EARLY, operation_of
from engine.core.arrays import Float64Array, Int32Array, Int64Array
from engine.graph.builder import GraphBuilder
from engine.trace.strings import ABSENT


@dataclass(frozen=True, slots=True, eq=False)
class RankMeetings:
    """The collectives of one rank by start. Columns of shape (n,).

    Attributes:
        rendezvous: int32, equal for the members of one collective; −1 where members are missing.
        bytes: float64 payload; what another member tells where the own capture does not, 0 where nobody does.
        duration_ns: int64, the transfer of a collective that met, else the whole elapsed time.
    """

    rendezvous: Int32Array
    bytes: Float64Array
    duration_ns: Int64Array


def meetings_of(talk: JobCommunication, builder: GraphBuilder) -> Mapping[int, RankMeetings]:
    """Returns the meetings of every rank; collectives met where the analysis split waiting from transfer.

    Args:
        talk: The job's communication.
        builder: Gives the numbers.
    """
    known: dict[tuple[object, ...], int] = {}
    numbers = {rank: _numbers(items, known, builder) for rank, items in talk.collectives.items()}
    told_bytes = np.zeros(len(known) + 1, dtype=np.float64)
    first = min(known.values(), default=0)
    for rank, items in talk.collectives.items():
        size_bytes = np.array([item.bytes or 0 for item in items], dtype=np.float64)
        met = numbers[rank] >= 0
        np.maximum.at(told_bytes, numbers[rank][met] - first, size_bytes[met])
    answer = {}
    for rank, items in talk.collectives.items():
        own_bytes = np.array([0.0 if item.bytes is None else item.bytes for item in items], dtype=np.float64)
        silent = np.array([item.bytes is None for item in items], dtype=np.bool_) & (numbers[rank] >= 0)
        own_bytes[silent] = told_bytes[numbers[rank][silent] - first]
        duration_ns = np.array([_duration_ns(item) for item in items], dtype=np.int64)
        answer[rank] = RankMeetings(numbers[rank], own_bytes, duration_ns)
    return answer


def _duration_ns(item: Collective) -> int:
    """Returns the transfer of a collective, or its elapsed time where members are missing.

    Members of a symmetric operation end together, so the one that was there shortest came last and did nothing but
    transfer: its elapsed time is the transfer, whatever the error of joining the members' clocks.
    """
    if item.transfer_ns is None or len(item.members) < 2:
        return item.elapsed_ns
    if operation_of(item.name) in MAY_LEAVE_EARLY:
        return item.transfer_ns
    return min(arrival.end_ns - arrival.start_ns for arrival in item.members)


def _numbers(items: tuple[Collective, ...], known: dict[tuple[object, ...], int], builder: GraphBuilder) -> Int32Array:
    """Returns the number of each collective of a rank; a turn per collective, of which a rank has few."""
    numbers = np.full(len(items), ABSENT, dtype=np.int32)
    seen: dict[tuple[object, ...], int] = {}
    for index, item in enumerate(items):
        if len(item.members) < 2 or item.transfer_ns is None:
            continue
        # Members come by arrival, so the first and the last of them tell a group's collectives apart.
        met = (item.group, item.members[0], item.members[-1], len(item.members))
        # Collectives of no length may share all their moments: the n-th of them is the n-th everywhere.
        seen[met] = seen.get(met, -1) + 1
        key = (met, seen[met])
        if key not in known:
            known[key] = builder.new_rendezvous()
        numbers[index] = known[key]
    return numbers
