"""Which requests were late and why: the wait for a first token, or a gap between two tokens, in parts by cause."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np

from engine.analyses.serving.jitter_parts import Cause, first_token_parts, gap_parts, longest_prompt_between
from engine.analyses.serving.latency import ttft_ns
from engine.analyses.serving.tables import ServedRun
from engine.analyses.serving.token_gaps import TokenGaps, token_gaps, weighted_percentile
from engine.core.arrays import Float64Array, Int64Array
from engine.core.errors import MissingDataError

LATE_PERCENT = 99.0
LATE_RATIO = 2.0
"""Without limits of its own a run is judged by itself: late is who is beyond the 99th percentile of requests (of their
first tokens, of their longest gaps) and takes at least twice the median; a choice."""
LISTED = 200
"""Late requests told one by one, those latest by share first; all are counted."""


class Limit(StrEnum):
    """What a request was late by."""

    FIRST = "first token"
    GAP = "gap between tokens"
    MEAN = "time per token"


class _Kind(IntEnum):
    FIRST = 0
    GAP = 1


@dataclass(frozen=True, slots=True)
class LateLimits:
    """From when on something is late.

    Attributes:
        first_token_ns: Time to the first token.
        gap_ns: Gap between two tokens; 0 where the limit is one on the mean time per token.
        time_per_token_ns: Mean time per further token; 0 where the limit is one on gaps.
        median_first_token_ns: Of the run.
        are_given: Whether they are limits of the service, not the run's own percentiles.
    """

    first_token_ns: float
    gap_ns: float
    time_per_token_ns: float
    median_first_token_ns: float
    are_given: bool


@dataclass(frozen=True, slots=True)
class LateRequest:
    """One late request.

    Attributes:
        request: Its number.
        limit: What was late.
        taken_ns: How long it took.
        limit_ns: From when on that is late.
        start_ns: When the wait began: arrival, or the token before the gap.
        end_ns: When the token came.
        cause: The largest part.
        parts_ns: All parts, together ``end_ns − start_ns``.
        blamed: Request with the longest prompt computed meanwhile; −1 for nobody.
        blamed_tokens: Tokens of it that were computed.
        running: Sequences in the batch at most meanwhile.
        waiting: Requests in the queue at most meanwhile.
    """

    request: int
    limit: Limit
    taken_ns: int
    limit_ns: float
    start_ns: int
    end_ns: int
    cause: Cause
    parts_ns: Mapping[Cause, int]
    blamed: int
    blamed_tokens: int
    running: int
    waiting: int


@dataclass(frozen=True, slots=True, eq=False)
class Jitter:
    """Late requests of a run.

    Attributes:
        limits: From when on something is late.
        requests: Finished requests in all.
        late_first: How many waited too long for their first token.
        late_between: How many waited too long between tokens.
        causes: Cause → late waits it is the largest part of, the most frequent first.
        first_causes: Cause → those of them that are waits for first tokens.
        listed: Up to ``LISTED`` of them, the latest first.
    """

    limits: LateLimits
    requests: int
    late_first: int
    late_between: int
    causes: Mapping[Cause, int]
    first_causes: Mapping[Cause, int]
    listed: tuple[LateRequest, ...]

    @property
    def late(self) -> int:
        """Late waits in all; a request can be late twice."""
        return self.late_first + self.late_between


def late_limits(run: ServedRun, slo_ttft_ns: int = 0, slo_tpot_ns: int = 0) -> LateLimits:
    """Returns from when on something in a run is late.

    Args:
        run: With iterations.
        slo_ttft_ns: Limit of the service on the time to the first token, 0 for none.
        slo_tpot_ns: Limit on the mean time per further token, 0 for none.

    Raises:
        MissingDataError: Iterations were not recorded, or no request was answered.
    """
    if not len(run.iterations) or not run.requests.finished.any():
        raise MissingDataError("iterations of the engine", "serve at least one request on the simulated runtime")
    first = ttft_ns(run.requests)
    gaps = token_gaps(run)
    median = float(np.median(first))
    median_gap = weighted_percentile(gaps.gap_ns, gaps.tokens, 50.0)
    own_first = max(_percentile(first), LATE_RATIO * median)
    several = gaps.longest_ns[gaps.longest_ns > 0]
    own_gap = max(_percentile(several), LATE_RATIO * median_gap)
    given = bool(slo_ttft_ns or slo_tpot_ns)
    return LateLimits(
        first_token_ns=float(slo_ttft_ns) if slo_ttft_ns else np.inf if given else own_first,
        gap_ns=0.0 if given else own_gap,
        time_per_token_ns=(float(slo_tpot_ns) if slo_tpot_ns else np.inf) if given else 0.0,
        median_first_token_ns=median,
        are_given=given,
    )


def _percentile(values_ns: Float64Array | Int64Array) -> float:
    """Returns what just does not reach the percentile, so that who stands on it with many others is late as well."""
    return float(np.percentile(values_ns, LATE_PERCENT, method="lower")) - 0.5 if len(values_ns) else 0.0


def late_counts(run: ServedRun, limits: LateLimits) -> tuple[int, int]:
    """Returns how many finished requests of a run were late with their first token, and between tokens."""
    first, between = _late(run, limits, token_gaps(run))
    return len(first), len(between)


def jitter(run: ServedRun, limits: LateLimits) -> Jitter:
    """Returns the late requests of a run with the cause of each.

    Args:
        run: With iterations.
        limits: From when on something is late.
    """
    gaps = token_gaps(run)
    first, between = _late(run, limits, gaps)
    requests = run.requests
    start_ns = np.concatenate((requests.arrival_ns[first], gaps.longest_start_ns[between]))
    end_ns = np.concatenate((requests.first_token_ns[first], gaps.longest_start_ns[between] + gaps.longest_ns[between]))
    parts = np.concatenate(
        (
            first_token_parts(run, first),
            gap_parts(run, gaps.longest_start_ns[between], gaps.longest_ns[between], gaps.over_preemption[between]),
        )
    )
    request = np.concatenate((first, between))
    kind = np.repeat([_Kind.FIRST, _Kind.GAP], [len(first), len(between)])
    cause = parts.argmax(axis=1) if len(parts) else np.empty(0, dtype=np.int64)
    counts = np.bincount(cause, minlength=len(Cause))
    excess = _excess(run, limits, gaps, request, kind)
    order = np.argsort(-excess, kind="stable")[:LISTED]
    # Two hundred requests at most are told one by one.
    listed = [
        _told(run, limits, int(request[at]), int(kind[at]), int(start_ns[at]), int(end_ns[at]), parts[at])
        for at in order.tolist()
    ]
    names = list(Cause)
    return Jitter(
        limits=limits,
        requests=int(np.count_nonzero(requests.finished)),
        late_first=len(first),
        late_between=len(between),
        causes={names[at]: int(counts[at]) for at in np.argsort(-counts, kind="stable").tolist() if counts[at]},
        first_causes={names[at]: int(count) for at, count in enumerate(np.bincount(cause[: len(first)])) if count},
        listed=tuple(listed),
    )


def _late(run: ServedRun, limits: LateLimits, gaps: TokenGaps) -> tuple[Int64Array, Int64Array]:
    requests = run.requests
    first = requests.finished & (requests.first_token_ns - requests.arrival_ns > limits.first_token_ns)
    if limits.are_given:
        between = requests.finished & (_per_token_ns(run) > limits.time_per_token_ns)
    else:
        between = requests.finished & (gaps.longest_ns > limits.gap_ns)
    return np.flatnonzero(first), np.flatnonzero(between)


def _per_token_ns(run: ServedRun) -> Int64Array:
    requests = run.requests
    answered = requests.last_token_ns - requests.first_token_ns
    per_token: Int64Array = answered // np.maximum(requests.output_tokens - 1, 1)
    return per_token


def _excess(run: ServedRun, limits: LateLimits, gaps: TokenGaps, request: Int64Array, kind: Int64Array) -> Float64Array:
    """Returns how many times their limits late waits took; a limit of 0 counts as 1 ns."""
    requests = run.requests
    first = (requests.first_token_ns - requests.arrival_ns) / max(limits.first_token_ns, 1.0)
    if limits.are_given:
        between = _per_token_ns(run) / limits.time_per_token_ns
    else:
        between = gaps.longest_ns / max(limits.gap_ns, 1.0)
    excess: Float64Array = np.where(kind == _Kind.FIRST, first[request], between[request])
    return excess


def _told(
    run: ServedRun, limits: LateLimits, request: int, kind: int, start_ns: int, end_ns: int, parts: Int64Array
) -> LateRequest:
    steps = run.iterations
    first = int(np.searchsorted(steps.end_ns, start_ns, side="right"))
    last = int(np.searchsorted(steps.start_ns, end_ns, side="left"))
    blamed, tokens = longest_prompt_between(run, request, start_ns, end_ns)
    names = list(Cause)
    if kind == _Kind.FIRST:
        limit, limit_ns, taken_ns = Limit.FIRST, limits.first_token_ns, end_ns - start_ns
    elif limits.are_given:
        limit, limit_ns = Limit.MEAN, limits.time_per_token_ns
        taken_ns = int(_per_token_ns(run)[request])
    else:
        limit, limit_ns, taken_ns = Limit.GAP, limits.gap_ns, end_ns - start_ns
    return LateRequest(
        request=request,
        limit=limit,
        taken_ns=taken_ns,
        limit_ns=limit_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        cause=names[int(parts.argmax())],
        parts_ns={names[at]: int(parts[at]) for at in np.argsort(-parts, kind="stable").tolist() if parts[at]},
        blamed=blamed,
        blamed_tokens=tokens,
        running=int(steps.running[first:last].max(initial=0)),
        waiting=int(steps.waiting[first:last].max(initial=0)),
    )
