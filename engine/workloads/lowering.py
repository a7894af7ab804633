"""What every block of a lowering shares: sizes per rank, chosen fusions, and the recurring groups of operators."""

from dataclasses import dataclass, field, replace

import numpy as np

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import catalogue, matmul
from engine.workloads.blocks import LAST, BlockBuilder, GroupKind, shape_text
from engine.workloads.models import ModelSpec
from engine.workloads.precision import NarrowProducts, narrow_products
from engine.workloads.scenario import Parallelism, Recompute, Scenario

FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class Fusions:
    """Which operators run as one kernel, which transfers beside products, and which products in fewer bits.

    ``expert_routing``: one kernel sends tokens to experts and back; otherwise element-wise gather and scatter with
    indices expanded to the width of a token. ``matmul_communication``: products fused with the transfer next to them
    (MC2). ``tensor_overlap``: in the backward pass transfers run beside products on streams of their own.
    """

    attention: bool = False
    rms_norm: bool = False
    swiglu: bool = False
    rope: bool = False
    softmax: bool = False
    cross_entropy: bool = False
    optimizer: bool = False
    gradient_accumulation: bool = False
    dropout_add: bool = False
    add_norm: bool = False
    narrow: NarrowProducts = field(default_factory=NarrowProducts)
    expert_routing: bool = False
    matmul_communication: bool = False
    tensor_overlap: bool = False


