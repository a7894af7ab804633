"""What a late token waited for, in parts by cause; parts of one wait add up to it."""

from enum import StrEnum

import numpy as np

from engine.analyses.serving.tables import AdmissionLimit, Iterations, PhaseKind, ServedRun
from engine.core.arrays import BoolArray, Int64Array

_LONG_RATIO = 1.0
"""An iteration is one of prompts where it computes more tokens of them than of answers."""


class Cause(StrEnum):
    """What a request waited for."""

    PLACES = "the batch was full"
    TOKENS = "the tokens of an iteration were used up"
    BLOCKS = "no blocks of keys and values were free"
    PREEMPTED = "it was preempted"
    PROMPT = "prompts of other requests were computed"
    ITERATION = "an iteration was under way"
    COMPANY = "the engine waited for more requests"
    OWN_PROMPT = "its own prompt was computed"
    BATCH = "other sequences of the batch got their tokens"


_PLACE = {cause: place for place, cause in enumerate(Cause)}
_OF_LIMIT = {
    AdmissionLimit.NONE: Cause.ITERATION,
    AdmissionLimit.PLACES: Cause.PLACES,
    AdmissionLimit.TOKENS: Cause.TOKENS,
    AdmissionLimit.BLOCKS: Cause.BLOCKS,
}


def first_token_parts(run: ServedRun, chosen: Int64Array) -> Int64Array:
    """Returns the parts of the times to the first token of requests, ns.

    In the queue: the rest of the iteration under way at the arrival, then each iteration by the limit that kept the
    first of the queue out, then idle time. In the batch: preempted, then iterations by the share of the tokens that
    are its own.

    Args:
        run: With iterations.
        chosen: int64, shape (n,): finished requests.

    Returns:
        int64, shape (n, causes).
    """
    steps, requests = run.iterations, run.requests
    arrival_ns, placed_ns = requests.arrival_ns[chosen], requests.scheduled_ns[chosen]
    parts = np.zeros((len(chosen), len(Cause)), dtype=np.int64)
    under_way = np.searchsorted(steps.start_ns, arrival_ns, side="left") - 1
    known = np.maximum(under_way, 0)
    until_ns = np.where(under_way >= 0, np.clip(steps.end_ns[known], arrival_ns, placed_ns), arrival_ns)
    of_prompts = steps.prefill_tokens[known] > _LONG_RATIO * steps.decode_sequences[known]
    rest_ns = until_ns - arrival_ns
    parts[:, _PLACE[Cause.PROMPT]] = np.where(of_prompts, rest_ns, 0)
    parts[:, _PLACE[Cause.ITERATION]] = np.where(of_prompts, 0, rest_ns)
    length_ns = steps.end_ns - steps.start_ns
    first = np.searchsorted(steps.start_ns, until_ns, side="left")
    last = np.maximum(np.searchsorted(steps.start_ns, placed_ns, side="left"), first)
    told_ns = np.zeros(len(chosen), dtype=np.int64)
    for limit, cause in _OF_LIMIT.items():  # four limits
        reached = np.concatenate(([0], np.cumsum(np.where(steps.limit == limit, length_ns, 0))))
        part = reached[last] - reached[first]
        parts[:, _PLACE[cause]] += part
        told_ns += part
    parts[:, _PLACE[Cause.COMPANY]] = placed_ns - until_ns - told_ns
    _add_parts_in_batch(run, chosen, parts)
    return parts


def _add_parts_in_batch(run: ServedRun, chosen: Int64Array, parts: Int64Array) -> None:
    """Adds what passed between getting a place and the first token."""
    steps, requests, phases = run.iterations, run.requests, run.phases
    placed_ns, first_ns = requests.scheduled_ns[chosen], requests.first_token_ns[chosen]
    lost = np.flatnonzero(phases.kind == PhaseKind.PREEMPTED)
    lost = lost[phases.start_ns[lost] < requests.first_token_ns[phases.request[lost]]]
    preempted_ns = np.zeros(len(requests), dtype=np.int64)
    np.add.at(preempted_ns, phases.request[lost], phases.end_ns[lost] - phases.start_ns[lost])
    out_ns = preempted_ns[chosen]
    parts[:, _PLACE[Cause.PREEMPTED]] = out_ns
    inside_ns = first_ns - placed_ns - out_ns
    prompts, answers = _tokens_before(steps)
    begin = np.searchsorted(steps.start_ns, placed_ns, side="left")
    end = np.searchsorted(steps.start_ns, first_ns, side="left")
    own = requests.prompt_tokens[chosen] - requests.cached_tokens[chosen]
    others = np.maximum(prompts[end] - prompts[begin] - own, 0)
    beside = answers[end] - answers[begin]
    whole = np.maximum(own + others + beside, 1)
    parts[:, _PLACE[Cause.PROMPT]] += inside_ns * others // whole
    parts[:, _PLACE[Cause.BATCH]] += inside_ns * beside // whole
    parts[:, _PLACE[Cause.OWN_PROMPT]] += inside_ns - inside_ns * others // whole - inside_ns * beside // whole


def _tokens_before(steps: Iterations) -> tuple[Int64Array, Int64Array]:
    """Returns tokens of prompts, and all others computed, before each iteration and after the last, shape (n + 1,)."""
    prompts = np.concatenate(([0], np.cumsum(steps.prefill_tokens)))
    return prompts, np.concatenate(([0], np.cumsum(steps.decode_sequences + steps.padded_tokens)))


def gap_parts(run: ServedRun, start_ns: Int64Array, gap_ns: Int64Array, over_preemption: BoolArray) -> Int64Array:
    """Returns the parts of gaps between two tokens, ns: a preemption, or iterations by the tokens they computed.

    Args:
        run: With iterations.
        start_ns: int64, shape (n,): the token before.
        gap_ns: int64, shape (n,).
        over_preemption: bool, shape (n,): where the request was preempted.

    Returns:
        int64, shape (n, causes).
    """
    steps = run.iterations
    parts = np.zeros((len(start_ns), len(Cause)), dtype=np.int64)
    begin = np.searchsorted(steps.end_ns, start_ns, side="right")
    end = np.searchsorted(steps.start_ns, start_ns + gap_ns, side="left")
    prompts, answers = _tokens_before(steps)
    of_prompts, beside = prompts[end] - prompts[begin], answers[end] - answers[begin]
    share_ns = gap_ns * of_prompts // np.maximum(of_prompts + beside, 1)
    parts[:, _PLACE[Cause.PREEMPTED]] = np.where(over_preemption, gap_ns, 0)
    parts[:, _PLACE[Cause.PROMPT]] = np.where(over_preemption, 0, share_ns)
    parts[:, _PLACE[Cause.BATCH]] = np.where(over_preemption, 0, gap_ns - share_ns)
    return parts


def longest_prompt_between(run: ServedRun, request: int, start_ns: int, end_ns: int) -> tuple[int, int]:
    """Returns which other request had the longest prompt computed in a stretch of time, and its tokens; −1, 0 if none.

    Tokens found in the prefix cache do not count.
    """
    phases, requests = run.phases, run.requests
    stop = int(np.searchsorted(phases.start_ns, end_ns, side="left"))
    inside = np.flatnonzero(
        (phases.kind[:stop] == PhaseKind.PREFILL)
        & (phases.end_ns[:stop] > start_ns)
        & (phases.request[:stop] != request)
    )
    if len(inside) == 0:
        return -1, 0
    others = phases.request[inside]
    computed = requests.prompt_tokens[others] - requests.cached_tokens[others]
    place = int(computed.argmax())
    return int(others[place]), int(computed[place])
