"""The iteration loop of a serving engine, compiled: who is in the batch, what it computes, who has to leave.

Rules, those of vLLM's scheduler: running sequences come first, in the order they were admitted, each with one token
(and those guessed) or the next part of its prompt; a sequence whose keys and values find no block makes the one
admitted last leave; then requests are admitted in order of arrival while tokens, places and blocks last.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202

import numba
import numpy as np

from engine.workloads.serving.admission import admit, can_admit, take_arrivals, wait_for_requests
from engine.workloads.serving.engine_state import (
    BATCH,
    BLOCKS,
    CACHED_BLOCKS,
    DECODING,
    DEVICE,
    END,
    ENDED,
    HOST,
    ITERATIONS,
    KV_BLOCKS,
    LIMIT,
    NOW,
    PADDED,
    PHASES,
    PREFILL_TOKENS,
    QUEUE,
    RUNNING,
    START,
    STUCK,
)
from engine.workloads.serving.iteration_prices import across, along
from engine.workloads.serving.kv_blocks import CACHED, HELD, SHARED
from engine.workloads.serving.queues import WAITING
from engine.workloads.serving.sequences import give_out, run_on

_PATIENCE = 100
"""Turns without a token after which something is wrong in here: better an error than a loop without end."""


@numba.njit(cache=True)
def advance(rules, prices, requests, queues, blocks, batch, counts, log, iteration_count):
    """Runs up to ``iteration_count`` iterations; returns whether requests are left.

    Args:
        rules: See ``Rules``.
        prices: IterationPrices.
        requests: See ``Requests``; written.
        queues: Written.
        blocks: Written.
        batch: int32, shape (max_batch,): sequences in the order they were admitted; written.
        counts: int64, the counters above; written.
        log: Written from its beginning.
        iteration_count: At most the rows of the log.
    """
    counts[ITERATIONS], counts[PHASES] = 0, 0
    room = len(log.phases) - 4 * len(batch)  # what one iteration may still add
    while counts[ENDED] < len(requests.prompt):
        if counts[ITERATIONS] >= iteration_count or counts[PHASES] >= room:
            return True
        take_arrivals(rules, requests, queues, counts, log, room)
        if counts[RUNNING] == 0 and not wait_for_requests(rules, requests, queues, counts):
            continue
        _iterate(rules, prices, requests, queues, blocks, batch, counts, log)
    return False


@numba.njit(cache=True)
def _iterate(rules, prices, requests, queues, blocks, batch, counts, log):
    """Schedules one iteration, prices it, and gives out its tokens."""
    # Tokens, chunk ns, decoding, their keys, padding, prompt tokens, limit of admission.
    totals = np.zeros(7, dtype=np.float64)
    swapped = 0
    prompts_first = rules.chunked == 0 and can_admit(rules, requests, queues, blocks, counts)
    if prompts_first:
        for place in range(counts[RUNNING]):
            requests.fresh[batch[place]] = 0
    else:
        swapped = run_on(rules, prices, requests, queues, blocks, batch, counts, log, totals)
    before, decoding = counts[RUNNING], totals[2]
    if swapped == 0:
        swapped += admit(rules, prices, requests, queues, blocks, batch, counts, log, totals)
    else:
        totals[6] = BLOCKS
    if totals[0] == 0 and prompts_first:
        # What was cached for the prompt made place for it in thought only: answers go on.
        swapped = run_on(rules, prices, requests, queues, blocks, batch, counts, log, totals)
        before, decoding = counts[RUNNING], totals[2]
    if totals[0] == 0:
        # All that waits was preempted by what has left since: the next turn admits it.
        counts[STUCK] += 1
        if counts[STUCK] > _PATIENCE:
            raise RuntimeError("the serving engine makes no progress")
        return
    counts[STUCK] = 0
    heads = decoding + counts[RUNNING] - before
    device = along(prices.tokens, prices.linear_ns, totals[0] + totals[4]) + totals[1]
    if totals[2] > 0:
        device += across(prices.sequences, prices.contexts, prices.decode_ns, totals[2], totals[3] / totals[2])
    device += along(prices.sequences, prices.head_ns, max(heads, 1.0)) + swapped * prices.swap_ns_per_block
    only_decodes = totals[5] == 0 and prices.graph_mode == 1
    dispatch = prices.graph_host_ns if only_decodes else prices.eager_host_ns
    engine = prices.engine_ns + prices.engine_sequence_ns * counts[RUNNING]
    start = counts[NOW]
    counts[NOW] = start + np.int64(np.rint(engine + max(dispatch, device)))
    row = log.iterations[counts[ITERATIONS]]
    counts[ITERATIONS] += 1
    row[START], row[END] = start, counts[NOW]
    row[HOST], row[DEVICE] = np.int64(np.rint(engine + dispatch)), np.int64(np.rint(device))
    row[PREFILL_TOKENS], row[DECODING], row[PADDED] = np.int64(totals[5]), np.int64(totals[2]), np.int64(totals[4])
    row[BATCH], row[QUEUE] = counts[RUNNING], queues.counts[WAITING]
    row[KV_BLOCKS], row[CACHED_BLOCKS] = blocks.counts[HELD] + blocks.counts[SHARED], blocks.counts[CACHED]
    row[LIMIT] = np.int64(totals[6]) if queues.counts[WAITING] > 0 else 0
    give_out(rules, requests, queues, blocks, batch, counts, log)
