"""What a rank asks of its allocator: weights once, then block by block, with tensors that outlive their step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.graph.task_graph import BufferTag
from engine.runtime.allocators.interface import RequestKind, RequestLog
from engine.workloads.blocks import NEXT, Block
from engine.workloads.items import Item, ItemKind
from engine.workloads.offloading import OUT, is_offload
from engine.workloads.tiering import EVICTED

ALLOCATE, FREE = int(RequestKind.ALLOCATE), int(RequestKind.FREE)


@dataclass(frozen=True, slots=True, eq=False)
class BlockRequests:
    """The requests of one block, ready to be repeated. Arrays of shape (requests,), sizes (requests, lengths).

    Attributes:
        operator: Before (allocation) or after (free) which operator.
        kind: RequestKind.
        tensor: Number of the tensor's name, plus the number of names where it belongs to the next layer.
        size_bytes: As asked for.
        tag: Lifetime class.
    """

    operator: Int64Array
    kind: Int64Array
    tensor: Int64Array
    size_bytes: Int64Array
    tag: Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPlan:
    """How blocks' tensors become block ids of an allocator.

    Attributes:
        names: Names of tensors, by number.
        blocks: Requests by sequences of a micro-batch and block name; filled as sizes of micro-batches come up.
        transfer_bytes: int64, shape (lengths,): an activation between stages.
        slot_count: Slots of a micro-batch.
        persistent_count: Ids below this are weights, gradients and optimizer state.
        step_id_count: Ids of tensors that live inside a step follow; long-lived ones come after them.
        step_stream: Stream the tensors of steps are allocated on: 1 for the pool of captured graphs, which nothing else
            uses, else 0.
    """

    names: tuple[str, ...]
    blocks: dict[tuple[int, str], BlockRequests]
    transfer_bytes: Int64Array
    slot_count: int
    persistent_count: int
    step_id_count: int
    step_stream: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRequests:
    """Requests in host program order with where in the program they stand.

    Attributes:
        log: The requests.
        item: int64, shape (requests,): index of the program's item.
        operator: int64, shape (requests,): operator of the item's block.
        moves: bool, shape (requests,): bytes leave HBM for DDR or come back, rather than being born or dying.
    """

    log: RequestLog
    item: Int64Array
    operator: Int64Array
    moves: BoolArray


def memory_plan(
    blocks: Mapping[str, Block],
    transfer_bytes: Int64Array,
    slot_count: int,
    micro_batches: int,
    persistent_count: int,
    step_stream: int = 0,
) -> MemoryPlan:
    """Returns the plan of a stage's blocks, without their requests yet."""
    names: dict[str, int] = {"x": 0, "g": 1}
    for block in blocks.values():
        for request in block.requests:
            names.setdefault(request.tensor.removesuffix(NEXT), len(names))
    step_ids = (micro_batches + 1) * slot_count * len(names)
    return MemoryPlan(tuple(names), {}, transfer_bytes, slot_count, persistent_count, step_ids, step_stream)


def add_blocks(plan: MemoryPlan, sequences: int, blocks: Mapping[str, Block]) -> None:
    """Adds the requests of blocks for micro-batches of so many sequences."""
    names = {name: number for number, name in enumerate(plan.names)}
    for name, block in blocks.items():
        plan.blocks[sequences, name] = _block_requests(block, names, len(plan.transfer_bytes))


def _block_requests(block: Block, names: Mapping[str, int], length_count: int) -> BlockRequests:
    count = len(block.requests)
    sizes = np.zeros((count, length_count), np.int64)
    for row, request in enumerate(block.requests):
        sizes[row] = request.size_bytes
    shift = [len(names) if item.tensor.endswith(NEXT) else 0 for item in block.requests]
    number = [names[item.tensor.removesuffix(NEXT)] for item in block.requests]
    return BlockRequests(
        operator=np.array([item.operator for item in block.requests], np.int64),
        kind=np.array([ALLOCATE if item.allocates else FREE for item in block.requests], np.int64),
        tensor=np.array(shift, np.int64) + np.array(number, np.int64),
        size_bytes=sizes,
        tag=np.array([int(item.tag) for item in block.requests], np.int64),
    )


def persistent_requests(sizes: Int64Array) -> RequestLog:
    """Returns the allocation of everything persistent."""
    count = len(sizes)
    zeros = np.zeros(count, np.int64)
    return RequestLog(zeros + ALLOCATE, np.arange(count), sizes, zeros, zeros + int(BufferTag.PERSISTENT))


