"""Blocks of keys and values: a pool, and chains of blocks kept for prompts that begin alike. Compiled.

A prompt is a chain of blocks; two prompts share those that hold the same tokens from the beginning on. Here a chain is
a shared text or a session, so that its blocks need no hashes: block i of a chain is the same for everybody who uses it.
Chains nobody uses are evicted block by block from their end, the least recently used chain first.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202

from typing import NamedTuple

import numba
import numpy as np

from engine.core.arrays import Int64Array

FREE, HELD, CACHED, SHARED, CAPACITY = range(5)
"""Counters of the pool: blocks free, of running sequences alone, of chains nobody uses, of chains somebody uses; and
how many blocks of unused chains are kept at most (−1 for no limit)."""


class Blocks(NamedTuple):
    """State of the pool. int64 arrays.

    Attributes:
        counts: Shape (5,), see the counters above.
        resident: Shape (chains,): blocks of each chain that are there.
        users: Shape (chains,): running sequences that use it.
        older: Shape (chains + 1,): list of unused chains by last use; the last entry is its ends.
        newer: Likewise, the other way.
    """

    counts: Int64Array
    resident: Int64Array
    users: Int64Array
    older: Int64Array
    newer: Int64Array


def new_blocks(block_count: int, chain_count: int, capacity: int) -> Blocks:
    """Returns a pool of free blocks and empty chains; ``capacity`` −1 keeps whatever fits."""
    ends = np.full(chain_count + 1, -1, dtype=np.int64)
    ends[-1] = chain_count
    return Blocks(
        counts=np.array([block_count, 0, 0, 0, capacity], dtype=np.int64),
        resident=np.zeros(chain_count, dtype=np.int64),
        users=np.zeros(chain_count, dtype=np.int64),
        older=ends.copy(),
        newer=ends.copy(),
    )


@numba.njit(cache=True)
def take(blocks, count):
    """Moves ``count`` blocks from free to held, evicting unused chains; returns whether there were enough."""
    if blocks.counts[FREE] + blocks.counts[CACHED] < count:
        return False
    evict(blocks, count - blocks.counts[FREE])
    blocks.counts[FREE] -= count
    blocks.counts[HELD] += count
    return True


@numba.njit(cache=True)
def evict(blocks, count):
    """Frees up to ``count`` blocks of unused chains, the least recently used first, from their ends."""
    end = len(blocks.resident)
    while count > 0 and blocks.newer[end] != end:
        chain = blocks.newer[end]
        gone = min(count, blocks.resident[chain])
        blocks.resident[chain] -= gone
        blocks.counts[CACHED] -= gone
        blocks.counts[FREE] += gone
        count -= gone
        if blocks.resident[chain] == 0:
            _unlink(blocks, chain)


@numba.njit(cache=True)
def evict_tail(blocks, chain, kept):
    """Frees the blocks of an unused chain beyond the first ``kept``."""
    gone = max(blocks.resident[chain] - kept, 0)
    blocks.resident[chain] -= gone
    blocks.counts[CACHED] -= gone
    blocks.counts[FREE] += gone
    if gone > 0 and blocks.resident[chain] == 0:
        _unlink(blocks, chain)


@numba.njit(cache=True)
def use_chain(blocks, chain, wanted):
    """Counts a user of a shared text and returns how many of the ``wanted`` blocks were there.

    Missing ones are taken for the chain where they fit; the others are the user's own. What a first user does not need
    is freed: a chain in use cannot be evicted, and a sequence alone must never lack blocks its own text pins.
    """
    if blocks.users[chain] == 0 and blocks.resident[chain] > 0:
        evict_tail(blocks, chain, wanted)
    if blocks.users[chain] == 0 and blocks.resident[chain] > 0:
        _unlink(blocks, chain)
        blocks.counts[CACHED] -= blocks.resident[chain]
        blocks.counts[SHARED] += blocks.resident[chain]
    blocks.users[chain] += 1
    found = min(wanted, blocks.resident[chain])
    missing = wanted - found
    if missing > 0 and take(blocks, missing):
        blocks.counts[HELD] -= missing
        blocks.counts[SHARED] += missing
        blocks.resident[chain] += missing
    return found


@numba.njit(cache=True)
def leave_chain(blocks, chain):
    """Takes a user away; a chain nobody uses can be evicted from then on."""
    blocks.users[chain] -= 1
    if blocks.users[chain] == 0 and blocks.resident[chain] > 0:
        blocks.counts[SHARED] -= blocks.resident[chain]
        blocks.counts[CACHED] += blocks.resident[chain]
        _link_newest(blocks, chain)
        _trim(blocks)


@numba.njit(cache=True)
def take_session(blocks, chain, wanted):
    """Gives a session's kept blocks to the sequence that goes on with it; returns how many of ``wanted`` it got."""
    kept = blocks.resident[chain]
    if kept == 0:
        return 0
    _unlink(blocks, chain)
    blocks.resident[chain] = 0
    blocks.counts[CACHED] -= kept
    found = min(kept, wanted)
    blocks.counts[HELD] += found
    blocks.counts[FREE] += kept - found
    return found


@numba.njit(cache=True)
def keep_session(blocks, chain, held, kept):
    """Gives back ``held`` blocks of a sequence, ``kept`` of them to its session's chain in place of what it had."""
    take_session(blocks, chain, 0)
    blocks.counts[HELD] -= held
    blocks.counts[FREE] += held - kept
    if kept > 0:
        blocks.resident[chain] = kept
        blocks.counts[CACHED] += kept
        _link_newest(blocks, chain)
        _trim(blocks)


@numba.njit(cache=True)
def give_back(blocks, held):
    """Frees ``held`` blocks of a sequence."""
    blocks.counts[HELD] -= held
    blocks.counts[FREE] += held


@numba.njit(cache=True)
def _trim(blocks):
    limit = blocks.counts[CAPACITY]
    if limit >= 0:
        evict(blocks, blocks.counts[CACHED] - limit)


@numba.njit(cache=True)
def _unlink(blocks, chain):
    before, after = blocks.older[chain], blocks.newer[chain]
    blocks.newer[before] = after
    blocks.older[after] = before


@numba.njit(cache=True)
def _link_newest(blocks, chain):
    end = len(blocks.resident)
    last = blocks.older[end]
    blocks.newer[last] = chain
    blocks.older[chain] = last
    blocks.newer[chain] = end
    blocks.older[end] = chain
