"""Memory from the driver: new segments, and pages mapped into reserved address ranges."""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202

from engine.runtime.allocators.block_store import (
    DIVERGED,
    FREE,
    NEXT_ADDRESS,
    NONE,
    RECORDED_CALLS,
    RESERVED_BYTES,
    UNMAPPED,
    absorb,
    enter_free,
    enter_unmapped,
    leave_free,
    leave_unmapped,
    link_after,
    log_call,
    new_part,
    new_row,
    ordered_set_base,
)
from engine.runtime.allocators.caching_rules import LARGE_SEGMENT_BYTES, page_size, round_up, segment_size
from engine.runtime.allocators.compiled import compiled
from engine.runtime.allocators.interface import DriverAction
from engine.runtime.allocators.ordered_set import first_not_below, following
from engine.runtime.allocators.stranded import stranded_bytes

_SEGMENT_ALLOCATE = int(DriverAction.SEGMENT_ALLOCATE)
_MAP = int(DriverAction.MAP)


@compiled
def new_segment(blocks, rules, recorded, arena, size):
    """Returns a free row over a new segment for a (rounded) size, in no set, or −1 where the limit forbids it."""
    wanted = segment_size(size)
    if blocks.totals[RESERVED_BYTES] + wanted > rules.limit:
        return NONE
    stranded = stranded_bytes(blocks, size)
    address = _driver_address(blocks, recorded, wanted)
    row = new_row(blocks, address, wanted, arena, 0, FREE)
    blocks.totals[RESERVED_BYTES] += wanted
    log_call(blocks, _SEGMENT_ALLOCATE, address, wanted, stranded)
    return row


@compiled
def _driver_address(blocks, recorded, size):
    """Returns the next address of the recording while it asks for what was recorded, an own one afterwards."""
    call = blocks.totals[RECORDED_CALLS]
    blocks.totals[RECORDED_CALLS] += 1
    if blocks.totals[DIVERGED] == 0 and call < len(recorded):
        if recorded[call, 1] == size:
            return recorded[call, 0]
        blocks.totals[DIVERGED] = 1
    return _own_address(blocks, size)


@compiled
def _own_address(blocks, size):
    address = blocks.totals[NEXT_ADDRESS]
    blocks.totals[NEXT_ADDRESS] = round_up(address + size, LARGE_SEGMENT_BYTES)
    return address


@compiled
def mapped_block(blocks, rules, recorded, arena, size):
    """Returns a mapped free row of at least ``size``, in no set, or −1 where the limit forbids mapping enough pages.

    Pages mapped before the limit was hit stay mapped.
    """
    row = _room_to_map(blocks, rules, recorded, arena, size)
    if blocks.state[row] == UNMAPPED and not _map(blocks, rules, recorded, row, min(blocks.size[row], size), size):
        return NONE
    while blocks.size[row] < size:
        after = blocks.following[row]
        missing = min(size - blocks.size[row], blocks.size[after])
        if not _map(blocks, rules, recorded, after, missing, size):
            return NONE
        row = after
    leave_free(blocks, row)
    return row


@compiled
def _room_to_map(blocks, rules, recorded, arena, size):
    """Returns the first row of the lowest chain of free and unmapped rows that is long enough; reserves at need."""
    base = ordered_set_base(blocks)
    root = 2 * arena + 1
    candidate = first_not_below(blocks.links, base, blocks.key, blocks.address, root, 0, 0)
    while candidate != NONE:
        start = candidate
        before = blocks.previous[candidate]
        if before != NONE and blocks.state[before] == FREE:
            start = before
        room = 0
        row = start
        while room < size and row != NONE and (blocks.state[row] == FREE or blocks.state[row] == UNMAPPED):
            room += blocks.size[row]
            row = blocks.following[row]
        if room >= size:
            return start
        candidate = following(blocks.links, base, blocks.key, blocks.address, root, candidate)
    return _reserve(blocks, rules, recorded, arena)


@compiled
def _reserve(blocks, rules, recorded, arena):
    """Returns a new unmapped row over a fresh address range. Its first page is the next recorded one, if any."""
    page = page_size(rules, arena)
    size = round_up(rules.reservation, page)
    call = blocks.totals[RECORDED_CALLS]
    answered = blocks.totals[DIVERGED] == 0 and call < len(recorded)
    address = recorded[call, 0] if answered else _own_address(blocks, size)
    row = new_row(blocks, address, size, arena, page, UNMAPPED)
    enter_unmapped(blocks, row)
    return row


@compiled
def _map(blocks, rules, recorded, row, size, request_size):
    """Maps whole pages over the first ``size`` bytes of an unmapped row and merges it with free neighbours."""
    mapped = round_up(size, blocks.page[row])
    if blocks.totals[RESERVED_BYTES] + mapped > rules.limit:
        return False
    address = blocks.address[row]
    stranded = stranded_bytes(blocks, request_size)
    call = blocks.totals[RECORDED_CALLS]
    blocks.totals[RECORDED_CALLS] += 1
    if call < len(recorded) and (recorded[call, 0] != address or recorded[call, 1] != mapped):
        blocks.totals[DIVERGED] = 1
    leave_unmapped(blocks, row)
    if mapped < blocks.size[row]:
        rest = new_part(blocks, row, address + mapped, blocks.size[row] - mapped, UNMAPPED)
        blocks.size[row] = mapped
        link_after(blocks, row, rest)
        enter_unmapped(blocks, rest)
    absorb(blocks, row, blocks.previous[row], FREE)
    absorb(blocks, row, blocks.following[row], FREE)
    enter_free(blocks, row)
    blocks.totals[RESERVED_BYTES] += mapped
    log_call(blocks, _MAP, address, mapped, stranded)
    return True
