"""Compaction that only a simulator can do: live blocks slide together inside their segments.

No real runtime moves a live tensor, because kernels and framework hold raw pointers. It shows the least that any
placement inside the same segments could reserve, and is off unless the rules say ``simulator_only_compaction``.
"""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202

from engine.runtime.allocators.block_store import (
    ALLOCATED,
    FREE,
    NONE,
    ROWS_USED,
    UNUSED,
    absorb,
    enter_free,
    leave_free,
    log_call,
)
from engine.runtime.allocators.compiled import compiled
from engine.runtime.allocators.interface import DriverAction

_COMPACT = int(DriverAction.COMPACT)


@compiled
def compact(blocks):
    """Slides the allocated blocks of every segment to its low end; one driver row per segment with the bytes moved.

    Blocks another stream still uses stay where they are, and so does what lies before unmapped addresses. The base
    alignment of large blocks is not kept.
    """
    count = 0
    for row in range(blocks.totals[ROWS_USED]):
        if blocks.state[row] != UNUSED and blocks.previous[row] == NONE:
            blocks.scratch[count] = row
            count += 1
    for index in range(count):
        head = blocks.scratch[index]
        start = blocks.address[head]
        moved = _compact_segment(blocks, head)
        if moved > 0:
            log_call(blocks, _COMPACT, start, moved, -1)


@compiled
def _compact_segment(blocks, head):
    """Returns the bytes moved: each hole rises past the allocated blocks above it and swallows the next hole."""
    moved = 0
    row = head
    while row != NONE:
        if blocks.state[row] == FREE:
            leave_free(blocks, row)
            above = blocks.following[row]
            while above != NONE and blocks.state[above] == ALLOCATED:
                moved += blocks.size[above]
                _swap(blocks, row, above)
                absorb(blocks, row, blocks.following[row], FREE)
                above = blocks.following[row]
            enter_free(blocks, row)
        row = blocks.following[row]
    return moved


@compiled
def _swap(blocks, hole, above):
    """Puts the block right above a hole, which is in no set, under it."""
    before, after = blocks.previous[hole], blocks.following[above]
    blocks.address[above] = blocks.address[hole]
    blocks.address[hole] = blocks.address[above] + blocks.size[above]
    blocks.previous[above] = before
    blocks.following[above] = hole
    blocks.previous[hole] = above
    blocks.following[hole] = after
    if before != NONE:
        blocks.following[before] = above
    if after != NONE:
        blocks.previous[after] = hole
