"""What running sequences compute, hold and give out. Compiled."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202

import numba
import numpy as np

from engine.workloads.serving.engine_state import (
    DECODE,
    FINISHED,
    NOW,
    PREEMPTED,
    RANDOM,
    RUNNING,
    begin_phase,
    end_request,
)
from engine.workloads.serving.iteration_prices import across
from engine.workloads.serving.kv_blocks import give_back, keep_session, leave_chain, take
from engine.workloads.serving.queues import join_front


@numba.njit(cache=True)
def run_on(rules, prices, requests, queues, blocks, batch, counts, log, totals):
    """Gives running sequences their tokens of this iteration; returns blocks swapped out."""
    swapped, place = 0, 0
    while place < counts[RUNNING]:
        request = batch[place]
        left = requests.prompt[request] + requests.made[request] - requests.computed[request]
        decodes = left == 1 and requests.made[request] > 0
        wanted = min(1 + rules.guessed, requests.output[request] - requests.made[request]) if decodes else left
        wanted = min(wanted, np.int64(rules.max_tokens - totals[0]))
        if wanted <= 0:
            requests.fresh[request] = 0
            place += 1
            continue
        gone = False
        while not hold(rules, requests, blocks, request, wanted):
            last = batch[counts[RUNNING] - 1]
            swapped += requests.own_blocks[last]
            _preempt(rules, requests, queues, blocks, counts, log, last)
            counts[RUNNING] -= 1
            if last == request:
                gone = True
                break
        if gone:
            break
        count_tokens(rules, prices, requests, request, wanted, decodes, totals)
        place += 1
    return swapped if rules.swaps else 0


@numba.njit(cache=True)
def hold(rules, requests, blocks, request, wanted):
    """Takes the blocks a sequence needs for ``wanted`` more tokens; returns whether there were enough."""
    needed = -(-(requests.computed[request] + wanted) // rules.block_tokens)
    missing = needed - requests.own_blocks[request] - requests.shared_blocks[request]
    if missing <= 0:
        return True
    if not take(blocks, missing):
        return False
    requests.own_blocks[request] += missing
    return True


@numba.njit(cache=True)
def _preempt(rules, requests, queues, blocks, counts, log, request):
    """Takes a sequence's blocks and puts it first among those that wait."""
    if rules.caches and requests.prefix[request] >= 0:
        leave_chain(blocks, requests.prefix[request])
    requests.shared_blocks[request] = 0
    give_back(blocks, requests.own_blocks[request])
    requests.own_blocks[request] = 0
    if not rules.swaps:
        requests.computed[request] = 0
    requests.preemptions[request] += 1
    requests.fresh[request] = 0
    join_front(queues, request)
    begin_phase(counts, log, request, PREEMPTED, counts[NOW])


@numba.njit(cache=True)
def count_tokens(rules, prices, requests, request, wanted, decodes, totals):
    """Adds a sequence's part of the iteration."""
    requests.fresh[request] = wanted
    seen = requests.computed[request] + wanted
    totals[0] += wanted
    if decodes:
        totals[2] += 1
        totals[3] += seen
        return
    totals[5] += wanted
    padded = wanted
    if rules.bucket_tokens > 0:
        padded = -(-wanted // rules.bucket_tokens) * rules.bucket_tokens
        totals[4] += padded - wanted
    totals[1] += across(prices.queries, prices.keys, prices.chunk_ns, float(padded), float(seen + padded - wanted))


@numba.njit(cache=True)
def give_out(rules, requests, queues, blocks, batch, counts, log):
    """Notes what was computed, gives out tokens, and lets finished sequences leave."""
    kept = 0
    for place in range(counts[RUNNING]):
        request = batch[place]
        fresh = requests.fresh[request]
        before = requests.computed[request]
        if fresh > 0 and before + fresh >= requests.prompt[request] + requests.made[request]:
            decodes = requests.made[request] > 0 and before + 1 == requests.prompt[request] + requests.made[request]
            made = 1 + (_accepted(rules, counts, fresh - 1) if decodes else 0)
            made = min(made, requests.output[request] - requests.made[request])
            requests.computed[request] = requests.prompt[request] + requests.made[request] + made - 1
            if requests.made[request] == 0:
                requests.first_token_ns[request] = counts[NOW]
            if not decodes:
                begin_phase(counts, log, request, DECODE, counts[NOW])
            requests.made[request] += made
            requests.last_token_ns[request] = counts[NOW]
        elif fresh > 0:
            requests.computed[request] += fresh
        if requests.made[request] >= requests.output[request]:
            begin_phase(counts, log, request, -1, counts[NOW])
            _leave(rules, requests, blocks, request)
            end_request(requests, queues, counts, request, FINISHED, counts[NOW])
        else:
            batch[kept] = request
            kept += 1
    counts[RUNNING] = kept


@numba.njit(cache=True)
def _leave(rules, requests, blocks, request):
    """Gives a finished sequence's blocks back; the full ones of a session are kept for its next turn."""
    own = requests.own_blocks[request]
    if rules.caches and requests.continued[request] == 1:
        full = requests.computed[request] // rules.block_tokens - requests.shared_blocks[request]
        keep_session(blocks, rules.prefix_count + requests.session[request], own, max(min(full, own), 0))
    else:
        give_back(blocks, own)
    if rules.caches and requests.prefix[request] >= 0:
        leave_chain(blocks, requests.prefix[request])
    requests.own_blocks[request] = 0
    requests.shared_blocks[request] = 0


@numba.njit(cache=True)
def _accepted(rules, counts, guessed):
    """Returns how many guessed tokens are right: each only counts where those before it were."""
    right = 0
    while right < guessed and _random(counts) < rules.acceptance_ratio:
        right += 1
    return right


@numba.njit(cache=True)
def _random(counts):
    """Returns the next number in [0, 1) of a 64-bit linear congruential generator (Knuth's MMIX constants)."""
    state = np.uint64(counts[RANDOM]) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    counts[RANDOM] = np.int64(state)
    return float(state >> np.uint64(11)) / float(1 << 53)