def program_requests(
    plan: MemoryPlan, items: Sequence[Item], length_of: Sequence[int], sequences: int
) -> PlacedRequests:
    """Returns the requests of a stretch of a program.

    Args:
        plan: Of the stage.
        items: The stretch.
        length_of: Index of the sequence length of each item.
        sequences: Of a micro-batch.
    """
    parts: list[tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]] = []
    moving: list[int] = []
    name_count = len(plan.names)
    # One round per item; all work per request is vectorised.
    for index, (item, length) in enumerate(zip(items, length_of, strict=True)):
        base = plan.persistent_count + ((item.micro_batch + 1) * plan.slot_count + item.slot) * name_count
        if item.kind is ItemKind.BLOCK:
            block = plan.blocks[sequences, item.block]
            if len(block.kind):
                column = min(length, block.size_bytes.shape[1] - 1)
                place = np.full(len(block.kind), index)
                size_column = block.size_bytes[:, column]
                parts.append((block.kind, block.tensor + base, size_column, block.tag, place, block.operator))
        elif item.kind in (ItemKind.RECEIVE, ItemKind.SEND):
            receives = item.kind is ItemKind.RECEIVE
            kind, tag = (ALLOCATE if receives else FREE), int(BufferTag.STEP)
            size = plan.transfer_bytes[length] if receives else 0
            row = (kind, base + plan.names.index(item.block), size, tag, index, 0)
            parts.append(tuple(np.array([value], np.int64) for value in row))  # type: ignore[arg-type]  # six of them
        elif _changes_tier(item):
            copies = item.kind not in (ItemKind.DROP, ItemKind.TAKE)
            moving += [len(parts)] * copies
            # What the request costs the host stalls the block that comes next.
            following = next(at for at in range(index, len(items)) if items[at].kind is ItemKind.BLOCK)
            kind = ALLOCATE if item.kind in (ItemKind.PREFETCH, ItemKind.TAKE) else FREE
            if is_offload(item):
                tensors, held = kept_by(plan, sequences, item.block, length)
                filled = np.full(len(tensors), 1)
                tag = int(BufferTag.STEP)
                parts.append((kind * filled, tensors + base, held, tag * filled, following * filled, 0 * filled))
                continue
            row = (kind, item.slot, item.payload_bytes, int(BufferTag.PERSISTENT), following, 0)
            parts.append(tuple(np.array([value], np.int64) for value in row))  # type: ignore[arg-type]  # six of them
    nothing = np.empty(0, np.int64)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [nothing] * 6
    kinds, ids, sizes, tags, places, operators = columns
    streams = np.where(ids >= plan.persistent_count, plan.step_stream, 0)
    counts = np.array([len(part[0]) for part in parts], np.int64)
    moves = np.repeat(np.isin(np.arange(len(parts)), moving), counts)
    return PlacedRequests(RequestLog(kinds, ids, sizes, streams, tags), places, operators, moves)


def _changes_tier(item: Item) -> bool:
    """Returns whether an item gives HBM back or takes it while its tensor lives on."""
    frees = item.kind is ItemKind.AWAIT and item.key[:1] in ((EVICTED,), (OUT,))
    return frees or item.kind in (ItemKind.PREFETCH, ItemKind.DROP, ItemKind.TAKE)


def kept_by(plan: MemoryPlan, sequences: int, forward: str, length: int) -> tuple[Int64Array, Int64Array]:
    """Returns what a layer keeps from its forward to its backward pass: its input and what its block leaves behind.

    Args:
        plan: Of the stage.
        sequences: Of a micro-batch.
        forward: Name of the layer's forward block.
        length: Index of the sequence length.

    Returns:
        Numbers of the tensors' names, and their bytes; int64 each.
    """
    block = plan.blocks[sequences, forward]
    column = min(length, block.size_bytes.shape[1] - 1)
    freed = block.tensor[block.kind == FREE]
    left = (block.kind == ALLOCATE) & (block.tensor < len(plan.names)) & ~np.isin(block.tensor, freed)
    tensors = np.concatenate(([plan.names.index("x")], block.tensor[left]))
    sizes = np.concatenate((plan.transfer_bytes[length : length + 1], block.size_bytes[left, column]))
    return tensors.astype(np.int64), sizes.astype(np.int64)
