"""Attention: projections, rotary positions, the core (one kernel or its parts), forward and backward."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import OperatorTable, catalogue, matmul
from engine.workloads.blocks import BlockBuilder, GroupKind, shape_text
from engine.workloads.linear import add_linear
from engine.workloads.lowering import FP32_BYTES, Lowering, add_elementwise, add_widening
from engine.workloads.scenario import Recompute


def add_attention(block: BlockBuilder, low: Lowering, source: str, window: int) -> str:
    """Adds attention over ``source`` [tokens, hidden]; returns the name of the projected result (a partial sum).

    Keeps ``qkv`` and the core's tensors for the backward pass unless they are computed again there.
    """
    width = low.q_width + 2 * low.kv_width
    size = low.tokens * width * low.element_bytes
    add_linear(block, low, "qkv", (width, low.model.hidden), source, "qkv_raw")
    _add_positions(block, low, "qkv_raw", "qkv", size)
    core_source = _add_context_gather(block, low)
    add_core(block, low, core_source, window)
    add_linear(block, low, "projected", (low.model.hidden, low.q_width), "attention", "projected")
    return "projected"


def _add_positions(block: BlockBuilder, low: Lowering, source: str, target: str, size: Int64Array) -> None:
    """Adds per-head norms and rotary positions of queries and keys; the GPT family only lays heads out."""
    model = low.model
    heads = (low.q_width // model.head_dim, low.kv_width // model.head_dim)
    current = source
    if model.qk_norm:
        for name, count in zip("qk", heads, strict=True):
            table = catalogue.norm(low.tokens * count, model.head_dim, low.dtype)
            block.compute("RmsNorm", TaskKind.VECTOR, table, (current,), {}, shape=_heads_shape(low, count))
            del name
    if not model.gated:
        table = catalogue.copy(low.tokens * (low.q_width + 2 * low.kv_width), low.dtype)
        block.compute("Transpose", TaskKind.VECTOR, table, (current,), {target: size})
        return
    for index, count in enumerate(heads):
        rows, elements = low.tokens * count, low.tokens * count * model.head_dim
        written: dict[str, Int64Array | float] = {target: size} if index == 0 else {}
        reads = (current,) if index == 0 else (current, target)
        if low.fusions.rope:
            table = catalogue.rotary(rows, model.head_dim, low.dtype)
            name = "RotaryPositionEmbedding"
            block.compute(name, TaskKind.VECTOR, table, reads, written, shape=_heads_shape(low, count))
            continue
        part, whole = f"rotary{index}", _heads_shape(low, count)
        piece = elements * low.element_bytes
        add_elementwise(block, low, "Neg", elements // 2, reads, {f"{part}_n": piece // 2}, inputs=1)
        table = catalogue.copy(elements, low.dtype)
        block.compute("ConcatD", TaskKind.VECTOR, table, (f"{part}_n", current), {f"{part}_r": piece})
        add_elementwise(block, low, "Mul", elements, (current,), {f"{part}_c": piece}, inputs=1, shape=whole)
        add_elementwise(block, low, "Mul", elements, (f"{part}_r",), {f"{part}_s": piece}, inputs=1, shape=whole)
        add_elementwise(block, low, "Add", elements, (f"{part}_c", f"{part}_s"), written, shape=f"{whole};{whole}")


def _heads_shape(low: Lowering, count: int) -> str:
    return shape_text([low.queries[0], low.sequences, count, low.model.head_dim])


def _add_context_gather(block: BlockBuilder, low: Lowering) -> str:
    """Adds the gathering of keys and values over the context group; returns what the core reads."""
    if low.parallel.context == 1:
        return "qkv"
    size = 2 * low.sequences * low.lengths * low.kv_width * low.element_bytes
    name = "kv_gathered" if not block.writes("kv_gathered") else "kv_gathered_again"
    block.collective(CollectiveKind.ALL_GATHER, GroupKind.CONTEXT, size, ("qkv",), {name: size})
    return name


def add_core(block: BlockBuilder, low: Lowering, source: str, window: int) -> None:
    """Adds scores, softmax and their product with the values: reads ``qkv``, writes ``attention``."""
    out = low.tokens * low.q_width * low.element_bytes
    heads, kv_heads = low.q_width // low.model.head_dim, low.kv_width // low.model.head_dim
    if low.fusions.attention:
        table = catalogue.flash_attention(
            low.sequences, heads, kv_heads, low.queries, low.lengths, low.model.head_dim, low.dtype, window=window
        )
        if low.parallel.context > 1:
            table = _balanced(table)
        statistics = low.tokens * heads * 2 * 8 * FP32_BYTES
        writes: dict[str, Int64Array | float] = {"attention": out, "softmax_statistics": statistics}
        shape = shape_text([low.queries[0], low.sequences, low.q_width], [low.lengths[0], low.sequences, low.kv_width])
        block.compute("FlashAttentionScore", TaskKind.MIX, table, ("qkv", source), writes, shape=shape)
        return
    scores = low.sequences * heads * low.queries * low.lengths
    _add_batched(
        block, low, heads, low.lengths, low.model.head_dim, ("qkv", source), {"scores": scores * low.element_bytes}
    )
    probabilities = _add_softmax(block, low, scores, heads)
    _add_batched(block, low, heads, low.model.head_dim, low.lengths, (probabilities, "qkv", source), {"context": out})
    table = catalogue.copy(low.tokens * low.q_width, low.dtype)
    block.compute("Transpose", TaskKind.VECTOR, table, ("context",), {"attention": out})


def _balanced(table: OperatorTable) -> OperatorTable:
    """Returns causal attention of one context rank: with zigzag chunks every rank sees half of all keys on average.

    A rank's queries lie spread over the sequence, so its work is that of non-causal attention over half the keys.
    """
    return replace(table, n=np.maximum(table.n // 2, 1), causal=np.zeros(len(table), np.bool_))


def _add_batched(
    block: BlockBuilder,
    low: Lowering,
    heads: int,
    columns: Int64Array | int,
    summed: Int64Array | int,
    reads: tuple[str, ...],
    writes: dict[str, Int64Array | float],
) -> None:
    table = matmul(low.queries, columns, summed, low.dtype, batch=low.sequences * heads, family="batch_matmul")
    first = [int(np.ravel(size)[0]) for size in (low.queries, summed, columns)]
    batch = low.sequences * heads
    shape = shape_text([batch, *first[:2]], [batch, *first[1:]])
    block.compute("BatchMatMulV2", TaskKind.CUBE, table, reads, writes, shape=shape)


def _add_softmax(block: BlockBuilder, low: Lowering, scores: Int64Array, heads: int) -> str:
    """Adds scale, mask, softmax in fp32 and dropout; returns the name of the probabilities."""
    size, rows = scores * low.element_bytes, low.sequences * heads * low.queries
    shape = shape_text([low.sequences, heads, low.queries[0], low.lengths[0]])
    if low.fusions.softmax:
        table = catalogue.softmax(rows, low.lengths, low.dtype)
        block.compute("ScaledMaskedSoftmax", TaskKind.VECTOR, table, ("scores",), {"softmax": size}, shape=shape)
    else:
        wide = scores * FP32_BYTES
        add_elementwise(block, low, "Muls", scores, ("scores",), {"scaled": size}, inputs=1)
        add_elementwise(block, low, "MaskedFill", scores, ("scaled",), {"masked": size}, inputs=1)
        given = add_widening(block, low, "masked", "masked_f32", scores, shape)
        table = catalogue.softmax(rows, low.lengths, DType.FP32)
        result = "softmax" if low.dtype is DType.FP32 else "softmax_f32"
        block.compute("SoftmaxV2", TaskKind.VECTOR, table, (given,), {result: wide}, shape=shape)
        if result != "softmax":
            cast = catalogue.cast(scores, DType.FP32, low.dtype)
            block.compute("Cast", TaskKind.VECTOR, cast, (result,), {"softmax": size}, shape=shape)
    if not low.has_dropout:
        return "softmax"
    table = catalogue.dropout(scores, low.dtype)
    writes: dict[str, Int64Array | float] = {"dropped": size, "softmax_mask": scores}
    block.compute("DropOutDoMask", TaskKind.VECTOR, table, ("softmax",), writes, shape=shape)
    return "dropped"


def core_tensors(low: Lowering) -> tuple[str, ...]:
    """Returns the tensors of the core that its backward pass reads, beside ``qkv`` and ``attention``."""
    if low.fusions.attention:
        return ("softmax_statistics",)
    if low.fusions.softmax or low.dtype is DType.FP32:
        return ("softmax", "dropped", "softmax_mask") if low.has_dropout else ("softmax",)
    # Autograd keeps the fp32 result of the softmax beside what the product with the values reads.
    return ("softmax_f32", "dropped", "softmax_mask") if low.has_dropout else ("softmax_f32", "softmax")


def kept_core_tensors(low: Lowering) -> tuple[str, ...]:
    """Returns those of them that live until the backward pass."""
    keeps = low.recompute in (Recompute.NONE, Recompute.ACTIVATION) or low.fusions.attention
    return core_tensors(low) if keeps else ()


def add_attention_backward(block: BlockBuilder, low: Lowering, window: int) -> None:
    """Adds the core's derivative and that of the positions: reads ``attention_g``, writes ``qkv_g``."""
    heads = low.q_width // low.model.head_dim
    kv_heads = low.kv_width // low.model.head_dim
    width = low.q_width + 2 * low.kv_width
    size = low.tokens * width * low.element_bytes
    source = _add_context_gather(block, low)
    if low.fusions.attention:
        table = catalogue.flash_attention(
            low.sequences, heads, kv_heads, low.queries, low.lengths, low.model.head_dim, low.dtype,
            window=window, grad=True,
        )  # fmt: skip
        if low.parallel.context > 1:
            table = _balanced(table)
        reads = ("attention_g", "qkv", source, "attention", "softmax_statistics")
        shape = shape_text([low.queries[0], low.sequences, low.q_width], [low.lengths[0], low.sequences, low.kv_width])
        block.compute("FlashAttentionScoreGrad", TaskKind.MIX, table, reads, {"core_g": size}, shape=shape)
    else:
        _add_core_backward_parts(block, low, heads, source, size)
    _add_context_reduction(block, low)
    _add_positions_backward(block, low, size)


