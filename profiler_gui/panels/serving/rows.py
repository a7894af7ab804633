"""Requests as rows: in which order they stand, and which of them are drawn when there are more rows than pixels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.analyses.serving.tables import ServedRequests, ServedRun
    from engine.core.arrays import Float64Array, Int64Array, UInt8Array


class Order(StrEnum):
    """In which order requests stand."""

    WAIT = "wait"
    """The longest time to the first token first; who never got one before all others."""
    WHOLE = "whole"
    """The longest time from arrival to the last token first."""
    NEWEST = "newest"
    """The latest arrival first."""
    ARRIVAL = "arrival"


@dataclass(frozen=True, slots=True, eq=False)
class RequestRows:
    """Requests in an order, with what each was doing.

    Attributes:
        order: int64, shape (requests,): number of the request in each row.
        row: int64, shape (requests,): the row of each request.
        weight_ns: int64, shape (rows,): what rows are ordered or chosen by; the largest of several is drawn.
        first: int64, shape (requests + 1,): where the phases of each request begin in the arrays below.
        start_ns: int64, shape (phases,), by request.
        end_ns: int64, shape (phases,).
        kind: uint8 PhaseKind, shape (phases,).
        span_ns: End of the last phase.
    """

    order: Int64Array
    row: Int64Array
    weight_ns: Int64Array
    first: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    kind: UInt8Array
    span_ns: int

    def __len__(self) -> int:
        return len(self.order)


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """What is drawn: arrays of shape (n,).

    Attributes:
        top: float64 row the slice begins in.
        start_ns: float64.
        width_ns: float64.
        kind: uint8 PhaseKind.
    """

    top: Float64Array
    start_ns: Float64Array
    width_ns: Float64Array
    kind: UInt8Array


def request_rows(run: ServedRun, order: Order) -> RequestRows:
    """Returns the requests of a run in an order."""
    requests, phases = run.requests, run.phases
    weight_ns = _weight_ns(requests, order)
    rows = np.argsort(weight_ns if order is Order.ARRIVAL else -weight_ns, kind="stable")
    row = np.empty(len(rows), dtype=np.int64)
    row[rows] = np.arange(len(rows))
    by_request = np.lexsort((phases.start_ns, phases.request))
    first = np.searchsorted(phases.request[by_request], np.arange(len(requests) + 1))
    return RequestRows(
        order=rows,
        row=row,
        weight_ns=_whole_ns(requests)[rows],
        first=first,
        start_ns=phases.start_ns[by_request],
        end_ns=phases.end_ns[by_request],
        kind=phases.kind[by_request],
        span_ns=int(phases.end_ns.max(initial=1)),
    )


def _weight_ns(requests: ServedRequests, order: Order) -> Int64Array:
    if order is Order.WAIT:
        never = np.iinfo(np.int64).max
        waited: Int64Array = np.where(
            requests.first_token_ns >= 0, requests.first_token_ns - requests.arrival_ns, never
        )
        return waited
    return _whole_ns(requests) if order is Order.WHOLE else requests.arrival_ns


def _whole_ns(requests: ServedRequests) -> Int64Array:
    """Returns the time from arrival to the last token, 0 where there is none."""
    whole: Int64Array = np.maximum(requests.last_token_ns - requests.arrival_ns, 0)
    return whole


def shown_rows(rows: RequestRows, top: float, bottom: float, height_px: int) -> tuple[Int64Array, float]:
    """Returns the rows to draw between two edges, and how many rows each stands for.

    Where there are more rows than pixels each pixel shows the request of its rows that took longest, so that what is
    late never vanishes between its neighbours.

    Args:
        rows: All of them.
        top: Upper edge in rows.
        bottom: Lower edge.
        height_px: Pixels between them.
    """
    first, last = max(int(top), 0), min(int(np.ceil(bottom)), len(rows))
    count = max(last - first, 0)
    if count <= max(height_px, 1):
        return np.arange(first, first + count, dtype=np.int64), 1.0
    # Groups are counted from the first row of all, not from the edge: scrolling must not change what they show.
    size = -(-count // height_px)
    first -= first % size
    begins = np.arange(first, last, size, dtype=np.int64)
    padded = np.zeros(len(begins) * size, dtype=np.int64)
    padded[: last - first] = rows.weight_ns[first:last]
    longest: Int64Array = begins + padded.reshape(len(begins), size).argmax(axis=1)
    return longest, float(size)


def slices_of(
    rows: RequestRows, shown: Int64Array, size: float, start_ns: float, end_ns: float, ns_per_px: float
) -> Slices:
    """Returns the slices of some rows in a stretch of time, each at least a pixel wide.

    Args:
        rows: All of them.
        shown: int64, shape (n,): rows to draw.
        size: How many rows each stands for.
        start_ns: Left edge.
        end_ns: Right edge.
        ns_per_px: What a pixel stands for.
    """
    request = rows.order[shown]
    first, count = rows.first[request], rows.first[request + 1] - rows.first[request]
    owner = np.repeat(np.arange(len(shown)), count)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    phase = first[owner] + offset
    seen = (rows.end_ns[phase] >= start_ns) & (rows.start_ns[phase] <= end_ns)
    phase, owner = phase[seen], owner[seen]
    top = (shown[owner] // int(size) * int(size)).astype(np.float64)
    begin = rows.start_ns[phase].astype(np.float64)
    width = np.maximum(rows.end_ns[phase] - begin, ns_per_px)
    return Slices(top, begin, width, rows.kind[phase])
