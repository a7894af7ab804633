"""Blocks of the caching allocator as flat arrays: what compiled code works on.

A block is a row. Rows of one segment (or one reserved address range) are a doubly linked list in address order that
tiles it. An *arena* is what blocks are searched in: one per stream, lifetime class and pool; even numbers are small
pools, odd ones large pools. Every arena owns two ordered sets: free blocks by (size, address) and unmapped address
ranges by address.
"""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201

from typing import NamedTuple

import numpy as np

from engine.core.arrays import Int64Array
from engine.runtime.allocators import ordered_set
from engine.runtime.allocators.compiled import compiled

NONE = -1

UNUSED, FREE, ALLOCATED, AWAITING, UNMAPPED = 0, 1, 2, 3, 4
"""States of a row. AWAITING: let go of, still used by another stream."""

ALLOCATED_BYTES, ACTIVE_BYTES, RESERVED_BYTES, REQUESTED_BYTES = 0, 1, 2, 3
ROWS_USED, ROWS_SPARE, SPARE_HEAD = 4, 5, 6
DRIVER_ROWS, RECORDED_CALLS, DIVERGED, NEXT_ADDRESS = 7, 8, 9, 10
SMALL_SEARCHES, LARGE_SEARCHES, REQUEST, SYNCHRONIZATIONS = 11, 12, 13, 14
TOTAL_COUNT = 15

DRIVER_COLUMNS = 5
_COLUMN_COUNT = 12


class Blocks(NamedTuple):
    """The state of an allocator. int64 arrays; all but the last four have one element per row.

    Attributes:
        address: First byte.
        size: Bytes.
        requested: As asked for by whoever uses or used it.
        previous: Row before it in its segment, or −1.
        following: Row after it, or −1; links spare rows.
        state: UNUSED, FREE, ALLOCATED, AWAITING or UNMAPPED.
        arena: Where it is searched.
        page: Page size of its expandable segment, 0 in ordinary segments.
        origin: First byte of that segment's address range: pages are counted from there.
        key: What the ordered sets sort by: the size of a free block, 0 for an unmapped range.
        age_base: Searches of its pool when it became free.
        owner: Caller's id of the block it is or was.
        links: Of the ordered sets; two roots per arena, then two links per row.
        totals: Sums and counters, by the constants above.
        driver: Driver calls, shape (calls, 5), columns as in ``DriverLog``.
        scratch: Room for one list of rows.
    """

    address: Int64Array
    size: Int64Array
    requested: Int64Array
    previous: Int64Array
    following: Int64Array
    state: Int64Array
    arena: Int64Array
    page: Int64Array
    origin: Int64Array
    key: Int64Array
    age_base: Int64Array
    owner: Int64Array
    links: Int64Array
    totals: Int64Array
    driver: Int64Array
    scratch: Int64Array


def new_blocks(arena_count: int, capacity: int) -> Blocks:
    """Returns an empty store for ``capacity`` rows and ``arena_count`` arenas."""
    columns = np.zeros((_COLUMN_COUNT, capacity), dtype=np.int64)
    links = ordered_set.new_links(2 * arena_count, capacity)
    totals = np.zeros(TOTAL_COUNT, dtype=np.int64)
    totals[SPARE_HEAD] = NONE
    driver = np.zeros((capacity, DRIVER_COLUMNS), dtype=np.int64)
    return Blocks._make((*columns, links, totals, driver, np.zeros(capacity, dtype=np.int64)))


def grown(blocks: Blocks) -> Blocks:
    """Returns the same state with room for twice as many rows and driver calls."""
    capacity = len(blocks.address)
    columns = [np.concatenate((column, np.zeros(capacity, dtype=np.int64))) for column in blocks[:_COLUMN_COUNT]]
    links = np.concatenate((blocks.links, np.full(2 * capacity, NONE, dtype=np.int64)))
    driver = np.concatenate((blocks.driver, np.zeros_like(blocks.driver)))
    return Blocks._make((*columns, links, blocks.totals, driver, np.zeros(2 * capacity, dtype=np.int64)))


@compiled
def has_room(blocks):
    """Tells whether any one request can be served without growing: releasing cuts a row into three at most."""
    rows = blocks.totals[ROWS_USED] - blocks.totals[ROWS_SPARE]
    return 3 * rows + 32 <= len(blocks.address) and blocks.totals[DRIVER_ROWS] + rows + 32 <= len(blocks.driver)


