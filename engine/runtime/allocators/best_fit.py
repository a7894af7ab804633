"""Finding a free block and cutting it to size: the smallest sufficient one, the lowest address among equals."""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202

from engine.runtime.allocators.block_store import (
    NONE,
    UNMAPPED,
    enter_free,
    leave_free,
    link_after,
    new_part,
    ordered_set_base,
)
from engine.runtime.allocators.caching_rules import (
    MIN_BLOCK_BYTES,
    NPU_BASE_ALIGNMENT_FROM_BYTES,
    SMALL_LIMIT_BYTES,
    round_up,
)
from engine.runtime.allocators.compiled import compiled
from engine.runtime.allocators.ordered_set import first_not_below, following


@compiled
def take_best_fit(blocks, rules, arena, size):
    """Returns the free row for a request, taken out of its set, or −1 where none may be used."""
    base = ordered_set_base(blocks)
    row = first_not_below(blocks.links, base, blocks.key, blocks.address, 2 * arena, size, 0)
    if row == NONE:
        return NONE
    if rules.expandable and blocks.page[row] > 0:
        row = _away_from_the_growing_end(blocks, base, arena, row)
    elif not rules.expandable:
        while row != NONE and blocks.page[row] > 0:
            row = following(blocks.links, base, blocks.key, blocks.address, 2 * arena, row)
        if row == NONE:
            return NONE
    if size < rules.max_split <= blocks.size[row]:
        return NONE
    if size >= rules.max_split and blocks.size[row] >= size + rules.max_unsplit_rounding:
        return NONE
    leave_free(blocks, row)
    return row


@compiled
def _away_from_the_growing_end(blocks, base, arena, row):
    """Returns the first candidate whose room to grow, unmapped range after it included, is not above the next one's."""
    while blocks.page[row] > 0:
        after = following(blocks.links, base, blocks.key, blocks.address, 2 * arena, row)
        if after == NONE or _growable_bytes(blocks, after) >= _growable_bytes(blocks, row):
            return row
        row = after
    return row


@compiled
def _growable_bytes(blocks, row):
    after = blocks.following[row]
    if after != NONE and blocks.state[after] == UNMAPPED:
        return blocks.size[row] + blocks.size[after]
    return blocks.size[row]


@compiled
def cut_to_size(blocks, rules, row, size):
    """Returns the row of the block handed out of ``row``, which is in no set; what is left over becomes free again."""
    if rules.expandable and size >= NPU_BASE_ALIGNMENT_FROM_BYTES:
        row = _aligned_base(blocks, rules, row, size)
    left = blocks.size[row] - size
    small = blocks.arena[row] & 1 == 0
    if small or rules.expandable:
        split = left >= MIN_BLOCK_BYTES
    else:
        split = size < rules.max_split and left > SMALL_LIMIT_BYTES
    if split:
        rest = _cut(blocks, row, size)
        enter_free(blocks, rest)
    return row


@compiled
def _aligned_base(blocks, rules, row, size):
    """Returns a row that begins at the base alignment; the bytes before it, if any, become a free block."""
    offset = round_up(blocks.address[row], rules.base_alignment) - blocks.address[row]
    if offset == 0 or blocks.size[row] < size + offset:
        return row
    aligned = _cut(blocks, row, offset)
    enter_free(blocks, row)
    return aligned


@compiled
def _cut(blocks, row, size):
    """Shortens ``row`` to ``size`` and returns the row of the rest, in no set."""
    rest = new_part(blocks, row, blocks.address[row] + size, blocks.size[row] - size, blocks.state[row])
    blocks.size[row] = size
    link_after(blocks, row, rest)
    return rest
