"""What is stranded: free, in partly used segments, in holes smaller than what was asked.

The measure of fragmentation that matters: whole free segments and whole free pages can be given back to the driver and
asked for again, these bytes cannot.
"""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201

from engine.runtime.allocators.block_store import (
    FREE,
    NONE,
    ROWS_USED,
    is_whole_segment,
    ordered_set_base,
    whole_pages,
)
from engine.runtime.allocators.compiled import compiled
from engine.runtime.allocators.ordered_set import last


@compiled
def pinned_bytes(blocks, row):
    """Returns how much of a free row cannot be given back: all of a split segment, the page fragments of a mapped."""
    if blocks.page[row] == 0:
        return 0 if is_whole_segment(blocks, row) else blocks.size[row]
    start, end = whole_pages(blocks, row)
    return blocks.size[row] - max(end - start, 0)


@compiled
def stranded_bytes(blocks, size):
    """Returns the stranded bytes for a request of (rounded) ``size``, over all arenas."""
    total = 0
    for row in range(blocks.totals[ROWS_USED]):
        if blocks.state[row] == FREE and blocks.size[row] < size:
            total += pinned_bytes(blocks, row)
    return total


@compiled
def releasable_bytes(blocks):
    """Returns the free bytes that can be given back: whole segments, whole pages."""
    total = 0
    for row in range(blocks.totals[ROWS_USED]):
        if blocks.state[row] == FREE:
            total += blocks.size[row] - pinned_bytes(blocks, row)
    return total


@compiled
def largest_free_bytes(blocks):
    """Returns the size of the largest free block of any arena, 0 where there is none."""
    base = ordered_set_base(blocks)
    largest = 0
    for root in range(0, base, 2):
        row = last(blocks.links, base, root)
        if row != NONE:
            largest = max(largest, blocks.size[row])
    return largest