def _add_core_backward_parts(block: BlockBuilder, low: Lowering, heads: int, source: str, size: Int64Array) -> None:
    scores = low.sequences * heads * low.queries * low.lengths
    bytes_of, head = scores * low.element_bytes, low.model.head_dim
    dropped = "dropped" if low.has_dropout else "softmax"
    _add_batched(block, low, heads, low.lengths, head, ("attention_g", "qkv", source), {"probability_g": bytes_of})
    _add_batched(block, low, heads, head, low.lengths, ("attention_g", dropped), {"value_g": size // 3})
    gradient = "probability_g"
    if low.has_dropout:
        table = catalogue.dropout(scores, low.dtype)
        block.compute("DropOutDoMask", TaskKind.VECTOR, table, (gradient, "softmax_mask"), {"softmax_g": bytes_of})
        gradient = "softmax_g"
    rows = low.sequences * heads * low.queries
    if low.fusions.softmax:
        table = catalogue.softmax(rows, low.lengths, low.dtype, grad=True)
        block.compute("ScaledMaskedSoftmaxGrad", TaskKind.VECTOR, table, (gradient, "softmax"), {"score_g": bytes_of})
    else:
        given = add_widening(block, low, gradient, "softmax_g32", scores)
        table = catalogue.softmax(rows, low.lengths, DType.FP32, grad=True)
        result = "masked_g" if low.dtype is DType.FP32 else "score_g32"
        reads = (given, core_tensors(low)[0])
        shape = shape_text(*[[low.sequences, heads, low.queries[0], low.lengths[0]]] * 2)
        block.compute("SoftmaxGrad", TaskKind.VECTOR, table, reads, {result: scores * FP32_BYTES}, shape=shape)
        if result != "masked_g":
            cast = catalogue.cast(scores, DType.FP32, low.dtype)
            block.compute("Cast", TaskKind.VECTOR, cast, (result,), {"masked_g": bytes_of})
        add_elementwise(block, low, "MaskedFill", scores, ("masked_g",), {"scaled_g": bytes_of}, inputs=1)
        add_elementwise(block, low, "Muls", scores, ("scaled_g",), {"score_g": bytes_of}, inputs=1)
    _add_batched(block, low, heads, head, low.lengths, ("score_g", "qkv", source), {"query_g": size // 3})
    _add_batched(block, low, heads, head, low.lengths, ("score_g", "qkv"), {"key_g": size // 3})
    table = catalogue.copy(low.tokens * (low.q_width + 2 * low.kv_width), low.dtype)
    block.compute("ConcatD", TaskKind.VECTOR, table, ("query_g", "key_g", "value_g"), {"core_g": size})


def _add_context_reduction(block: BlockBuilder, low: Lowering) -> None:
    if low.parallel.context > 1:
        size = 2 * low.sequences * low.lengths * low.kv_width * low.element_bytes
        block.collective(CollectiveKind.REDUCE_SCATTER, GroupKind.CONTEXT, size, ("core_g",))


def _add_positions_backward(block: BlockBuilder, low: Lowering, size: Int64Array) -> None:
    model = low.model
    if not model.gated:
        table = catalogue.copy(low.tokens * (low.q_width + 2 * low.kv_width), low.dtype)
        block.compute("Transpose", TaskKind.VECTOR, table, ("core_g",), {"qkv_g": size})
        return
    heads = (low.q_width // model.head_dim, low.kv_width // model.head_dim)
    for index, count in enumerate(heads):
        rows, elements = low.tokens * count, low.tokens * count * model.head_dim
        written: dict[str, Int64Array | float] = {"qkv_g": size} if index == 0 else {}
        reads = ("core_g",) if index == 0 else ("core_g", "qkv_g")
        if low.fusions.rope:
            table = catalogue.rotary(rows, model.head_dim, low.dtype, grad=True)
            block.compute(
                "RotaryPositionEmbeddingGrad", TaskKind.VECTOR, table, reads, written, shape=_heads_shape(low, count)
            )
        else:
            part, piece, whole = f"rotary_g{index}", elements * low.element_bytes, _heads_shape(low, count)
            add_elementwise(block, low, "Mul", elements, reads, {f"{part}_c": piece}, inputs=1, shape=whole)
            add_elementwise(block, low, "Mul", elements, reads, {f"{part}_s": piece}, inputs=1, shape=whole)
            add_elementwise(block, low, "Neg", elements // 2, (f"{part}_s",), {f"{part}_n": piece // 2}, inputs=1)
            table = catalogue.copy(elements, low.dtype)
            block.compute("ConcatD", TaskKind.VECTOR, table, (f"{part}_n", f"{part}_s"), {f"{part}_r": piece})
            add_elementwise(block, low, "Add", elements, (f"{part}_c", f"{part}_r"), written, shape=f"{whole};{whole}")
        if model.qk_norm:
            table = catalogue.norm_grad(rows, model.head_dim, low.dtype)
            block.compute("RmsNormGrad", TaskKind.VECTOR, table, ("core_g",), {})
