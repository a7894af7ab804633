"""One rank's communication as sets of time: transfer, waiting, unsplit, each exposed or hidden behind computing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.communication import Collective, JobCommunication
    from engine.core.arrays import Float64Array, Int64Array
    from engine.trace import Job
    from engine.trace.intervals import Intervals


class LaneClass(IntEnum):
    """What a rank does inside a collective."""

    TRANSFER = 0
    WAIT = 1
    UNSPLIT = 2


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """The communication of one rank, in its own trace's time.

    Attributes:
        rank: Global rank.
        offset_ns: Job time of the trace's ns 0.
        exposed: Per LaneClass, what computing does not cover; disjoint.
        hidden: Per LaneClass, what it covers; disjoint.
        start_ns: Of the rank's collectives, int64, shape (n,), ascending.
        end_ns: int64, shape (n,).
    """

    rank: int
    offset_ns: int
    exposed: tuple[Intervals, ...]
    hidden: tuple[Intervals, ...]
    start_ns: Int64Array
    end_ns: Int64Array

    def collective_at(self, time_ns: int, tolerance_ns: int) -> int | None:
        """Returns the index of the shortest collective at a moment of the rank's time, else the nearest close one."""
        distance_ns = np.maximum(np.maximum(self.start_ns - time_ns, time_ns - self.end_ns), 0)
        if len(distance_ns) == 0 or int(distance_ns.min()) > tolerance_ns:
            return None
        nearest = np.flatnonzero(distance_ns == distance_ns.min())
        return int(nearest[np.argmin((self.end_ns - self.start_ns)[nearest])])


def lanes_of(job: Job, joined: JobCommunication) -> tuple[Lane, ...]:
    """Returns a lane per rank that communicates, the rank others waited for the longest first."""
    costs = {item.rank: item.cost_ns for item in joined.slow_ranks}
    order = sorted(job.ranks, key=lambda entry: (-costs.get(entry.rank, 0), entry.rank))
    return tuple(
        _lane(job, entry.rank, joined.collectives[entry.rank]) for entry in order if joined.collectives.get(entry.rank)
    )


def _lane(job: Job, rank: int, collectives: tuple[Collective, ...]) -> Lane:
    from engine.analyses.communication.collective_times import collective_times
    from engine.analyses.device import device_work
    from engine.trace.intervals import EMPTY, difference, intersection

    entry = job.rank_trace(rank)
    times = collective_times(collectives)
    start_ns = np.array([item.start_ns for item in collectives], dtype=np.int64)
    end_ns = start_ns + np.array([item.elapsed_ns for item in collectives], dtype=np.int64)
    computing = device_work(entry.trace).computing if len(entry.trace.events) else EMPTY
    sets = (times.transfer, times.wait, times.unsplit)
    return Lane(
        rank,
        entry.offset_ns,
        tuple(difference(part, computing) for part in sets),
        tuple(intersection(part, computing) for part in sets),
        start_ns,
        end_ns,
    )


@dataclass(frozen=True, slots=True, eq=False)
class LanePixels:
    """How much of each pixel column each class fills, float64, shape (classes, columns), 0…1."""

    exposed: Float64Array
    hidden: Float64Array


def lane_pixels(lane: Lane, start_ns: int, end_ns: int, column_count: int) -> LanePixels:
    """Returns what a lane shows of ``[start, end)`` of its own time.

    A column is filled in proportion to what lies in it, so a sliver is pale and never wider than its column.
    """
    from engine.trace.intervals import covered_ns

    # In two parts, so that the product of a long range and many columns cannot overflow.
    steps = np.arange(column_count + 1, dtype=np.int64)
    whole_ns, rest_ns = divmod(end_ns - start_ns, column_count)
    edges_ns = start_ns + steps * whole_ns + steps * rest_ns // column_count
    first_ns, last_ns = edges_ns[:-1], np.maximum(edges_ns[1:], edges_ns[:-1] + 1)
    width_ns = (last_ns - first_ns).astype(np.float64)

    def ratios(sets: tuple[Intervals, ...]) -> Float64Array:
        return np.stack([covered_ns(part, first_ns, last_ns) / width_ns for part in sets])

    return LanePixels(ratios(lane.exposed), ratios(lane.hidden))


def index_of_event(collectives: Mapping[int, tuple[Collective, ...]], rank: int, event: int) -> int | None:
    """Returns the index of the collective that an event row of the rank stands for."""
    return next((index for index, item in enumerate(collectives.get(rank, ())) if item.event == event), None)
