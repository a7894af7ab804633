"""State of the compiled engine: settings, requests, counters and logs as arrays."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from typing import NamedTuple

import numba

from engine.analyses.serving.tables import AdmissionLimit, PhaseKind, RequestStatus
from engine.core.arrays import Int32Array, Int64Array, UInt8Array
from engine.workloads.serving.queues import will_come

QUEUED, PREFILL, DECODE, PREEMPTED = (int(kind) for kind in PhaseKind)
FINISHED, REJECTED, TIMED_OUT, TOO_LONG = (int(status) for status in RequestStatus)
NO_LIMIT, PLACES, TOKENS, BLOCKS = (int(limit) for limit in AdmissionLimit)
OPEN = 255
"""Status of a request that has not ended."""
NOW, RUNNING, ITERATIONS, PHASES, ENDED, RANDOM, BLOCK_COUNT, STUCK = range(8)
"""Counters of the run: its clock, sequences in the batch, rows logged since they were last taken, requests that ended,
state of the random numbers, blocks there are, turns without a token."""
(START, END, HOST, DEVICE, PREFILL_TOKENS, DECODING, PADDED, BATCH, QUEUE, KV_BLOCKS, CACHED_BLOCKS, LIMIT) = range(12)
"""Columns of the log of iterations."""
COLUMN_COUNT = LIMIT + 1


class Rules(NamedTuple):
    """Settings of the engine; counts and ns."""

    max_batch: int
    max_wait_ns: int
    max_tokens: int
    chunked: int
    bucket_tokens: int
    block_tokens: int
    swaps: int
    timeout_ns: int
    max_queue: int
    caches: int
    guessed: int
    acceptance_ratio: float
    prefix_count: int


class Requests(NamedTuple):
    """What is known of each request. Arrays of shape (requests,).

    ``arrival_ns`` of a request with ``follower_of`` others is filled in when that one ends; ``think_ns`` is how long
    after. ``next_request`` is who comes after its end, −1 for nobody. ``computed`` counts tokens whose keys and values
    are there, ``made`` tokens of the answer so far, ``own_blocks`` blocks it holds alone, ``shared_blocks`` blocks of
    its shared text, ``continued`` whether a later turn begins with all it said.
    """

    arrival_ns: Int64Array
    think_ns: Int64Array
    prompt: Int64Array
    output: Int64Array
    session: Int32Array
    prefix: Int32Array
    shared_tokens: Int64Array
    next_request: Int32Array
    scheduled_ns: Int64Array
    first_token_ns: Int64Array
    last_token_ns: Int64Array
    cached: Int64Array
    preemptions: Int32Array
    status: UInt8Array
    computed: Int64Array
    made: Int64Array
    own_blocks: Int64Array
    shared_blocks: Int64Array
    fresh: Int64Array
    continued: UInt8Array


class Log(NamedTuple):
    """Rows since the last call. ``iterations`` int64 (rows, 12); ``phases`` int64 (rows, 3): request, kind, start."""

    iterations: Int64Array
    phases: Int64Array


@numba.njit(cache=True)
def end_request(requests, queues, counts, request, status, moment_ns):
    """Notes how a request ended; who waited for that comes next."""
    requests.status[request] = status
    counts[ENDED] += 1
    following = requests.next_request[request]
    if following >= 0:
        requests.arrival_ns[following] = moment_ns + requests.think_ns[following]
        will_come(queues, requests.arrival_ns[following], following)


@numba.njit(cache=True)
def begin_phase(counts, log, request, kind, moment_ns):
    """Logs that a request does something else from a moment on; kind −1 ends its last phase."""
    row = log.phases[counts[PHASES]]
    counts[PHASES] += 1
    row[0], row[1], row[2] = request, kind, moment_ns
