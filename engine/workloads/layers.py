"""Decoder layers, embedding and loss as blocks, forward and backward."""

import numpy as np

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import catalogue
from engine.workloads.attention import (
    add_attention,
    add_attention_backward,
    add_core,
    core_tensors,
    kept_core_tensors,
)
from engine.workloads.blocks import NEXT, Block, BlockBuilder, GroupKind, shape_text
from engine.workloads.feed_forward import add_feed_forward, add_feed_forward_backward
from engine.workloads.lowering import (
    FP32_BYTES,
    Lowering,
    add_elementwise,
    add_gather,
    add_linear_backward,
    add_matmul,
    add_reduction,
)
from engine.workloads.norms import add_norm, add_norm_backward
from engine.workloads.scenario import Recompute

OUTPUT, OUTPUT_GRADIENT = f"x{NEXT}", f"g{NEXT}"


def layer_forward(low: Lowering, window: int) -> Block:
    """Returns a layer's forward pass: ``x`` → ``x`` of the next layer, keeping what its backward pass reads."""
    block = low.builder("forward")
    _add_layer(block, low, window, OUTPUT)
    block.keep(OUTPUT)
    if low.recompute is not Recompute.FULL:
        block.keep(*_kept_tensors(low))
    return block.finish()


def layer_backward(low: Lowering, window: int) -> Block:
    """Returns a layer's backward pass: ``g`` of the next layer → ``g``, after computing again what was not kept."""
    block = low.builder("backward")
    if low.recompute is Recompute.FULL:
        _add_layer(block, low, window, "x_again")
    elif low.recompute is Recompute.SELECTIVE and not low.fusions.attention:
        add_core_again(block, low, window)
    _add_feed_forward_gradients(block, low)
    _add_attention_gradients(block, low, window)
    block.keep("g")
    block.release("x", OUTPUT_GRADIENT)
    if low.recompute is not Recompute.FULL:
        block.release(*_kept_tensors(low))
    return block.finish()


def _kept_tensors(low: Lowering) -> tuple[str, ...]:
    masks = ("mask1", "mask2") if low.has_dropout else ()
    experts: tuple[str, ...] = ()
    if low.model.experts:
        experts = ("routing", "permuted", "expert_output")
        if low.parallel.expert > 1:
            experts = ("routing", "expert_input", "returned")
    return ("n1", "qkv", "attention", *kept_core_tensors(low), "x_mid", "n2", "up", "activated", *experts, *masks)


def _add_layer(block: BlockBuilder, low: Lowering, window: int, output: str) -> None:
    add_norm(block, low, "x", "n1")
    add_gather(block, low, "n1", "n1_full")
    partial = add_attention(block, low, "n1_full" if low.splits_sequence else "n1", window)
    summed = add_reduction(block, low, partial, "attention_sum")
    _add_residual(block, low, summed, "x", "x_mid", "mask1")
    add_norm(block, low, "x_mid", "n2")
    add_gather(block, low, "n2", "n2_full")
    partial = add_feed_forward(block, low, "n2_full" if low.splits_sequence else "n2")
    summed = add_reduction(block, low, partial, "ffn_sum")
    _add_residual(block, low, summed, "x_mid", output, "mask2")


def add_core_again(block: BlockBuilder, low: Lowering, window: int) -> None:
    """Adds the attention core a second time; its result was kept, its inner tensors were not."""
    inner = low.builder("backward")
    add_core(inner, low, "qkv", window)
    block.include(inner, rename={"attention": "attention_again"}, alive=core_tensors(low))


def _add_residual(block: BlockBuilder, low: Lowering, update: str, stream: str, target: str, mask: str) -> None:
    """Adds the update to the residual stream, after dropout in the GPT family."""
    elements = low.stream_tokens * low.model.hidden
    shape = shape_text([low.stream_tokens[0], low.model.hidden])
    if not low.has_dropout:
        add_elementwise(block, low, "Add", elements, (update, stream), {target: low.stream_bytes})
        return
    if low.fusions.dropout_add:
        table = catalogue.elementwise(elements, low.dtype, inputs=2)
        writes: dict[str, Int64Array | float] = {target: low.stream_bytes, mask: elements}
        block.compute("BiasDropoutAdd", TaskKind.VECTOR, table, (update, stream), writes, shape=shape)
        return
    table = catalogue.dropout(elements, low.dtype)
    writes = {f"{mask}_out": low.stream_bytes, mask: elements}
    block.compute("DropOutDoMask", TaskKind.VECTOR, table, (update,), writes, shape=shape)
    add_elementwise(block, low, "Add", elements, (f"{mask}_out", stream), {target: low.stream_bytes})