def fusions_of(scenario: Scenario) -> Fusions:
    """Returns the fusions of a scenario.

    On CUDA devices the kernels that Megatron-LM has always shipped are on: scaled masked softmax, bias with dropout and
    addition, gradient accumulation inside the weight gradient, the multi-tensor optimizer.
    """
    on = scenario.enabled
    cuda = scenario.device.vendor == "NVIDIA"
    return Fusions(
        attention=on("fusion.attention"),
        rms_norm=on("fusion.rms_norm"),
        swiglu=on("fusion.swiglu"),
        rope=on("fusion.rope"),
        softmax=cuda or on("fusion.softmax_dropout"),
        cross_entropy=on("fusion.cross_entropy"),
        optimizer=cuda or on("fusion.optimizer"),
        gradient_accumulation=cuda or on("fusion.gradient_accumulation"),
        dropout_add=cuda or on("fusion.softmax_dropout"),
        add_norm=on("fusion.add_norm"),
        narrow=narrow_products(scenario),
        expert_routing=cuda or on("fusion.custom"),
        matmul_communication=on("fusion.matmul_all_reduce"),
        tensor_overlap=cuda or on("communication.overlap_tensor_parallel"),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Lowering:
    """One rank's view of a micro-batch.

    Attributes:
        model: What is lowered.
        parallel: Layout.
        fusions: What runs as one kernel.
        recompute: What the backward pass computes again.
        sequences: Sequences of a micro-batch.
        lengths: int64, shape (lengths,): padded tokens of each sequence.
    """

    model: ModelSpec
    parallel: Parallelism
    fusions: Fusions
    recompute: Recompute
    sequences: int
    lengths: Int64Array

    @property
    def dtype(self) -> DType:
        """Of weights and activations."""
        return self.model.dtype

    @property
    def element_bytes(self) -> int:
        """Bytes of one activation."""
        return self.dtype.size_bytes

    @property
    def queries(self) -> Int64Array:
        """int64: tokens of one sequence this rank computes."""
        return -(-self.lengths // self.parallel.context)

    @property
    def tokens(self) -> Int64Array:
        """int64: tokens of the micro-batch inside tensor-parallel regions."""
        return self.sequences * self.queries

    @property
    def splits_sequence(self) -> bool:
        """Whether norms, dropouts and the residual stream are split over the tensor group."""
        return self.parallel.sequence_parallel and self.parallel.tensor > 1

    @property
    def stream_tokens(self) -> Int64Array:
        """int64: tokens of the residual stream this rank holds."""
        return -(-self.tokens // self.parallel.tensor) if self.splits_sequence else self.tokens

    @property
    def stream_bytes(self) -> Int64Array:
        """int64: bytes of the residual stream this rank holds."""
        return self.stream_tokens * self.model.hidden * self.element_bytes

    @property
    def full_bytes(self) -> Int64Array:
        """int64: bytes of the residual stream of all ranks of a tensor group together."""
        return self.tokens * self.model.hidden * self.element_bytes

    @property
    def q_width(self) -> int:
        """Width of this rank's query heads."""
        return self.model.q_width // self.parallel.tensor

    @property
    def kv_width(self) -> int:
        """Width of this rank's key heads: at least one, repeated where there are fewer than ranks."""
        return max(self.model.kv_width // self.parallel.tensor, self.model.head_dim)

    @property
    def ffn(self) -> int:
        """Width of this rank's part of a feed-forward block."""
        return self.model.ffn // self.parallel.tensor

    @property
    def has_dropout(self) -> bool:
        """Whether training drops activations (GPT family)."""
        return not self.model.gated

    @property
    def fuses_residual_norm(self) -> bool:
        """Whether the second norm of a layer is one kernel with the addition before it.

        Not where that addition is one kernel with a dropout already.
        """
        return self.fusions.add_norm and not (self.has_dropout and self.fusions.dropout_add)

    def builder(self, phase: str) -> BlockBuilder:
        """Returns an empty block."""
        return BlockBuilder(phase, len(self.lengths))

    def with_lengths(self, lengths: Int64Array) -> "Lowering":
        """Returns the same lowering for other lengths."""
        return replace(self, lengths=lengths)


def add_matmul(
    block: BlockBuilder,
    low: Lowering,
    rows: Int64Array | int,
    columns: Int64Array | int,
    summed: Int64Array | int,
    reads: tuple[str, ...],
    writes: dict[str, Int64Array | float],
    *,
    out_bytes: int | None = None,
    awaits: int = LAST,
) -> None:
    """Adds a product [rows, summed] × [summed, columns]."""
    table = matmul(rows, columns, summed, low.dtype, out_bytes_per_element=out_bytes)
    first = [int(np.ravel(size)[0]) for size in (rows, summed, columns)]
    shape = shape_text(first[:2], first[1:])
    block.compute("MatMulV3", TaskKind.CUBE, table, reads, writes, shape=shape, awaits=awaits)


def add_elementwise(
    block: BlockBuilder,
    low: Lowering,
    name: str,
    elements: Int64Array,
    reads: tuple[str, ...],
    writes: dict[str, Int64Array | float],
    *,
    inputs: int = 2,
    dtype: DType | None = None,
    shape: str = "",
) -> None:
    """Adds an addition, product or the like; its input is recorded flat where no shape is given."""
    table = catalogue.elementwise(elements, dtype or low.dtype, inputs=inputs)
    block.compute(name, TaskKind.VECTOR, table, reads, writes, shape=shape or shape_text([elements[0]]))


def add_widening(
    block: BlockBuilder, low: Lowering, source: str, target: str, elements: Int64Array, shape: str = ""
) -> str:
    """Adds the cast of a tensor to fp32 and returns the name of the result: ``source`` itself where it is fp32."""
    if low.dtype is DType.FP32:
        return source
    table = catalogue.cast(elements, low.dtype, DType.FP32)
    written: dict[str, Int64Array | float] = {target: elements * FP32_BYTES}
    block.compute("Cast", TaskKind.VECTOR, table, (source,), written, shape=shape, types=(low.dtype,))
    return target


def add_gather(block: BlockBuilder, low: Lowering, source: str, target: str) -> None:
    """Adds the gathering of the residual stream before a tensor-parallel region; nothing where it is whole already."""
    if low.splits_sequence:
        block.collective(
            CollectiveKind.ALL_GATHER, GroupKind.TENSOR, low.full_bytes, (source,), {target: low.full_bytes}
        )


def add_reduction(block: BlockBuilder, low: Lowering, source: str, target: str) -> str:
    """Adds the sum over the tensor group after a row-parallel matrix and returns the name of the result."""
    if low.parallel.tensor == 1:
        return source
    if low.splits_sequence:
        block.collective(
            CollectiveKind.REDUCE_SCATTER, GroupKind.TENSOR, low.full_bytes, (source,), {target: low.stream_bytes}
        )
        return target
    block.collective(CollectiveKind.ALL_REDUCE, GroupKind.TENSOR, low.full_bytes, (source,))
    return source
