"""Latencies, throughput and occupancy of a served run."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.serving.tables import RequestStatus, ServedRequests, ServedRun
from engine.core.arrays import Float64Array
from engine.core.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity over requests, ns.

    Attributes:
        mean_ns: Arithmetic mean.
        p50_ns: Median.
        p90_ns: 90th percentile, linear between neighbours as numpy's default.
        p99_ns: 99th percentile.
    """

    mean_ns: float
    p50_ns: float
    p90_ns: float
    p99_ns: float


@dataclass(frozen=True, slots=True)
class ServingAnalysis:
    """What a service gave; None where there is nothing to measure.

    Attributes:
        requests: Requests in all.
        finished: Of them, answered to the end.
        rejected: Refused because the queue was full, or because they can never fit.
        timed_out: Let go unserved.
        span_ns: From the first arrival to the last token.
        output_tokens_per_s: Tokens of answers per second of the span.
        requests_per_s: Finished requests per second of the span.
        ttft: Time to the first token, from arrival.
        tpot: Time per further token of a request (of requests with more than one).
        e2e: From arrival to the last token.
        queue_ratio: Share of the time to the last token spent waiting for a place, over all finished requests.
        goodput_per_s: Finished requests per second that kept both limits; None where no limit is set.
        prefix_hit_ratio: Tokens of prompts found in the prefix cache ÷ tokens of prompts.
        padding_ratio: Tokens computed for nothing ÷ tokens computed.
        mean_batch: Sequences in the batch, mean over the time iterations took.
        peak_kv_ratio: Blocks of keys and values held at most ÷ blocks there are; None where unknown.
        preemptions: Times a sequence had to leave.
        host_bound_ratio: Share of the iterations' time in which the device waited for the host.
    """

    requests: int
    finished: int
    rejected: int
    timed_out: int
    span_ns: int
    output_tokens_per_s: float
    requests_per_s: float
    ttft: Spread | None
    tpot: Spread | None
    e2e: Spread | None
    queue_ratio: float | None
    goodput_per_s: float | None
    prefix_hit_ratio: float
    padding_ratio: float
    mean_batch: float | None
    peak_kv_ratio: float | None
    preemptions: int
    host_bound_ratio: float | None


def ttft_ns(requests: ServedRequests) -> Float64Array:
    """Returns the time to the first token of finished requests, float64."""
    done = requests.finished
    return (requests.first_token_ns - requests.arrival_ns)[done].astype(np.float64)


def tpot_ns(requests: ServedRequests) -> Float64Array:
    """Returns the time per further token of finished requests with more than one token, float64."""
    chosen = requests.finished & (requests.output_tokens > 1)
    spent = (requests.last_token_ns - requests.first_token_ns)[chosen]
    return spent / (requests.output_tokens[chosen] - 1)


def e2e_ns(requests: ServedRequests) -> Float64Array:
    """Returns the time from arrival to the last token of finished requests, float64."""
    done = requests.finished
    return (requests.last_token_ns - requests.arrival_ns)[done].astype(np.float64)


def spread(values_ns: Float64Array) -> Spread | None:
    """Returns mean and percentiles, None of nothing."""
    if len(values_ns) == 0:
        return None
    p50, p90, p99 = (float(value) for value in np.percentile(values_ns, [50, 90, 99]))
    return Spread(float(values_ns.mean()), p50, p90, p99)


def serving_analysis(run: ServedRun, slo_ttft_ns: int = 0, slo_tpot_ns: int = 0) -> ServingAnalysis:
    """Returns what a run came to.

    Args:
        run: The run.
        slo_ttft_ns: Limit on the time to the first token, 0 for none.
        slo_tpot_ns: Limit on the time per further token, 0 for none.
    """
    requests, steps = run.requests, run.iterations
    done = requests.finished
    span_ns = int(requests.last_token_ns[done].max() - requests.arrival_ns.min()) if done.any() else 0
    seconds = span_ns / NS_PER_S
    total_ns = e2e_ns(requests)
    waited_ns = (requests.scheduled_ns - requests.arrival_ns)[done]
    length_ns = steps.end_ns - steps.start_ns
    computed = int(steps.prefill_tokens.sum() + steps.decode_sequences.sum() + steps.padded_tokens.sum())
    good = _kept(requests, slo_ttft_ns, slo_tpot_ns)
    prompts = int(requests.prompt_tokens[done].sum())
    return ServingAnalysis(
        requests=len(requests),
        finished=int(np.count_nonzero(done)),
        rejected=int(np.count_nonzero(np.isin(requests.status, (RequestStatus.REJECTED, RequestStatus.TOO_LONG)))),
        timed_out=int(np.count_nonzero(requests.status == RequestStatus.TIMED_OUT)),
        span_ns=span_ns,
        output_tokens_per_s=float(requests.output_tokens[done].sum()) / seconds if seconds else 0.0,
        requests_per_s=float(np.count_nonzero(done)) / seconds if seconds else 0.0,
        ttft=spread(ttft_ns(requests)),
        tpot=spread(tpot_ns(requests)),
        e2e=spread(total_ns),
        queue_ratio=float(waited_ns.sum() / total_ns.sum()) if total_ns.sum() > 0 else None,
        goodput_per_s=good / seconds if good is not None and seconds else None,
        prefix_hit_ratio=float(requests.cached_tokens[done].sum()) / prompts if prompts else 0.0,
        padding_ratio=float(steps.padded_tokens.sum()) / computed if computed else 0.0,
        mean_batch=float((steps.running * length_ns).sum() / length_ns.sum()) if length_ns.sum() else None,
        peak_kv_ratio=float(steps.kv_blocks.max(initial=0)) / run.kv_block_count if run.kv_block_count else None,
        preemptions=int(requests.preemptions.sum()),
        host_bound_ratio=float(np.maximum(length_ns - steps.device_ns, 0).sum() / length_ns.sum())
        if length_ns.sum()
        else None,
    )


def _kept(requests: ServedRequests, slo_ttft_ns: int, slo_tpot_ns: int) -> int | None:
    """Returns how many finished requests kept the limits, None where there is no limit."""
    if not slo_ttft_ns and not slo_tpot_ns:
        return None
    good = requests.finished.copy()
    if slo_ttft_ns:
        good &= requests.first_token_ns - requests.arrival_ns <= slo_ttft_ns
    if slo_tpot_ns:
        further = np.maximum(requests.output_tokens - 1, 1)
        good &= (requests.last_token_ns - requests.first_token_ns) / further <= slo_tpot_ns
    return int(np.count_nonzero(good))