def _add_residual_gradient(block: BlockBuilder, low: Lowering, gradient: str, mask: str) -> str:
    """Adds the derivative of the dropout and the gathering for the row-parallel matrix; returns the result's name."""
    current = gradient
    if low.has_dropout:
        table = catalogue.dropout(low.stream_tokens * low.model.hidden, low.dtype)
        block.compute("DropOutDoMask", TaskKind.VECTOR, table, (gradient, mask), {f"{mask}_g": low.stream_bytes})
        current = f"{mask}_g"
    if low.splits_sequence:
        block.collective(
            CollectiveKind.ALL_GATHER, GroupKind.TENSOR, low.full_bytes, (current,), {f"{mask}_full": low.full_bytes}
        )
        current = f"{mask}_full"
    return current


def _add_feed_forward_gradients(block: BlockBuilder, low: Lowering) -> None:
    gradient = _add_residual_gradient(block, low, OUTPUT_GRADIENT, "mask2")
    add_feed_forward_backward(block, low, gradient, "n2", "n2_g")
    add_norm_backward(block, low, "n2_g", "x_mid", "x_mid_n")
    elements = low.stream_tokens * low.model.hidden
    add_elementwise(block, low, "Add", elements, ("x_mid_n", OUTPUT_GRADIENT), {"x_mid_g": low.stream_bytes})


def _add_attention_gradients(block: BlockBuilder, low: Lowering, window: int) -> None:
    hidden = low.model.hidden
    gradient = _add_residual_gradient(block, low, "x_mid_g", "mask1")
    add_linear_backward(
        block, low, "projected", hidden, low.q_width, gradient, "attention", "attention_g", column_parallel=False
    )
    add_attention_backward(block, low, window)
    width = low.q_width + 2 * low.kv_width
    add_linear_backward(block, low, "qkv", width, hidden, "qkv_g", "n1", "n1_g", column_parallel=True)
    add_norm_backward(block, low, "n1_g", "x", "x_n")
    elements = low.stream_tokens * hidden
    add_elementwise(block, low, "Add", elements, ("x_n", "x_mid_g"), {"g": low.stream_bytes})


