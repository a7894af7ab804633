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
from engine.workloads.feed_forward import (
    add_activation_again,
    add_feed_forward,
    add_feed_forward_backward,
    kept_activation_tensors,
)
from engine.workloads.linear import add_gathered, add_linear, add_linear_backward, saved_input
from engine.workloads.lowering import (
    FP32_BYTES,
    Lowering,
    add_elementwise,
    add_gather,
    add_reduction,
    add_widening,
)
from engine.workloads.norms import add_norm, add_norm_backward, add_residual_norm, kept_norm_tensors
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
    elif low.recompute is Recompute.ACTIVATION:
        add_activation_again(block, low)
    _add_feed_forward_gradients(block, low)
    _add_attention_gradients(block, low, window)
    block.keep("g")
    block.release("x", OUTPUT_GRADIENT)
    if low.recompute is not Recompute.FULL:
        block.release(*_kept_tensors(low))
    return block.finish()


def _kept_tensors(low: Lowering) -> tuple[str, ...]:
    masks = ("mask1", "mask2") if low.has_dropout else ()
    unfused = kept_norm_tensors(low, "n2", with_residual=True)
    activated = kept_activation_tensors(low) if low.recompute is not Recompute.ACTIVATION else ()
    if not low.model.experts:
        inputs = (saved_input(low, "up", "n2"), "up", *activated)
        return (*_kept_attention(low), *unfused, *inputs, *masks)
    routed, returned = ("expert_input", "returned") if low.parallel.expert > 1 else ("permuted", "expert_output")
    inputs = (saved_input(low, "experts", routed), "up", *activated)
    return (*_kept_attention(low), *unfused, "n2", "routing", *inputs, returned, *masks)


def _kept_attention(low: Lowering) -> tuple[str, ...]:
    """Returns what the backward pass reads of the first half of a layer; flash attention reads its own wide result."""
    result = saved_input(low, "projected", "attention")
    wide = ("attention",) if low.fusions.attention and result != "attention" else ()
    norm = kept_norm_tensors(low, "n1")
    return (*norm, saved_input(low, "qkv", "n1"), "qkv", result, *wide, *kept_core_tensors(low), "x_mid")


def _add_layer(block: BlockBuilder, low: Lowering, window: int, output: str) -> None:
    add_norm(block, low, "x", "n1")
    width = low.q_width + 2 * low.kv_width
    partial = add_attention(block, low, add_gathered(block, low, "qkv", width, "n1"), window)
    summed = add_reduction(block, low, partial, "attention_sum")
    if low.fuses_residual_norm:
        update = _add_dropout(block, low, summed, "mask1") if low.has_dropout else summed
        add_residual_norm(block, low, update, "x", "x_mid", "n2")
    else:
        _add_residual(block, low, summed, "x", "x_mid", "mask1")
        add_norm(block, low, "x_mid", "n2")
    partial = add_feed_forward(block, low, "n2")
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
    dropped = _add_dropout(block, low, update, mask)
    add_elementwise(block, low, "Add", elements, (dropped, stream), {target: low.stream_bytes})


def _add_dropout(block: BlockBuilder, low: Lowering, update: str, mask: str) -> str:
    """Adds the dropout of an update of the residual stream; returns the name of the result."""
    elements = low.stream_tokens * low.model.hidden
    writes: dict[str, Int64Array | float] = {f"{mask}_out": low.stream_bytes, mask: elements}
    table = catalogue.dropout(elements, low.dtype)
    shape = shape_text([low.stream_tokens[0], low.model.hidden])
    block.compute("DropOutDoMask", TaskKind.VECTOR, table, (update,), writes, shape=shape)
    return f"{mask}_out"


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
    add_norm_backward(block, low, "n2", "x_mid", "x_mid_n", with_residual=True)
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
    add_norm_backward(block, low, "n1", "x", "x_n")
    elements = low.stream_tokens * hidden
    add_elementwise(block, low, "Add", elements, ("x_n", "x_mid_g"), {"g": low.stream_bytes})


def embedding_forward(low: Lowering) -> Block:
    """Returns the token embedding (and learned positions, dropout): writes ``x`` of the first layer."""
    block = low.builder("forward")
    table = catalogue.gather(low.tokens, low.model.hidden, low.dtype)
    shape = shape_text([low.model.vocab // low.parallel.tensor, low.model.hidden], [low.tokens[0]])
    last = "x" if low.parallel.tensor == 1 and not low.has_dropout else "embedded"
    types = (low.dtype, DType.INT64)
    block.compute("GatherV2", TaskKind.VECTOR, table, (), {last: low.full_bytes}, shape=shape, types=types)
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
    source = add_gathered(block, low, "head", columns, "nf")
    norm, kept, size = kept_norm_tensors(low, "nf"), saved_input(low, "head", "nf"), low.tokens * columns
    add_linear(block, low, "head", (columns, low.model.hidden), source, "logits")
    shape = shape_text([low.tokens[0], columns])
    if low.fusions.cross_entropy:
        table = catalogue.cross_entropy(low.tokens, columns)
        block.compute(
            "CrossEntropyLoss", TaskKind.VECTOR, table, ("logits",), {"loss": low.tokens * FP32_BYTES}, shape=shape
        )
        block.keep(*norm, kept, "logits")
        return block.finish()
    logits = add_widening(block, low, "logits", "probabilities", size, shape)
    reduce = catalogue.vector_operator("reduce", low.tokens, np.full(len(size), columns), DType.FP32, FP32_BYTES, 0)
    for operation in ("ReduceMaxD", "Sub", "Exp", "ReduceSumD"):
        if operation.startswith("Reduce"):
            block.compute(operation, TaskKind.VECTOR, reduce, (logits,), shape=shape)
            _add_small_reduction(block, low)
        else:
            add_elementwise(block, low, operation, size, (logits,), {}, inputs=1, dtype=DType.FP32)
    add_elementwise(block, low, "Div", size, (logits,), {}, inputs=1, dtype=DType.FP32)
    block.keep(*norm, kept, logits)
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
        block.release(saved_input(low, "head", "nf"), "logits")
    else:
        kept = "logits" if low.dtype is DType.FP32 else "probabilities"
        scaled: dict[str, Int64Array | float] = {"logits_g": narrow} if low.dtype is DType.FP32 else {}
        add_elementwise(block, low, "Mul", size, (kept,), scaled, inputs=1, dtype=DType.FP32)
        if low.dtype is not DType.FP32:
            cast = catalogue.cast(size, DType.FP32, low.dtype)
            block.compute("Cast", TaskKind.VECTOR, cast, (kept,), {"logits_g": narrow})
        block.release(saved_input(low, "head", "nf"), kept)
    add_linear_backward(block, low, "head", columns, low.model.hidden, "logits_g", "nf", "nf_g", column_parallel=True)
    add_norm_backward(block, low, "nf", OUTPUT, OUTPUT_GRADIENT)
    block.keep(OUTPUT_GRADIENT)
    block.release(OUTPUT, *kept_norm_tensors(low, "nf"))
    return block.finish()
