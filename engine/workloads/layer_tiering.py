"""Weights and gradients of layers wait in the host's memory between two uses.

Every layer's weights and every layer's gradients are one flat buffer each. After a use a buffer whose contents changed
is copied out over the copy stream and its HBM given back ``distance`` blocks later; one whose contents DDR still holds
is given back at once. ``distance`` blocks before the next use HBM is taken again and the copy back begins; the block
that uses it waits for the copy's end. A buffer whose next use comes too soon for both stays.

* Weights are read by the layer's forward and backward passes and written by the optimizer, which has all of them in
  HBM: where it overwrites them from master weights their HBM is taken without a copy.
* Gradients are cleared at the start of a step and added to by the layer's backward passes; after the last one they stay
  until the optimizer has read them. The cleared buffers leave one per block, the first layer's first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from engine.core.errors import ScenarioError
from engine.devices.spec import DType
from engine.workloads.items import Item, ItemKind
from engine.workloads.persistent_memory import PersistentMemory
from engine.workloads.scenario import Scenario
from engine.workloads.tiering import EVICTED, FETCHED

_ORDER = (ItemKind.AWAIT, ItemKind.DROP, ItemKind.PREFETCH, ItemKind.TAKE, ItemKind.EVICT)
"""What stands before the same block: HBM is given back before more is taken."""


def optimizer_reads_weights(scenario: Scenario) -> bool:
    """Returns whether the optimizer needs the training weights' values: they are (a part of) the master weights."""
    return scenario.model.dtype is DType.FP32 or scenario.enabled("memory.reuse_fp32_parameters")


def with_cold_layers(items: Sequence[Item], held: PersistentMemory, scenario: Scenario) -> tuple[Item, ...]:
    """Returns a program whose layers' weights and gradients, as far as they are cold, wait in DDR between uses.

    Args:
        items: Program of a step.
        held: What lives as long as the job.
        scenario: The job, with its tiers.
    """
    tiering = scenario.memory.tiering
    if tiering is None or not (held.weights or held.gradients):
        return tuple(items)
    moves = _Moves(items, held, tiering.prefetch_distance)
    if held.weights:
        moves.weights(held.weights, optimizer_reads_weights(scenario))
    if held.gradients:
        moves.gradients(held.gradients)
    return moves.program()


def check_cold_layers(scenario: Scenario, stages: Sequence[tuple[Sequence[Item], PersistentMemory]]) -> None:
    """Raises ScenarioError where a class of cold tensors never leaves HBM on any stage.

    Args:
        scenario: The job, with its tiers.
        stages: Of every stage: its program with the moves, and what it holds.
    """
    tiering = scenario.memory.tiering
    for name in ("weights", "gradients"):
        if tiering is None or not scenario.memory.is_cold(name):
            continue
        moved = any(
            item.kind in (ItemKind.EVICT, ItemKind.DROP) and item.slot in getattr(held, name)
            for items, held in stages
            for item in items
        )
        if not moved:
            message = f"no layer's {name} have uses more than prefetch_distance {tiering.prefetch_distance} apart"
            raise ScenarioError(f"memory.tiering: {message}; lower it, or keep {name} in HBM")


@dataclass(eq=False)
class _Moves:
    """Collects what has to stand before which block."""

    items: Sequence[Item]
    held: PersistentMemory
    distance: int
    _before: dict[int, list[Item]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._blocks = [at for at, item in enumerate(self.items) if item.kind is ItemKind.BLOCK]

    def weights(self, ids: range, optimizer_reads: bool) -> None:
        """Plans the moves of the layers' weights."""
        last = len(self._blocks) - 1
        for block, uses in zip(ids, self._uses("layer."), strict=True):
            changed = True
            stops = [*uses, last] if optimizer_reads else uses
            for after, until in pairwise(stops):
                if self._hole(block, after + 1, until, leaves=changed, waits=after):
                    changed = False
            if not optimizer_reads and uses[-1] + 1 < last:
                self._add(ItemKind.DROP, block, uses[-1] + 1)
                self._add(ItemKind.TAKE, block, last)

    def gradients(self, ids: range) -> None:
        """Plans the moves of the layers' gradients."""
        for number, (block, uses) in enumerate(zip(ids, self._uses("layer.backward"), strict=True)):
            starts = [1 + number, *(use + 1 for use in uses[:-1])]
            for start, until in zip(starts, uses, strict=True):
                self._hole(block, start, until, leaves=True, waits=start - 1)

    def program(self) -> tuple[Item, ...]:
        """Returns the items with the moves between them."""
        planned: list[Item] = []
        for at, item in enumerate(self.items):
            # Nothing else than these few kinds, and the sort keeps the layers' order.
            planned += sorted(self._before.get(at, ()), key=lambda move: _ORDER.index(move.kind))
            planned.append(item)
        return tuple(planned)

    def _uses(self, prefix: str) -> list[list[int]]:
        """Returns by layer, in the order of the stage, the numbers of the blocks whose name begins so."""
        uses: dict[int, list[int]] = {}
        for number, at in enumerate(self._blocks):
            item = self.items[at]
            if item.block.startswith(prefix):
                uses.setdefault(item.slot, []).append(number)
        return [uses[slot] for slot in sorted(uses)]

    def _hole(self, block: int, start: int, until: int, *, leaves: bool, waits: int) -> bool:
        """Lets a buffer be away from before block ``start`` to before block ``until``; returns whether it can.

        Args:
            block: Id of the buffer.
            start: Number of the first block that does not need it.
            until: Number of the next one that does.
            leaves: Whether its contents have to be copied out first.
            waits: Number of the block that writes them.
        """
        freed = start + self.distance * leaves
        fetched = until - self.distance
        if freed >= fetched:
            return False
        if leaves:
            # A copy of a micro-batch waits for what was computed before it.
            micro_batch = max(self.items[self._blocks[waits]].micro_batch, 0)
            self._add(ItemKind.EVICT, block, start, EVICTED, micro_batch)
            self._add(ItemKind.AWAIT, block, freed, EVICTED)
        else:
            self._add(ItemKind.DROP, block, freed)
        self._add(ItemKind.PREFETCH, block, fetched, FETCHED)
        self._add(ItemKind.AWAIT, block, until, FETCHED)
        return True

    def _add(self, kind: ItemKind, block: int, before: int, word: str = "", micro_batch: int = -1) -> None:
        size = int(self.held.sizes[block])
        key: tuple[int | str, ...] = (word, block) if word else ()
        item = Item(kind, micro_batch=micro_batch, slot=block, key=key, payload_bytes=size)
        self._before.setdefault(self._blocks[before], []).append(item)