def embedding_forward(low: Lowering) -> Block:
    """Returns the token embedding (and learned positions, dropout): writes ``x`` of the first layer."""
    block = low.builder("forward")
    table = catalogue.gather(low.tokens, low.model.hidden, low.dtype)
    shape = shape_text([low.model.vocab // low.parallel.tensor, low.model.hidden], [low.tokens[0]])
    last = "x" if low.parallel.tensor == 1 and not low.has_dropout else "embedded"
    block.compute("GatherV2", TaskKind.VECTOR, table, (), {last: low.full_bytes}, shape=shape)
    if low.parallel.tensor > 1:
        summed = add_reduction(block, low, "embedded", "embedded_sum")
        last = summed
    if low.has_dropout:
        elements = low.stream_tokens * low.model.hidden
        add_elementwise(block, low, "Add", elements, (last,), {"positioned": low.stream_bytes}, inputs=1)
        table = catalogue.dropout(elements, low.dtype)
        writes: dict[str, Int64Array | float] = {"x": low.stream_bytes, "mask0": elements}
        block.compute("DropOutDoMask", TaskKind.VECTOR, table, ("positioned",), writes)
        block.keep("x", "mask0")
    elif last != "x":
        block.rename(last, "x")
        block.keep("x")
    else:
        block.keep("x")
    return block.finish()


def embedding_backward(low: Lowering) -> Block:
    """Returns the embedding's derivative: consumes ``g`` of the first layer."""
    block = low.builder("backward")
    current = "g"
    if low.has_dropout:
        table = catalogue.dropout(low.stream_tokens * low.model.hidden, low.dtype)
        block.compute("DropOutDoMask", TaskKind.VECTOR, table, ("g", "mask0"), {"mask0_g": low.stream_bytes})
        block.release("mask0")
        current = "mask0_g"
    add_gather(block, low, current, "g_full")
    table = catalogue.scatter_add(low.tokens, low.model.hidden, low.dtype)
    reads = ("g_full" if low.splits_sequence else current,)
    block.compute("EmbeddingDenseGrad", TaskKind.VECTOR, table, reads)
    block.release("g")
    return block.finish()


def loss_forward(low: Lowering) -> Block:
    """Returns last norm, output projection and loss over this rank's part of the vocabulary."""
    block, columns = low.builder("forward"), -(-low.model.vocab // low.parallel.tensor)
    add_norm(block, low, OUTPUT, "nf")
    add_gather(block, low, "nf", "nf_full")
    source = "nf_full" if low.splits_sequence else "nf"
    size = low.tokens * columns
    add_matmul(block, low, low.tokens, columns, low.model.hidden, (source,), {"logits": size * low.element_bytes})
    shape = shape_text([low.tokens[0], columns])
    if low.fusions.cross_entropy:
        table = catalogue.cross_entropy(low.tokens, columns)
        block.compute(
            "CrossEntropyLoss", TaskKind.VECTOR, table, ("logits",), {"loss": low.tokens * FP32_BYTES}, shape=shape
        )
        block.keep("nf", "logits")
        return block.finish()
    wide = size * FP32_BYTES
    cast = catalogue.cast(size, low.dtype, DType.FP32)
    block.compute("Cast", TaskKind.VECTOR, cast, ("logits",), {"probabilities": wide}, shape=shape)
    reduce = catalogue.vector_operator("reduce", low.tokens, np.full(len(size), columns), DType.FP32, FP32_BYTES, 0)
    for operation in ("ReduceMaxD", "Sub", "Exp", "ReduceSumD"):
        if operation.startswith("Reduce"):
            block.compute(operation, TaskKind.VECTOR, reduce, ("probabilities",), shape=shape)
            _add_small_reduction(block, low)
        else:
            add_elementwise(block, low, operation, size, ("probabilities",), {}, inputs=1, dtype=DType.FP32)
    add_elementwise(block, low, "Div", size, ("probabilities",), {}, inputs=1, dtype=DType.FP32)
    block.keep("nf", "probabilities")
    return block.finish()


def _add_small_reduction(block: BlockBuilder, low: Lowering) -> None:
    if low.parallel.tensor > 1:
        block.collective(CollectiveKind.ALL_REDUCE, GroupKind.TENSOR, low.tokens * FP32_BYTES)


def loss_backward(low: Lowering) -> Block:
    """Returns the derivative: writes ``g`` of the layer after the last."""
    block, columns = low.builder("backward"), -(-low.model.vocab // low.parallel.tensor)
    size = low.tokens * columns
    narrow = size * low.element_bytes
    if low.fusions.cross_entropy:
        table = catalogue.cross_entropy(low.tokens, columns, grad=True)
        block.compute("CrossEntropyLossGrad", TaskKind.VECTOR, table, ("logits",), {"logits_g": narrow})
        block.release("nf", "logits")
    else:
        add_elementwise(block, low, "Mul", size, ("probabilities",), {}, inputs=1, dtype=DType.FP32)
        cast = catalogue.cast(size, DType.FP32, low.dtype)
        block.compute("Cast", TaskKind.VECTOR, cast, ("probabilities",), {"logits_g": narrow})
        block.release("nf", "probabilities")
    add_linear_backward(block, low, "head", columns, low.model.hidden, "logits_g", "nf", "nf_g", column_parallel=True)
    add_norm_backward(block, low, "nf_g", OUTPUT, OUTPUT_GRADIENT)
    block.keep(OUTPUT_GRADIENT)
    block.release(OUTPUT)
    return block.finish()
