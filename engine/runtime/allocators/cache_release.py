"""Giving memory back to the driver: whole free segments, whole free pages, old blocks."""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202

from engine.runtime.allocators.block_store import (
    FREE,
    LARGE_SEARCHES,
    NONE,
    RESERVED_BYTES,
    UNMAPPED,
    absorb,
    enter_free,
    enter_unmapped,
    is_whole_segment,
    leave_free,
    leave_unmapped,
    link_after,
    log_call,
    new_part,
    ordered_set_base,
    retire_row,
    whole_pages,
)
from engine.runtime.allocators.compiled import compiled
from engine.runtime.allocators.interface import DriverAction
from engine.runtime.allocators.ordered_set import first_not_below, following, last, preceding

_SEGMENT_FREE = int(DriverAction.SEGMENT_FREE)
_UNMAP = int(DriverAction.UNMAP)


@compiled
def release_cache(blocks):
    """Gives back every whole free segment and every fully free page, large pools first; returns the bytes."""
    before = blocks.totals[RESERVED_BYTES]
    arenas = ordered_set_base(blocks) // 2
    for pool in (1, 0):
        for arena in range(pool, arenas, 2):
            _release_arena(blocks, arena)
    return before - blocks.totals[RESERVED_BYTES]


@compiled
def _release_arena(blocks, arena):
    base = ordered_set_base(blocks)
    count = 0
    row = first_not_below(blocks.links, base, blocks.key, blocks.address, 2 * arena, 0, 0)
    while row != NONE:
        blocks.scratch[count] = row
        count += 1
        row = following(blocks.links, base, blocks.key, blocks.address, 2 * arena, row)
    # Segments first, then pages: unmapping makes new free rows, which must not be visited.
    for index in range(count):
        row = blocks.scratch[index]
        if blocks.page[row] == 0 and is_whole_segment(blocks, row):
            free_segment(blocks, row)
    for index in range(count):
        row = blocks.scratch[index]
        if blocks.page[row] > 0 and blocks.state[row] == FREE:
            unmap_pages(blocks, row)


@compiled
def free_segment(blocks, row):
    """Gives back the segment of a whole free row."""
    leave_free(blocks, row)
    blocks.totals[RESERVED_BYTES] -= blocks.size[row]
    log_call(blocks, _SEGMENT_FREE, blocks.address[row], blocks.size[row], -1)
    retire_row(blocks, row)


@compiled
def unmap_pages(blocks, row):
    """Unmaps the pages a free row covers fully; the fragments before and after them stay as free blocks."""
    start, end = whole_pages(blocks, row)
    if end <= start:
        return
    leave_free(blocks, row)
    head, tail = start - blocks.address[row], blocks.address[row] + blocks.size[row] - end
    if head > 0:
        before = new_part(blocks, row, blocks.address[row], head, FREE)
        above = blocks.previous[row]
        blocks.previous[before] = above
        blocks.following[before] = row
        blocks.previous[row] = before
        if above != NONE:
            blocks.following[above] = before
        enter_free(blocks, before)
    if tail > 0:
        after = new_part(blocks, row, end, tail, FREE)
        link_after(blocks, row, after)
        enter_free(blocks, after)
    blocks.address[row] = start
    blocks.size[row] = end - start
    absorb(blocks, row, blocks.previous[row], UNMAPPED)
    absorb(blocks, row, blocks.following[row], UNMAPPED)
    enter_unmapped(blocks, row)
    blocks.totals[RESERVED_BYTES] -= end - start
    log_call(blocks, _UNMAP, start, end - start, -1)
    if is_whole_segment(blocks, row):
        leave_unmapped(blocks, row)
        retire_row(blocks, row)


@compiled
def collect_garbage(blocks, rules):
    """Gives back whole free segments of the large pools, those unused for longest first, down to the threshold.

    From reading the allocator's source; no public recording shows it.
    """
    arenas = ordered_set_base(blocks) // 2
    searches = blocks.totals[LARGE_SEARCHES]
    base = ordered_set_base(blocks)
    released = True
    while released and blocks.totals[RESERVED_BYTES] > rules.collect_above:
        count = 0
        age_sum = 0
        for arena in range(1, arenas, 2):
            row = first_not_below(blocks.links, base, blocks.key, blocks.address, 2 * arena, 0, 0)
            while row != NONE:
                if blocks.page[row] == 0 and is_whole_segment(blocks, row):
                    blocks.scratch[count] = row
                    count += 1
                    age_sum += searches - blocks.age_base[row]
                row = following(blocks.links, base, blocks.key, blocks.address, 2 * arena, row)
        released = False
        for index in range(count):
            row = blocks.scratch[index]
            old = (searches - blocks.age_base[row]) * count >= age_sum
            if old and blocks.totals[RESERVED_BYTES] > rules.collect_above:
                free_segment(blocks, row)
                released = True


@compiled
def release_for(blocks, rules, arena, size):
    """With a split limit: gives back one oversized block that is large enough, else several from the largest down.

    Tells whether enough was given back for the request to be tried again.
    """
    if rules.max_split > blocks.totals[RESERVED_BYTES]:
        return False
    wanted = max(size, rules.max_split)
    base = ordered_set_base(blocks)
    root = 2 * arena
    row = first_not_below(blocks.links, base, blocks.key, blocks.address, root, wanted, 0)
    if row != NONE:
        return _release_oversized(blocks, row) > 0
    released = 0
    row = last(blocks.links, base, root)
    while released < wanted and row != NONE and blocks.size[row] >= rules.max_split:
        before = preceding(blocks.links, base, blocks.key, blocks.address, root, row)
        released += _release_oversized(blocks, row)
        row = before
    return released >= wanted


@compiled
def _release_oversized(blocks, row):
    """Returns the bytes given back: blocks above the split limit are whole segments unless the limit changed."""
    if blocks.page[row] > 0 or not is_whole_segment(blocks, row):
        return 0
    size = blocks.size[row]
    free_segment(blocks, row)
    return size
