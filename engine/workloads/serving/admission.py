"""Who comes, who waits and who is admitted. Compiled."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202

import numba
import numpy as np

from engine.workloads.serving.engine_state import (
    BLOCK_COUNT,
    BLOCKS,
    DECODE,
    NOW,
    PHASES,
    PLACES,
    PREFILL,
    QUEUED,
    REJECTED,
    RUNNING,
    TIMED_OUT,
    TOKENS,
    TOO_LONG,
    begin_phase,
    end_request,
)
from engine.workloads.serving.kv_blocks import (
    CACHED,
    FREE,
    give_back,
    keep_session,
    leave_chain,
    take_session,
    use_chain,
)
from engine.workloads.serving.queues import FIRST, HEAP_SIZE, WAITING, join_end, leave_front, next_arrival
from engine.workloads.serving.sequences import count_tokens, hold


@numba.njit(cache=True)
def take_arrivals(rules, requests, queues, counts, log, room):
    """Puts requests that have come by now into the queue, or ends those it cannot take."""
    while queues.counts[HEAP_SIZE] > 0 and queues.heap_ns[0] <= counts[NOW] and counts[PHASES] < room:
        request = next_arrival(queues)
        blocks_needed = -(-(requests.prompt[request] + requests.output[request]) // rules.block_tokens)
        if rules.max_queue > 0 and queues.counts[WAITING] >= rules.max_queue:
            end_request(requests, queues, counts, request, REJECTED, requests.arrival_ns[request])
        elif blocks_needed > counts[BLOCK_COUNT]:
            end_request(requests, queues, counts, request, TOO_LONG, requests.arrival_ns[request])
        else:
            join_end(queues, request)
            begin_phase(counts, log, request, QUEUED, requests.arrival_ns[request])


@numba.njit(cache=True)
def wait_for_requests(rules, requests, queues, counts):
    """Moves the clock of an idle engine to when it may begin; returns whether that is now."""
    coming = queues.counts[HEAP_SIZE] > 0
    if queues.counts[WAITING] == 0:
        if coming:
            counts[NOW] = max(counts[NOW], queues.heap_ns[0])
        return False
    until = requests.arrival_ns[queues.ring[queues.counts[FIRST]]] + rules.max_wait_ns
    if queues.counts[WAITING] >= rules.max_batch or counts[NOW] >= until or not coming:
        return True
    counts[NOW] = min(until, max(queues.heap_ns[0], counts[NOW]))
    return False


@numba.njit(cache=True)
def can_admit(rules, requests, queues, blocks, counts):
    """Returns whether the first request that waits would find place and blocks: then prompts go before answers."""
    if queues.counts[WAITING] == 0 or counts[RUNNING] >= rules.max_batch:
        return False
    request = queues.ring[queues.counts[FIRST]]
    left = requests.prompt[request] + requests.made[request]
    return -(-left // rules.block_tokens) <= blocks.counts[FREE] + blocks.counts[CACHED]


@numba.njit(cache=True)
def admit(rules, prices, requests, queues, blocks, batch, counts, log, totals):
    """Admits requests while tokens, places and blocks last, notes which gave out; returns blocks swapped back in."""
    swapped = np.int64(0)
    room = len(log.phases) - 3 * len(batch)
    while queues.counts[WAITING] > 0 and counts[RUNNING] < rules.max_batch and totals[0] < rules.max_tokens:
        if counts[PHASES] >= room:
            break
        request = queues.ring[queues.counts[FIRST]]
        new = requests.scheduled_ns[request] < 0
        if new and rules.timeout_ns > 0 and counts[NOW] - requests.arrival_ns[request] > rules.timeout_ns:
            leave_front(queues)
            begin_phase(counts, log, request, -1, counts[NOW])
            end_request(requests, queues, counts, request, TIMED_OUT, counts[NOW])
            continue
        found = _find_cached(rules, requests, blocks, request) if rules.caches else 0
        # A swapped sequence brings its keys and values back, up to the token it was at.
        back = requests.computed[request] if rules.swaps else 0
        requests.computed[request] = max(found, back)
        left = requests.prompt[request] + requests.made[request] - requests.computed[request]
        wanted = min(left, np.int64(rules.max_tokens - totals[0]))
        whole = rules.chunked == 1 or wanted == left or (totals[0] == 0 and left > rules.max_tokens)
        if not whole or not hold(rules, requests, blocks, request, wanted):
            totals[6] = BLOCKS if whole else TOKENS
            _let_go(rules, requests, blocks, request, back)
            return swapped
        leave_front(queues)
        if back > 0:
            swapped += requests.own_blocks[request]
        batch[counts[RUNNING]] = request
        counts[RUNNING] += 1
        if new:
            requests.scheduled_ns[request] = counts[NOW]
            requests.cached[request] = found
        # Who comes back with all keys and values but the last token's goes on where it was.
        decodes = left == 1 and requests.made[request] > 0
        begin_phase(counts, log, request, DECODE if decodes else PREFILL, counts[NOW])
        count_tokens(rules, prices, requests, request, wanted, decodes, totals)
    totals[6] = PLACES if counts[RUNNING] >= rules.max_batch else TOKENS
    return swapped


@numba.njit(cache=True)
def _find_cached(rules, requests, blocks, request):
    """Takes what the cache has of a prompt and returns its tokens; the last token of a prompt is always computed."""
    size = rules.block_tokens
    most = (requests.prompt[request] + requests.made[request] - 1) // size
    found = 0
    if requests.prefix[request] >= 0:
        wanted = min(requests.shared_tokens[request] // size, most)
        found = use_chain(blocks, requests.prefix[request], wanted)
        there = min(wanted, blocks.resident[requests.prefix[request]])
        requests.shared_blocks[request] = there
        if found < wanted:
            return found * size
    if requests.session[request] >= 0:
        chain = rules.prefix_count + requests.session[request]
        own = take_session(blocks, chain, most - found)
        requests.own_blocks[request] += own
        found += own
    return found * size


@numba.njit(cache=True)
def _let_go(rules, requests, blocks, request, back):
    """Undoes ``_find_cached`` for a request that cannot be admitted yet."""
    if rules.caches and requests.prefix[request] >= 0:
        leave_chain(blocks, requests.prefix[request])
        requests.shared_blocks[request] = 0
    own = requests.own_blocks[request]
    if rules.caches and requests.session[request] >= 0 and own > 0:
        keep_session(blocks, rules.prefix_count + requests.session[request], own, own)
    else:
        give_back(blocks, own)
    requests.own_blocks[request] = 0
    requests.computed[request] = back
