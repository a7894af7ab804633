"""Weights of a stage as tensors, and the optimizer's work on them."""

from dataclasses import dataclass

import numpy as np

from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import catalogue
from engine.workloads.blocks import Block, GroupKind, shape_text
from engine.workloads.layout import stage_layers
from engine.workloads.lowering import FP32_BYTES, Lowering
from engine.workloads.models import ModelSpec
from engine.workloads.scenario import Parallelism

MAIN_GRADIENT_BYTES = 4
"""Gradients are accumulated in fp32, as Megatron-LM and MindSpeed do for bf16 and fp16 training."""
ADAM_STATE_BYTES = 12
"""fp32 master weight and two fp32 moments."""


@dataclass(frozen=True, slots=True)
class WeightTensor:
    """One weight of one rank.

    Attributes:
        name: Module it belongs to.
        element_count: This rank's elements.
        is_expert: Whether it is an expert's, which other replicas may not hold.
    """

    name: str
    element_count: int
    is_expert: bool = False


def layer_weights(model: ModelSpec, parallel: Parallelism) -> tuple[WeightTensor, ...]:
    """Returns one layer's weights on one rank."""
    tp, hidden = parallel.tensor, model.hidden
    q, kv = model.q_width // tp, max(model.kv_width // tp, model.head_dim)
    gpt = not model.gated
    tensors = [("norm1", hidden), ("qkv", hidden * (q + 2 * kv)), ("projection", q * hidden), ("norm2", hidden)]
    if gpt:
        tensors += [("norm1.bias", hidden), ("norm2.bias", hidden)]
    if gpt or model.qkv_bias:
        tensors.append(("qkv.bias", q + 2 * kv))
    if gpt or model.attention_bias:
        tensors.append(("projection.bias", hidden))
    if model.qk_norm:
        tensors += [("q_norm", model.head_dim), ("k_norm", model.head_dim)]
    if model.attention_sinks:
        tensors.append(("sinks", model.heads // tp))
    up, down = hidden * model.ffn * (model.ffn_matrices - 1) // tp, hidden * model.ffn // tp
    up_bias, down_bias = model.ffn * (model.ffn_matrices - 1) // tp, hidden
    if not model.experts:
        tensors += [("up", up), ("down", down)]
        if gpt:
            tensors += [("up.bias", up_bias), ("down.bias", down_bias)]
        return tuple(WeightTensor(name, count) for name, count in tensors)
    tensors.append(("router", hidden * model.experts))
    local = model.experts // parallel.expert
    experts = [("experts.up", up * local), ("experts.down", down * local)]
    if model.expert_bias:
        experts += [("experts.up.bias", up_bias * local), ("experts.down.bias", down_bias * local)]
    plain = tuple(WeightTensor(name, count) for name, count in tensors)
    return plain + tuple(WeightTensor(name, count, is_expert=True) for name, count in experts)


def stage_weights(model: ModelSpec, parallel: Parallelism, stage: int) -> tuple[WeightTensor, ...]:
    """Returns a stage's weights on one rank: embedding first, then layers, then last norm and output projection."""
    tensors: list[WeightTensor] = []
    vocabulary = -(-model.vocab // parallel.tensor) * model.hidden
    last = stage == parallel.pipeline - 1
    if stage == 0:
        tensors.append(WeightTensor("embedding", vocabulary))
        if not model.gated and model.max_position:
            tensors.append(WeightTensor("positions", model.max_position * model.hidden))
    for chunk in range(parallel.virtual_pipeline):
        for _ in stage_layers(stage, chunk, model.layers, parallel):
            tensors += layer_weights(model, parallel)
    if last:
        tensors.append(WeightTensor("norm", model.hidden * (1 if model.gated else 2)))
        if not model.tied_embeddings or parallel.pipeline > 1:
            tensors.append(WeightTensor("head", vocabulary))
    return tuple(tensors)


def replica_count(parallel: Parallelism, is_expert: bool) -> int:
    """Returns how many ranks hold the same weights (and share optimizer state when it is distributed)."""
    return parallel.data * parallel.context // (parallel.expert if is_expert else 1)


def shard_count(tensor: WeightTensor, parallel: Parallelism) -> int:
    """Returns the elements whose optimizer state this rank keeps."""
    if not parallel.distributed_optimizer:
        return tensor.element_count
    return -(-tensor.element_count // replica_count(parallel, tensor.is_expert))


def optimizer_block(low: Lowering, tensors: tuple[WeightTensor, ...]) -> Block:
    """Returns gradient norm, clipping, AdamW and the copy into the training type for this rank's part of the state.

    fp16 trains with a scaled loss: its gradients are checked for overflow and scaled back first. With a distributed
    optimizer a rank works on its part of the flat buffers, which holds about one in so many tensors; unfused, every
    tensor has its own kernels.
    """
    block, parallel = low.builder("optimizer"), low.parallel
    total = sum(shard_count(tensor, parallel) for tensor in tensors)
    ranks = replica_count(parallel, False) if parallel.distributed_optimizer else 1
    pieces = 1 if low.fusions.optimizer else max(-(-len(tensors) // ranks), 1)
    piece = max(total // pieces, 1)
    elements = np.full(len(low.lengths), piece, np.int64)
    shape = shape_text([piece])
    for _ in range(pieces if low.dtype is DType.FP16 else 0):
        table = catalogue.elementwise(elements, DType.FP32, inputs=1, cold=True)
        block.compute("ForeachNonFiniteCheckAndUnscale", TaskKind.VECTOR, table, shape=shape)
    for _ in range(pieces):
        block.compute("LpNormV2", TaskKind.VECTOR, catalogue.square_sum(elements), shape=shape)
    if parallel.tensor > 1:
        block.collective(CollectiveKind.ALL_REDUCE, GroupKind.TENSOR, FP32_BYTES)
    for _ in range(pieces):
        table = catalogue.elementwise(elements, DType.FP32, inputs=1)
        block.compute("Mul", TaskKind.VECTOR, table, shape=shape)
    for _ in range(pieces):
        block.compute("ApplyAdamWV2", TaskKind.VECTOR, catalogue.adamw(elements), shape=shape)
    for _ in range(pieces if low.dtype is not DType.FP32 else 0):
        table = catalogue.cast(elements, DType.FP32, low.dtype)
        block.compute("Cast", TaskKind.VECTOR, table, shape=shape)
    return block.finish()


def zero_gradients_block(low: Lowering, tensors: tuple[WeightTensor, ...]) -> Block:
    """Returns the clearing of the flat fp32 gradient buffer at the start of a step."""
    block = low.builder("forward")
    count = sum(tensor.element_count for tensor in tensors)
    table = catalogue.fill(np.full(len(low.lengths), count, np.int64), DType.FP32)
    block.compute("ZerosLike", TaskKind.VECTOR, table, shape=shape_text([count]))
    return block.finish()
