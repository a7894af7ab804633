"""How replicas exchange gradients: layer by layer or in buckets, whole, in fewer bits, or only the largest of them.

TopK compression sends values and positions of the largest gradients of every row of 4,096, gathered by all replicas;
what is not sent is kept and added a step later (error feedback). Quantised gradients are scaled and cast before they
are reduced. Both cost passes over the gradients on the vector cores, before and after the exchange.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import OperatorTable, catalogue
from engine.workloads.blocks import Block, BlockBuilder, GroupKind, shape_text
from engine.workloads.communication_settings import CommunicationSettings
from engine.workloads.items import Item, ItemKind
from engine.workloads.lowering import FP32_BYTES, Lowering
from engine.workloads.parameters import MAIN_GRADIENT_BYTES, WeightTensor, replica_count
from engine.workloads.scenario import Parallelism

PREFIX = "gradients"
"""First word of the names of blocks that change gradients before or after their exchange."""
ROW = 4096
"""Elements among which the largest are chosen, and that share one scale: a row stays on one core."""
SELECTION = "row_sort"
"""Family that prices the choice of the largest of a row: the one kernel for it that was measured sorts rows. A
threshold estimated from a sample would be cheaper; nobody published what it takes on these devices."""
POSITION_BYTES = 4
"""Of the int32 position of a gradient that is sent."""
BYTE_BITS = 8


@dataclass(eq=False)
class GradientExchanges:
    """The items by which one stage exchanges its gradients.

    Attributes:
        parallel: Layout.
        stage: Which.
        settings: Buckets and compression.
    """

    parallel: Parallelism
    stage: int
    settings: CommunicationSettings
    _bucket: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    _restores: list[Item] = field(default_factory=list)
    _count: int = 0

    def whole(self, tensors: Iterable[WeightTensor]) -> list[Item]:
        """Returns the exchange of all gradients at once."""
        counts = _elements(tensors)
        return [item for is_expert in (False, True) for item in self._exchange(is_expert, counts[is_expert], 1)]

    def ready(self, tensors: Iterable[WeightTensor]) -> list[Item]:
        """Returns what is exchanged once these gradients are complete too: a bucket that is full, or nothing yet.

        A bucket is closed by the layer that fills it; one layer fills several small ones.
        """
        counts = _elements(tensors)
        items: list[Item] = []
        for is_expert in (False, True):
            self._bucket[is_expert] += counts[is_expert]
            size, limit = self._bucket[is_expert] * MAIN_GRADIENT_BYTES, self.settings.bucket_bytes
            if size and size >= limit:
                items += self._exchange(is_expert, self._bucket[is_expert], max(size // limit, 1) if limit else 1)
                self._bucket[is_expert] = 0
        return items

    def rest(self) -> list[Item]:
        """Returns the exchange of buckets that did not fill."""
        items = [item for is_expert, count in self._bucket.items() for item in self._exchange(is_expert, count, 1)]
        self._bucket = dict.fromkeys(self._bucket, 0)
        return items

    @property
    def count(self) -> int:
        """Exchanges so far: the slots they use."""
        return self._count

    def restores(self) -> list[Item]:
        """Returns what makes gradients of what came over the wire, once everything has been exchanged."""
        return self._restores

    def _exchange(self, is_expert: bool, count: int, pieces: int) -> list[Item]:
        replicas = replica_count(self.parallel, is_expert)
        if replicas < 2 or not count:
            return []
        items: list[Item] = []
        for part in _split(count, pieces):
            # Every exchange has a slot of its own, so that the tensors of two never share a name.
            slot, self._count = self._count, self._count + 1
            if self.settings.compresses:
                name = f"{part}.{replicas}"
                items.append(Item(ItemKind.BLOCK, f"{PREFIX}.before.{name}", slot=slot))
                self._restores.append(Item(ItemKind.BLOCK, f"{PREFIX}.after.{name}", slot=slot))
            items.append(
                Item(
                    ItemKind.EXCHANGE,
                    key=("reduce", self.stage, int(is_expert), f"bucket {slot}"),
                    payload_bytes=payload_bytes(self.settings, part, replicas),
                    collective=self._collective,
                    group=GroupKind.EXPERT_DATA if is_expert else GroupKind.DATA,
                    shares_queue=self.settings.one_queue,
                )
            )
        return items

    @property
    def _collective(self) -> CollectiveKind:
        if self.settings.sent_ratio < 1.0:
            return CollectiveKind.ALL_GATHER
        sharded = self.parallel.distributed_optimizer
        return CollectiveKind.REDUCE_SCATTER if sharded else CollectiveKind.ALL_REDUCE


def _elements(tensors: Iterable[WeightTensor]) -> dict[bool, int]:
    counts = {False: 0, True: 0}
    for tensor in tensors:
        counts[tensor.is_expert] += tensor.element_count
    return counts


def _split(count: int, pieces: int) -> list[int]:
    each, rest = divmod(count, pieces)
    return [each + (number < rest) for number in range(pieces) if each + (number < rest)]


def sent_count(settings: CommunicationSettings, elements: int) -> int:
    """Returns how many of a replica's gradients it sends: at least one of every row."""
    rows, rest = divmod(elements, ROW)
    tail = max(round(rest * settings.sent_ratio), 1) if rest else 0
    return rows * max(round(ROW * settings.sent_ratio), 1) + tail


