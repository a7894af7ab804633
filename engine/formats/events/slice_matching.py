"""Slices from pairs of begin and end events."""

from dataclasses import dataclass

import numba
import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array

_SEARCH_LIMIT = 4096
"""An end is compared with at most this many open slices: a hostile file could make the search quadratic."""


@dataclass(frozen=True, slots=True, eq=False)
class MatchedSlices:
    """Slices made of pairs, by order of their begin.

    Attributes:
        begin: int64, shape (n,): index of the begin event.
        end: int64, shape (n,): index of the end event, or −1 where it was not recorded.
        orphan_count: Ends without a begin.
    """

    begin: Int64Array
    end: Int64Array
    orphan_count: int


def match_pairs(lane: Int32Array, time_ns: Int64Array, is_begin: BoolArray, name: Int32Array) -> MatchedSlices:
    """Matches begins with ends per lane.

    Events are taken by time, equal times in the given order. An end closes the innermost open slice of its own name
    (perfetto#237, #386: two slices that overlap without nesting must not swap their ends); one without a name closes
    the innermost open slice, as the Trace Event format says.

    Args:
        lane: int32, shape (n,): events of different lanes never meet.
        time_ns: int64, shape (n,).
        is_begin: bool, shape (n,).
        name: int32, shape (n,), −1 where absent.
    """
    order = np.lexsort((np.arange(len(lane)), time_ns, lane))
    partner, orphan_count = _match(lane[order], is_begin[order], name[order], _SEARCH_LIMIT)
    ends = np.full(len(lane), -1, dtype=np.int64)
    ends[order] = np.where(partner >= 0, order[partner], -1)
    begin = np.flatnonzero(is_begin)
    return MatchedSlices(begin, ends[begin], int(orphan_count))


@numba.njit(cache=True)
def _match(lane: Int32Array, is_begin: BoolArray, name: Int32Array, search_limit: int) -> tuple[Int64Array, int]:
    count = len(lane)
    partner = np.full(count, -1, np.int64)
    below = np.full(count, -1, np.int64)
    top = -1
    orphan_count = 0
    for index in range(count):
        if index == 0 or lane[index] != lane[index - 1]:
            top = -1
        if is_begin[index]:
            below[index] = top
            top = index
            continue
        above = -1
        candidate = top
        steps = 0
        while candidate >= 0 and name[index] >= 0 and name[candidate] != name[index]:
            above = candidate
            candidate = below[candidate]
            steps += 1
            if steps == search_limit:
                candidate = -1
        if candidate < 0:
            orphan_count += 1
            continue
        partner[candidate] = index
        if above < 0:
            top = below[candidate]
        else:
            below[above] = below[candidate]
    return partner, orphan_count
