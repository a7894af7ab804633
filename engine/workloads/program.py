"""A training step as the program of each kind of rank: which blocks, sends and collectives in which order."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array
from engine.graph.collective_kinds import CollectiveKind
from engine.workloads.blocks import Block, GroupKind
from engine.workloads.chunking import chunked
from engine.workloads.communication_settings import communication_settings
from engine.workloads.gradient_exchange import GradientExchanges, gradient_blocks
from engine.workloads.items import Item, ItemKind
from engine.workloads.layers import (
    embedding_backward,
    embedding_forward,
    layer_backward,
    layer_forward,
    loss_backward,
    loss_forward,
)
from engine.workloads.layout import stage_layers
from engine.workloads.lowering import Lowering, fusions_of
from engine.workloads.parameters import (
    MAIN_GRADIENT_BYTES,
    WeightTensor,
    layer_weights,
    optimizer_block,
    replica_count,
    stage_weights,
    zero_gradients_block,
)
from engine.workloads.scenario import Scenario
from engine.workloads.schedules import Pass, stage_passes


@dataclass(frozen=True, slots=True)
class StageProgram:
    """The program of the ranks of one stage.

    Attributes:
        stage: Which.
        items: In host program order.
        weights: What the ranks hold.
        slot_count: Slots the items use.
    """

    stage: int
    items: tuple[Item, ...]
    weights: tuple[WeightTensor, ...]
    slot_count: int


def lowering_of(scenario: Scenario, lengths: Int64Array, sequences: int | None = None) -> Lowering:
    """Returns the lowering of a scenario a run acts on (see ``acting``) for padded sequence lengths."""
    return Lowering(
        model=scenario.model,
        parallel=scenario.parallel,
        fusions=fusions_of(scenario),
        recompute=scenario.memory.recompute,
        sequences=sequences or scenario.batch.micro,
        lengths=lengths,
    )


def step_blocks(scenario: Scenario, low: Lowering) -> dict[str, Block]:
    """Returns every block the programs name."""
    model, parallel = scenario.model, scenario.parallel
    blocks = {"embedding.forward": embedding_forward(low), "embedding.backward": embedding_backward(low)}
    blocks |= {"loss.forward": loss_forward(low), "loss.backward": loss_backward(low)}
    for window in {model.window_of(layer) for layer in range(model.layers)}:
        blocks[f"layer.forward.{window}"] = layer_forward(low, window)
        blocks[f"layer.backward.{window}"] = layer_backward(low, window)
    once = low.with_lengths(low.lengths[:1])
    for stage in range(parallel.pipeline):
        weights = stage_weights(model, parallel, stage)
        blocks[f"zero.{stage}"] = zero_gradients_block(once, weights)
        blocks[f"optimizer.{stage}"] = optimizer_block(once, weights)
    settings = communication_settings(scenario)
    if settings.chunks > 1 and parallel.tensor > 1:
        blocks = {name: chunked(block, settings.chunks, model.experts) for name, block in blocks.items()}
    if settings.compresses:
        for stage in range(parallel.pipeline):
            blocks |= gradient_blocks(settings, low, stage_program(scenario, stage).items)
    return blocks


def stage_program(scenario: Scenario, stage: int) -> StageProgram:
    """Returns the program of a stage for one step."""
    return _StageWriter(scenario, stage).write()


class _StageWriter:
    """Writes one stage's items in order."""

    def __init__(self, scenario: Scenario, stage: int) -> None:
        self._scenario = scenario
        self._stage = stage
        self._parallel = scenario.parallel
        self._items: list[Item] = []
        self._per_chunk = scenario.model.layers // (self._parallel.pipeline * self._parallel.virtual_pipeline)
        self._weights = stage_weights(scenario.model, self._parallel, stage)
        self._settings = communication_settings(scenario)
        self._gradients = GradientExchanges(self._parallel, stage, self._settings)
        self._overlaps_gradients = scenario.enabled("communication.overlap_gradients")
        self._overlaps_parameters = scenario.enabled("communication.overlap_parameters")
        # Megatron-LM posts receives ahead where stages hold several chunks (overlap_p2p_comm); else in order.
        self._posts_early = self._parallel.virtual_pipeline > 1

    def write(self) -> StageProgram:
        passes = stage_passes(
            self._parallel.schedule,
            self._stage,
            self._parallel.pipeline,
            self._scenario.micro_batch_count,
            self._parallel.virtual_pipeline,
        )
        self._add(Item(ItemKind.BLOCK, f"zero.{self._stage}"))
        if self._gathers_parameters and self._overlaps_parameters:
            self._exchange_all(CollectiveKind.ALL_GATHER, self._scenario.model.dtype.size_bytes, "gather")
        seen: set[int] = set()
        last_backward = {item.chunk: item.micro_batch for item in passes if not item.is_forward}
        for item in passes:
            if item.is_forward:
                self._forward(item, first=item.chunk not in seen)
                seen.add(item.chunk)
            else:
                self._backward(item, last=last_backward[item.chunk] == item.micro_batch)
        self._finish()
        slots = max(self._parallel.virtual_pipeline * (self._per_chunk + 2), self._gradients.count)
        return StageProgram(self._stage, tuple(self._items), self._weights, slots)

    def _add(self, item: Item) -> None:
        self._items.append(item)

    @property
    def _replicas(self) -> int:
        return replica_count(self._parallel, False)

    @property
    def _gathers_parameters(self) -> bool:
        return self._parallel.distributed_optimizer and self._replicas > 1

    def _slot(self, chunk: int, index: int) -> int:
        return chunk * (self._per_chunk + 2) + index

    def _is_first(self, chunk: int) -> bool:
        return self._stage == 0 and chunk == 0

    def _is_last(self, chunk: int) -> bool:
        return self._stage == self._parallel.pipeline - 1 and chunk == self._parallel.virtual_pipeline - 1

    def _hop(self, chunk: int) -> int:
        """Number of the model chunk in model order: what a transfer between stages is named after."""
        return chunk * self._parallel.pipeline + self._stage

    def _forward(self, item: Pass, first: bool) -> None:
        number, chunk = item.micro_batch, item.chunk
        begin, end = self._slot(chunk, 0), self._slot(chunk, self._per_chunk)
        waits = first and self._gathers_parameters and self._overlaps_parameters
        if self._is_first(chunk):
            if waits:
                self._add(Item(ItemKind.AWAIT, key=("embedding",)))
            self._add(Item(ItemKind.BLOCK, "embedding.forward", number, begin))
        else:
            self._add(
                Item(
                    ItemKind.RECEIVE,
                    "x",
                    number,
                    begin,
                    key=("f", number, self._hop(chunk) - 1),
                    early=self._posts_early,
                )
            )
        for index, layer in enumerate(self._layers(chunk)):
            slot = self._slot(chunk, index)
            if waits:
                self._add(Item(ItemKind.AWAIT, key=(slot,)))
            window = self._scenario.model.window_of(layer)
            self._add(Item(ItemKind.BLOCK, f"layer.forward.{window}", number, slot, layer))
        if self._is_last(chunk):
            if waits:
                self._add(Item(ItemKind.AWAIT, key=("head",)))
            self._add(Item(ItemKind.BLOCK, "loss.forward", number, end - 1))
        else:
            self._add(Item(ItemKind.SEND, "x", number, end, key=("f", number, self._hop(chunk))))

    def _backward(self, item: Pass, last: bool) -> None:
        number, chunk = item.micro_batch, item.chunk
        begin, end = self._slot(chunk, 0), self._slot(chunk, self._per_chunk)
        if self._is_last(chunk):
            self._add(Item(ItemKind.BLOCK, "loss.backward", number, end - 1))
            if last:
                self._reduce(self._part("norm", "head"))
        else:
            self._add(
                Item(
                    ItemKind.RECEIVE, "g", number, end, key=("b", number, self._hop(chunk) + 1), early=self._posts_early
                )
            )
        layers = self._layers(chunk)
        for index in reversed(range(len(layers))):
            window, slot = self._scenario.model.window_of(layers[index]), self._slot(chunk, index)
            self._add(Item(ItemKind.BLOCK, f"layer.backward.{window}", number, slot, layers[index]))
            if last:
                self._reduce(layer_weights(self._scenario.model, self._parallel))
        if self._is_first(chunk):
            self._add(Item(ItemKind.BLOCK, "embedding.backward", number, begin))
            if last:
                self._reduce(self._part("embedding", "positions"))
        else:
            self._add(Item(ItemKind.SEND, "g", number, begin, key=("b", number, self._hop(chunk))))

    def _layers(self, chunk: int) -> range:
        return stage_layers(self._stage, chunk, self._scenario.model.layers, self._parallel)

    def _part(self, *names: str) -> tuple[WeightTensor, ...]:
        return tuple(tensor for tensor in self._weights if tensor.name in names)

    def _reduce(self, tensors: tuple[WeightTensor, ...]) -> None:
        """Reduces gradients over the replicas as soon as they are complete and their bucket is full."""
        if self._overlaps_gradients:
            self._items += self._gradients.ready(tensors)

    def _exchange_all(self, kind: CollectiveKind, element_bytes: int, name: str) -> None:
        """Exchanges the stage's weights layer by layer, in the order the forward pass needs them."""
        self._exchange(kind, element_bytes, name, ("embedding",), self._part("embedding", "positions"))
        for chunk in range(self._parallel.virtual_pipeline):
            for index in range(self._per_chunk):
                layer = layer_weights(self._scenario.model, self._parallel)
                self._exchange(kind, element_bytes, name, (self._slot(chunk, index),), layer)
        self._exchange(kind, element_bytes, name, ("head",), self._part("norm", "head"))

    def _exchange(
        self,
        kind: CollectiveKind,
        element_bytes: int,
        name: str,
        key: tuple[int | str, ...],
        tensors: tuple[WeightTensor, ...],
    ) -> None:
        for is_expert, group in ((False, GroupKind.DATA), (True, GroupKind.EXPERT_DATA)):
            if replica_count(self._parallel, is_expert) < 2:
                continue
            count = sum(tensor.element_count for tensor in tensors if tensor.is_expert is is_expert)
            if count:
                whole = (name, self._stage, int(is_expert), *key)
                self._add(
                    Item(
                        ItemKind.EXCHANGE,
                        key=whole,
                        payload_bytes=count * element_bytes,
                        collective=kind,
                        group=group,
                        shares_queue=self._settings.one_queue,
                    )
                )

    def _finish(self) -> None:
        """Reduces what is left, runs the optimizer, gathers weights where that is not overlapped, waits for the end."""
        parallel = self._parallel
        exchanges = self._gradients
        self._items += exchanges.rest() if self._overlaps_gradients else exchanges.whole(self._weights)
        shares = self._scenario.model.tied_embeddings and parallel.pipeline > 1
        if shares and self._stage in (0, parallel.pipeline - 1):
            part = self._part("embedding" if self._stage == 0 else "head")
            count = sum(tensor.element_count for tensor in part)
            self._add(
                Item(
                    ItemKind.EXCHANGE,
                    key=("tied",),
                    payload_bytes=count * MAIN_GRADIENT_BYTES,
                    collective=CollectiveKind.ALL_REDUCE,
                    group=GroupKind.EMBEDDING,
                    shares_queue=self._settings.one_queue,
                )
            )
        self._add(Item(ItemKind.AWAIT))
        self._items += exchanges.restores()
        if parallel.pipeline > 1:
            # The norm of the gradients follows their exchange in its queue.
            self._add(
                Item(
                    ItemKind.EXCHANGE,
                    key=("norm",),
                    payload_bytes=4,
                    collective=CollectiveKind.ALL_REDUCE,
                    group=GroupKind.MODEL,
                    shares_queue=self._settings.one_queue,
                )
            )
            self._add(Item(ItemKind.AWAIT))
        self._add(Item(ItemKind.BLOCK, f"optimizer.{self._stage}"))
        if self._gathers_parameters and not self._overlaps_parameters:
            self._exchange(
                CollectiveKind.ALL_GATHER, self._scenario.model.dtype.size_bytes, "gather", (), self._weights
            )
            self._add(Item(ItemKind.AWAIT))
        self._add(Item(ItemKind.SYNCHRONIZE))


def transfer_bytes(low: Lowering) -> Int64Array:
    """Returns bytes of an activation between stages, int64, shape (lengths,)."""
    return np.asarray(low.stream_bytes, np.int64)
