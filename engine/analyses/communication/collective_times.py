"""When a rank transfers and when it waits, over collectives that may run at the same time."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from engine.analyses.communication.collectives import Collective
from engine.trace.intervals import Intervals, difference, union


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveTimes:
    """Disjoint sets of a rank's trace time; together the union of its collectives.

    Attributes:
        transfer: At least one collective has all its members and transfers.
        wait: No collective transfers, and at least one waits for a member.
        unsplit: Only collectives run whose members are not all known.
    """

    transfer: Intervals
    wait: Intervals
    unsplit: Intervals


def collective_times(collectives: Iterable[Collective]) -> CollectiveTimes:
    """Returns the times of some collectives of one rank; sums over collectives count what overlaps twice."""
    items = tuple(collectives)
    start_ns = np.array([item.start_ns for item in items], dtype=np.int64)
    end_ns = start_ns + np.array([item.elapsed_ns for item in items], dtype=np.int64)
    is_split = np.array([item.wait_ns is not None for item in items], dtype=np.bool_)
    arrived_ns = start_ns + np.array([item.wait_ns or 0 for item in items], dtype=np.int64)
    transfer = union(arrived_ns[is_split], end_ns[is_split])
    wait = difference(union(start_ns[is_split], arrived_ns[is_split]), transfer)
    unsplit = difference(difference(union(start_ns[~is_split], end_ns[~is_split]), transfer), wait)
    return CollectiveTimes(transfer, wait, unsplit)
