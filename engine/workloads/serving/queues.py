"""Requests that will come and requests that wait: a heap by time and a ring. Compiled."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202

from typing import NamedTuple

import numba
import numpy as np

from engine.core.arrays import Int32Array, Int64Array

HEAP_SIZE, FIRST, WAITING = range(3)


class Queues(NamedTuple):
    """State of both. Arrays of shape (requests,) but for ``counts``.

    Attributes:
        heap_ns: int64, arrival of the requests that will come, a binary heap.
        heap_request: int32, theirs.
        ring: int32, requests that wait.
        counts: int64, shape (3,): size of the heap, place of the first that waits, how many wait.
    """

    heap_ns: Int64Array
    heap_request: Int32Array
    ring: Int32Array
    counts: Int64Array


def new_queues(request_count: int) -> Queues:
    """Returns empty queues."""
    room = max(request_count, 1)
    return Queues(
        heap_ns=np.zeros(room, dtype=np.int64),
        heap_request=np.zeros(room, dtype=np.int32),
        ring=np.zeros(room, dtype=np.int32),
        counts=np.zeros(3, dtype=np.int64),
    )


@numba.njit(cache=True)
def will_come(queues, moment_ns, request):
    """Notes that a request comes at a moment."""
    place = queues.counts[HEAP_SIZE]
    queues.counts[HEAP_SIZE] += 1
    while place > 0:
        above = (place - 1) // 2
        if not _before(moment_ns, request, queues.heap_ns[above], queues.heap_request[above]):
            break
        queues.heap_ns[place], queues.heap_request[place] = queues.heap_ns[above], queues.heap_request[above]
        place = above
    queues.heap_ns[place], queues.heap_request[place] = moment_ns, request


@numba.njit(cache=True)
def next_arrival(queues):
    """Takes the request that comes first from the heap and returns it."""
    request = queues.heap_request[0]
    queues.counts[HEAP_SIZE] -= 1
    size = queues.counts[HEAP_SIZE]
    moment_ns, last = queues.heap_ns[size], queues.heap_request[size]
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        other = below + 1
        if other < size and _before(
            queues.heap_ns[other], queues.heap_request[other], queues.heap_ns[below], queues.heap_request[below]
        ):
            below = other
        if not _before(queues.heap_ns[below], queues.heap_request[below], moment_ns, last):
            break
        queues.heap_ns[place], queues.heap_request[place] = queues.heap_ns[below], queues.heap_request[below]
        place = below
    queues.heap_ns[place], queues.heap_request[place] = moment_ns, last
    return request


@numba.njit(cache=True)
def _before(moment_ns, request, other_ns, other):
    return moment_ns < other_ns or (moment_ns == other_ns and request < other)


@numba.njit(cache=True)
def join_end(queues, request):
    """Puts a request at the end of those that wait."""
    room = len(queues.ring)
    queues.ring[(queues.counts[FIRST] + queues.counts[WAITING]) % room] = request
    queues.counts[WAITING] += 1


@numba.njit(cache=True)
def join_front(queues, request):
    """Puts a request before all others that wait."""
    room = len(queues.ring)
    queues.counts[FIRST] = (queues.counts[FIRST] - 1) % room
    queues.ring[queues.counts[FIRST]] = request
    queues.counts[WAITING] += 1


@numba.njit(cache=True)
def leave_front(queues):
    """Takes the first request that waits away."""
    queues.counts[FIRST] = (queues.counts[FIRST] + 1) % len(queues.ring)
    queues.counts[WAITING] -= 1
