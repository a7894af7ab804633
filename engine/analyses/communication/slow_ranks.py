"""Ranks the others wait for, what that costs, and what they did meanwhile."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from engine.analyses.communication.collectives import Collective, SlowRank
from engine.core.number_format import format_ratio
from engine.trace.intervals import Intervals, difference, intersection, union
from engine.trace.job import Job


def slow_ranks(
    job: Job, collectives: Mapping[int, tuple[Collective, ...]], computing: Mapping[int, Intervals | None]
) -> tuple[SlowRank, ...]:
    """Returns every rank somebody waited for, the most expensive first.

    Args:
        job: For the ranks' clocks.
        collectives: Of every rank, in its trace's time.
        computing: Union of computing of every rank, in its trace's time; None where its capture lists no kernels.
    """
    waits: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for rank, own in collectives.items():
        offset_ns = job.rank_trace(rank).offset_ns
        for collective in own:
            if collective.wait_ns and collective.late_rank is not None:
                start_ns = collective.start_ns + offset_ns
                waits[collective.late_rank].append((start_ns, start_ns + collective.wait_ns))
    found = []
    for rank, ranges in waits.items():
        bounds = np.array(ranges, dtype=np.int64)
        others_waiting = union(bounds[:, 0], bounds[:, 1])
        offset_ns = job.rank_trace(rank).offset_ns
        own_time = Intervals(others_waiting.start_ns - offset_ns, others_waiting.end_ns - offset_ns)
        cause = _cause(own_time, computing[rank], collectives[rank])
        found.append(SlowRank(rank, cause, others_waiting.total_ns))
    return tuple(sorted(found, key=lambda item: (-item.cost_ns, item.rank)))


def _cause(waited: Intervals, computing: Intervals | None, own: tuple[Collective, ...]) -> str:
    """Returns what the late rank did in the time others waited for it, the longest part first."""
    start_ns = np.array([collective.start_ns for collective in own], dtype=np.int64)
    elapsed_ns = np.array([collective.elapsed_ns for collective in own], dtype=np.int64)
    communicating = intersection(waited, union(start_ns, start_ns + elapsed_ns))
    if computing is None:
        parts = {
            "communicating": communicating.total_ns,
            "outside collectives": difference(waited, communicating).total_ns,
        }
    else:
        busy = intersection(waited, computing)
        parts = {
            "computing": busy.total_ns,
            "communicating": difference(communicating, busy).total_ns,
            "idle": difference(difference(waited, busy), communicating).total_ns,
        }
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    text = ", ".join(f"{what} {format_ratio(ns / waited.total_ns)}" for what, ns in ordered if ns > 0)
    return text if computing is not None else f"{text} (its capture lists no kernels)"
