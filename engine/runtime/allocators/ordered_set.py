"""Ordered sets of blocks for compiled code: treaps over index arrays, one root per set, keys (key, address).

Members of all sets share one array of links: slots ``2·set`` and ``2·set + 1`` are roots of two sets of the same owner
(``root_slot``), then two links per block. Priorities are a hash of the block's id, so trees are the same in every run.
Expected cost O(log n) per operation; nothing is allocated.
"""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202

import numpy as np

from engine.runtime.allocators.compiled import compiled

NONE = -1


@compiled
def _priority(block):
    """Returns a well-mixed number for a block id (the finaliser of a 32-bit multiplicative hash)."""
    mixed = (block + 1) * 0x9E3779B1 & 0xFFFFFFFF
    return (mixed ^ (mixed >> 15)) * 0x85EBCA77 & 0xFFFFFFFF


@compiled
def insert(child, base, key, address, root, block):
    """Adds ``block`` to the set at slot ``root``; ``base`` is the slot of block 0's links."""
    slot = root
    block_key, block_address, priority = key[block], address[block], _priority(block)
    current = child[slot]
    while current != NONE and _priority(current) >= priority:
        before = key[current] < block_key or (key[current] == block_key and address[current] < block_address)
        slot = base + 2 * current + (1 if before else 0)
        current = child[slot]
    child[slot] = block
    low, high = base + 2 * block, base + 2 * block + 1
    while current != NONE:
        if key[current] < block_key or (key[current] == block_key and address[current] < block_address):
            child[low] = current
            low = base + 2 * current + 1
            current = child[low]
        else:
            child[high] = current
            high = base + 2 * current
            current = child[high]
    child[low] = NONE
    child[high] = NONE


@compiled
def remove(child, base, key, address, root, block):
    """Takes ``block``, a member, out of the set at slot ``root``."""
    slot = root
    block_key, block_address = key[block], address[block]
    current = child[slot]
    while current != block:
        before = key[current] < block_key or (key[current] == block_key and address[current] < block_address)
        slot = base + 2 * current + (1 if before else 0)
        current = child[slot]
    low, high = child[base + 2 * block], child[base + 2 * block + 1]
    while low != NONE and high != NONE:
        if _priority(low) > _priority(high):
            child[slot] = low
            slot = base + 2 * low + 1
            low = child[slot]
        else:
            child[slot] = high
            slot = base + 2 * high
            high = child[slot]
    child[slot] = low if low != NONE else high


@compiled
def first_not_below(child, base, key, address, root, wanted_key, wanted_address):
    """Returns the first member with (key, address) ≥ the wanted one, or −1."""
    found = NONE
    current = child[root]
    while current != NONE:
        if key[current] < wanted_key or (key[current] == wanted_key and address[current] < wanted_address):
            current = child[base + 2 * current + 1]
        else:
            found = current
            current = child[base + 2 * current]
    return found


@compiled
def following(child, base, key, address, root, block):
    """Returns the member after ``block`` (which need not be a member any more), or −1."""
    return first_not_below(child, base, key, address, root, key[block], address[block] + 1)


@compiled
def preceding(child, base, key, address, root, block):
    """Returns the last member before ``block``, or −1."""
    found = NONE
    current = child[root]
    while current != NONE:
        if key[current] < key[block] or (key[current] == key[block] and address[current] < address[block]):
            found = current
            current = child[base + 2 * current + 1]
        else:
            current = child[base + 2 * current]
    return found


@compiled
def last(child, base, root):
    """Returns the greatest member, or −1."""
    found = NONE
    current = child[root]
    while current != NONE:
        found = current
        current = child[base + 2 * current + 1]
    return found


def new_links(set_count: int, capacity: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Returns empty links for ``set_count`` sets over ``capacity`` blocks; the base is ``set_count``."""
    return np.full(set_count + 2 * capacity, NONE, dtype=np.int64)
