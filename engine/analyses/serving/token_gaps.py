"""Times between two tokens of an answer: per iteration for all who decode in it, and over preemptions."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.serving.tables import PhaseKind, ServedRun
from engine.core.arrays import BoolArray, Float64Array, Int64Array
from engine.trace.strings import ABSENT


@dataclass(frozen=True, slots=True, eq=False)
class TokenGaps:
    """How long answers stood still.

    Attributes:
        gap_ns: int64, shape (decoding iterations,): from the decoding iteration before, or from the first token, to
            the end of this one.
        tokens: int64, shape (decoding iterations,): sequences that waited that long.
        longest_ns: int64, shape (requests,): longest gap of each request; 0 for answers of one token.
        longest_start_ns: int64, shape (requests,): the token before it; −1 without one.
        over_preemption: bool, shape (requests,): whether the longest gap is a preemption.
    """

    gap_ns: Int64Array
    tokens: Int64Array
    longest_ns: Int64Array
    longest_start_ns: Int64Array
    over_preemption: BoolArray


def token_gaps(run: ServedRun) -> TokenGaps:
    """Returns the gaps of a run with iterations.

    Every sequence that decodes is taken to get a token in each iteration in which anybody does, as engines schedule it
    unless an iteration's tokens do not even suffice for those who decode.
    """
    steps, phases = run.iterations, run.phases
    decoding = np.flatnonzero(steps.decode_sequences > 0)
    ends = steps.end_ns[decoding]
    # No answer spans a moment at which the engine was idle: nothing can be older than the first token after it.
    idle = np.concatenate(([True], steps.start_ns[1:] > steps.end_ns[:-1]))[: len(steps)]
    stretch = np.maximum.accumulate(np.where(idle, np.arange(len(steps)), 0))
    before = np.concatenate((steps.start_ns[decoding[:1]], ends[:-1]))
    gap_ns = ends - np.maximum(before, np.minimum(steps.end_ns[stretch[decoding]], steps.start_ns[decoding]))
    longest = np.zeros(len(run.requests), dtype=np.int64)
    begins = np.full(len(run.requests), ABSENT, dtype=np.int64)
    preempted = np.zeros(len(run.requests), dtype=np.bool_)
    own = np.flatnonzero(phases.kind == PhaseKind.DECODE)
    first = np.searchsorted(ends, phases.start_ns[own], side="right")
    last = np.searchsorted(ends, phases.end_ns[own], side="right")
    some = np.flatnonzero(last > first)
    own, first, last = own[some], first[some], last[some]
    # The first gap of a phase begins with the phase, not with the iteration before.
    first_ns = ends[first] - phases.start_ns[own]
    rest, where = _largest(gap_ns, first + 1, last)
    begin_of_rest = ends[np.maximum(where, 1) - 1] if len(ends) else where
    value = np.maximum(first_ns, rest)
    begin = np.where(first_ns >= rest, phases.start_ns[own], begin_of_rest)
    _keep_largest(longest, begins, preempted, phases.request[own].astype(np.int64), value, begin, is_preemption=False)
    request, value, begin = _preemptions(run)
    _keep_largest(longest, begins, preempted, request, value, begin, is_preemption=True)
    return TokenGaps(gap_ns, steps.decode_sequences[decoding], longest, begins, preempted)


def _largest(values: Int64Array, first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Returns the largest of each ``values[first:last]`` and where it is; 0 and 0 of nothing.

    Looked up in tables of the largest of 1, 2, 4 … neighbours: two overlapping ones cover any stretch.
    """
    largest, where = np.zeros(len(first), dtype=np.int64), np.zeros(len(first), dtype=np.int64)
    table = np.arange(len(values))
    width, length = 1, last - first
    while width <= len(values):
        chosen = np.flatnonzero((length >= width) & (length < 2 * width))
        left, right = table[first[chosen]], table[last[chosen] - width]
        where[chosen] = np.where(values[left] >= values[right], left, right)
        largest[chosen] = values[where[chosen]]
        table = np.where(values[table[:-width]] >= values[table[width:]], table[:-width], table[width:])
        width *= 2
    return largest, where


def _preemptions(run: ServedRun) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Returns request, length and beginning of the gaps from a preemption of an answer to its next token."""
    phases = run.phases
    order = np.lexsort((phases.start_ns, phases.request))
    request, kind = phases.request[order], phases.kind[order]
    start_ns = phases.start_ns[order]
    first_token_ns = run.requests.first_token_ns[request]
    lost = np.flatnonzero((kind == PhaseKind.PREEMPTED) & (start_ns >= first_token_ns) & (first_token_ns >= 0))
    # Who decodes again does so in the next decoding phase of the same request.
    again = np.flatnonzero(kind == PhaseKind.DECODE)
    place = np.searchsorted(again, lost)
    known = place < len(again)
    lost, following = lost[known], again[place[known]]
    same = request[following] == request[lost]
    lost, following = lost[same], following[same]
    return request[lost].astype(np.int64), start_ns[following] - start_ns[lost], start_ns[lost]


def _keep_largest(
    longest: Int64Array,
    begins: Int64Array,
    preempted: BoolArray,
    request: Int64Array,
    value_ns: Int64Array,
    begin_ns: Int64Array,
    *,
    is_preemption: bool,
) -> None:
    """Writes the largest value of each request where it is larger than what stands there."""
    order = np.lexsort((value_ns, request))
    last_of_each = np.flatnonzero(np.diff(request[order], append=-1) != 0)
    chosen = order[last_of_each]
    chosen = chosen[value_ns[chosen] > longest[request[chosen]]]
    longest[request[chosen]] = value_ns[chosen]
    begins[request[chosen]] = begin_ns[chosen]
    preempted[request[chosen]] = is_preemption


def weighted_percentile(values: Int64Array, weights: Int64Array, percent: float) -> float:
    """Returns the smallest value that at least ``percent`` of the weight does not exceed; 0 of nothing."""
    order = np.argsort(values, kind="stable")
    reached: Float64Array = np.cumsum(weights[order]).astype(np.float64)
    if len(reached) == 0 or reached[-1] == 0:
        return 0.0
    return float(values[order[np.searchsorted(reached, reached[-1] * percent / 100)]])