@compiled
def new_row(blocks, address, size, arena, page, state):
    """Returns a row that is a whole segment; ``has_room`` was asked before."""
    row = blocks.totals[SPARE_HEAD]
    if row != NONE:
        blocks.totals[SPARE_HEAD] = blocks.following[row]
        blocks.totals[ROWS_SPARE] -= 1
    else:
        row = blocks.totals[ROWS_USED]
        blocks.totals[ROWS_USED] += 1
    blocks.address[row] = address
    blocks.size[row] = size
    blocks.requested[row] = 0
    blocks.previous[row] = NONE
    blocks.following[row] = NONE
    blocks.state[row] = state
    blocks.arena[row] = arena
    blocks.page[row] = page
    blocks.origin[row] = address
    return row


@compiled
def new_part(blocks, row, address, size, state):
    """Returns a row without neighbours for a part of ``row``'s segment."""
    part = new_row(blocks, address, size, blocks.arena[row], blocks.page[row], state)
    blocks.origin[part] = blocks.origin[row]
    return part


@compiled
def retire_row(blocks, row):
    """Gives a row, in no set and no segment any more, back for later use."""
    blocks.state[row] = UNUSED
    blocks.following[row] = blocks.totals[SPARE_HEAD]
    blocks.totals[SPARE_HEAD] = row
    blocks.totals[ROWS_SPARE] += 1


@compiled
def link_after(blocks, row, added):
    """Puts ``added`` right after ``row`` in its segment."""
    after = blocks.following[row]
    blocks.previous[added] = row
    blocks.following[added] = after
    blocks.following[row] = added
    if after != NONE:
        blocks.previous[after] = added


@compiled
def enter_free(blocks, row):
    """Marks a row free and puts it into its arena's set of free blocks."""
    arena = blocks.arena[row]
    blocks.state[row] = FREE
    blocks.key[row] = blocks.size[row]
    blocks.age_base[row] = blocks.totals[SMALL_SEARCHES + (arena & 1)]
    base = ordered_set_base(blocks)
    ordered_set.insert(blocks.links, base, blocks.key, blocks.address, 2 * arena, row)


@compiled
def leave_free(blocks, row):
    """Takes a free row out of its set; its address and key must be those it was entered with."""
    base = ordered_set_base(blocks)
    ordered_set.remove(blocks.links, base, blocks.key, blocks.address, 2 * blocks.arena[row], row)


@compiled
def enter_unmapped(blocks, row):
    """Marks a row unmapped and puts it into its arena's set of unmapped ranges."""
    blocks.state[row] = UNMAPPED
    blocks.key[row] = 0
    base = ordered_set_base(blocks)
    ordered_set.insert(blocks.links, base, blocks.key, blocks.address, 2 * blocks.arena[row] + 1, row)


@compiled
def leave_unmapped(blocks, row):
    """Takes an unmapped row out of its set."""
    base = ordered_set_base(blocks)
    ordered_set.remove(blocks.links, base, blocks.key, blocks.address, 2 * blocks.arena[row] + 1, row)


@compiled
def ordered_set_base(blocks):
    """Returns the slot of row 0's links: the number of roots."""
    return len(blocks.links) - 2 * len(blocks.address)


@compiled
def absorb(blocks, row, neighbour, state):
    """Merges ``neighbour`` into ``row``, which is in no set, if it is in ``state``; tells whether it was.

    ``row`` keeps its identity; the neighbour leaves its set and is retired.
    """
    if neighbour == NONE or blocks.state[neighbour] != state:
        return False
    if state == FREE:
        leave_free(blocks, neighbour)
    else:
        leave_unmapped(blocks, neighbour)
    if blocks.previous[row] == neighbour:
        blocks.address[row] = blocks.address[neighbour]
        before = blocks.previous[neighbour]
        blocks.previous[row] = before
        if before != NONE:
            blocks.following[before] = row
    else:
        after = blocks.following[neighbour]
        blocks.following[row] = after
        if after != NONE:
            blocks.previous[after] = row
    blocks.size[row] += blocks.size[neighbour]
    retire_row(blocks, neighbour)
    return True


@compiled
def log_call(blocks, action, address, size, stranded):
    """Appends a driver call of the current request."""
    call = blocks.driver[blocks.totals[DRIVER_ROWS]]
    call[0] = blocks.totals[REQUEST]
    call[1] = action
    call[2] = address
    call[3] = size
    call[4] = stranded
    blocks.totals[DRIVER_ROWS] += 1


@compiled
def whole_pages(blocks, row):
    """Returns (start, end) of the pages a row of an expandable segment covers fully; end ≤ start for none."""
    page, origin = blocks.page[row], blocks.origin[row]
    first = (blocks.address[row] - origin + page - 1) // page
    last = (blocks.address[row] + blocks.size[row] - origin) // page
    return origin + first * page, origin + last * page


@compiled
def is_whole_segment(blocks, row):
    """Tells whether a row has no neighbours."""
    return blocks.previous[row] == NONE and blocks.following[row] == NONE