def payload_bytes(settings: CommunicationSettings, elements: int, replicas: int) -> int:
    """Returns the bytes of the tensor that is exchanged: what a reduction starts from, or a gathering ends with."""
    if settings.sent_ratio < 1.0:
        return replicas * sent_count(settings, elements) * (MAIN_GRADIENT_BYTES + POSITION_BYTES)
    scales = -(-elements // ROW) * FP32_BYTES if settings.gradient_bits == BYTE_BITS else 0
    return elements * settings.gradient_bits // BYTE_BITS + scales


def kept_bytes(settings: CommunicationSettings, parallel: Parallelism, tensors: Iterable[WeightTensor]) -> int:
    """Returns the bytes of the gradients that were not sent and wait for the next step, 0 without error feedback."""
    if not settings.error_feedback:
        return 0
    counts = _elements(tensors)
    return sum(counts[is_expert] for is_expert in counts if replica_count(parallel, is_expert) > 1) * FP32_BYTES


def gradient_blocks(settings: CommunicationSettings, low: Lowering, items: Iterable[Item]) -> dict[str, Block]:
    """Returns the blocks that items name which change gradients before or after their exchange."""
    names = {item.block for item in items if item.block.startswith(f"{PREFIX}.")}
    return {name: _gradient_block(settings, low, name) for name in sorted(names)}


def _gradient_block(settings: CommunicationSettings, low: Lowering, name: str) -> Block:
    _, when, elements, replicas = name.split(".")
    block = low.builder("backward" if when == "before" else "optimizer")
    count, members = int(elements), int(replicas)
    if settings.sent_ratio < 1.0:
        add = _add_selection if when == "before" else _add_sparse_sum
    else:
        add = _add_narrowing if when == "before" else _add_widening
    add(block, settings, low, count, members)
    return block.finish()


def _add_selection(
    block: BlockBuilder, settings: CommunicationSettings, low: Lowering, count: int, members: int
) -> None:
    """Adds what was kept, chooses the largest of every row with their positions, and takes them out of what is kept."""
    sent, shape = sent_count(settings, count), shape_text([count])
    pair = MAIN_GRADIENT_BYTES + POSITION_BYTES
    if settings.error_feedback:
        table = catalogue.elementwise(_column(low, count), DType.FP32, inputs=2, cold=True)
        block.compute("Add", TaskKind.VECTOR, table, shape=shape)
    rows = -(-count // ROW)
    table = catalogue.vector_operator(
        SELECTION, _column(low, rows), ROW, DType.FP32, FP32_BYTES, pair * sent / (rows * ROW), cold=True
    )
    written = {"sparse": sent * pair}
    block.compute("TopKV2", TaskKind.VECTOR, table, (), written, shape=shape_text([rows, ROW]))
    if settings.error_feedback:
        block.compute("ScatterElementsV2", TaskKind.VECTOR, _indexed(low, sent, reads=False), ("sparse",), {})
    # What arrives of all replicas needs its place before the exchange begins.
    block.compute("ConcatD", TaskKind.VECTOR, catalogue.copy(_column(low, sent * 2), DType.FP32), ("sparse",), {
        "gathered": members * sent * pair
    })  # fmt: skip
    block.keep("sparse", "gathered")


def _add_sparse_sum(
    block: BlockBuilder, settings: CommunicationSettings, low: Lowering, count: int, members: int
) -> None:
    """Clears this rank's part of the gradients and adds what all replicas sent of it."""
    own = members if low.parallel.distributed_optimizer else 1
    sent = members * sent_count(settings, count)
    if own > 1:
        table = catalogue.elementwise(_column(low, sent), DType.INT32, inputs=1)
        block.compute("GreaterEqual", TaskKind.VECTOR, table, ("gathered",), shape=shape_text([sent]))
    block.compute("ZerosLike", TaskKind.VECTOR, catalogue.fill(_column(low, -(-count // own)), DType.FP32))
    block.compute("ScatterAdd", TaskKind.VECTOR, _indexed(low, -(-sent // own), reads=True), ("gathered",))
    block.release("sparse", "gathered")


def _indexed(low: Lowering, count: int, *, reads: bool) -> OperatorTable:
    """Returns a write of single elements by position, or an addition to them."""
    read = POSITION_BYTES + (2 * FP32_BYTES if reads else 0)
    return catalogue.vector_operator("element_index", 1, _column(low, count), DType.FP32, read, FP32_BYTES, cold=True)


def _add_narrowing(
    block: BlockBuilder, settings: CommunicationSettings, low: Lowering, count: int, members: int
) -> None:
    """Casts gradients to the type of the wire: bf16, or int8 with a scale for every row."""
    del members
    size = payload_bytes(settings, count, 1)
    shape = shape_text([count])
    if settings.gradient_bits == BYTE_BITS:
        rows = -(-count // ROW)
        table = catalogue.vector_operator(
            "dynamic_quant", _column(low, rows), ROW, DType.FP32, FP32_BYTES, size / (rows * ROW), cold=True
        )
        block.compute("DynamicQuant", TaskKind.VECTOR, table, (), {"narrow": size}, shape=shape)
    else:
        table = catalogue.cast(_column(low, count), DType.FP32, DType.BF16, cold=True)
        block.compute("Cast", TaskKind.VECTOR, table, (), {"narrow": size}, shape=shape)
    block.keep("narrow")


def _add_widening(
    block: BlockBuilder, settings: CommunicationSettings, low: Lowering, count: int, members: int
) -> None:
    """Casts this rank's part of the reduced gradients back to fp32."""
    own = members if low.parallel.distributed_optimizer else 1
    source = DType.INT8 if settings.gradient_bits == BYTE_BITS else DType.BF16
    table = catalogue.cast(_column(low, -(-count // own)), source, DType.FP32)
    block.compute("Cast", TaskKind.VECTOR, table, ("narrow",), shape=shape_text([-(-count // own)]), types=[source])
    block.release("narrow")


def _column(low: Lowering, value: int) -> Int64Array:
    return np.full(len(low.lengths), value, np.int64)
