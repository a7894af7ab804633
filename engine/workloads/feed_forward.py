"""Feed-forward blocks: dense (SwiGLU or GELU) and mixtures of experts, forward and backward."""

import numpy as np

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import catalogue, grouped_matmul, matmul
from engine.workloads.blocks import BlockBuilder, GroupKind, shape_text
from engine.workloads.linear import (
    add_gathered,
    add_linear,
    add_linear_backward,
    add_quantized,
    narrow_dtype,
    quantized_name,
    saved_input,
)
from engine.workloads.lowering import (
    FP32_BYTES,
    Lowering,
    add_elementwise,
    add_gather,
    add_matmul,
)

INDEX_BYTES = 8
"""Of an int64 index."""


def up_width(low: Lowering) -> int:
    """Returns the width of this rank's first feed-forward matrix: gate and up side by side."""
    return low.ffn * (2 if low.model.gated else 1)


def add_feed_forward(block: BlockBuilder, low: Lowering, source: str) -> str:
    """Adds the block over ``source``, the normed residual stream; returns the name of its result (a partial sum)."""
    if low.model.experts:
        add_gather(block, low, source, f"{source}_full")
        return _add_experts(block, low, f"{source}_full" if low.splits_sequence else source)
    width = up_width(low)
    add_linear(block, low, "up", (width, low.model.hidden), add_gathered(block, low, "up", width, source), "up")
    _add_activation(block, low, low.tokens)
    add_linear(block, low, "down", (low.model.hidden, low.ffn), "activated", "down")
    return "down"


def _add_activation(block: BlockBuilder, low: Lowering, rows: Int64Array) -> None:
    """Adds the activation ``up`` → ``activated``: one kernel, or the four an unfused SwiGLU is made of."""
    size = rows * low.ffn * low.element_bytes
    shape = shape_text([rows[0], up_width(low)])
    if not low.model.gated:
        table = catalogue.gelu(rows, low.ffn, low.dtype)
        block.compute("Gelu", TaskKind.VECTOR, table, ("up",), {"activated": size}, shape=shape)
    elif low.fusions.swiglu:
        table = catalogue.swiglu(rows, low.ffn, low.dtype)
        block.compute("SwiGlu", TaskKind.VECTOR, table, ("up",), {"activated": size}, shape=shape)
    else:
        table = catalogue.copy(rows * low.ffn, low.dtype)
        for part in ("gate", "linear"):
            block.compute("Slice", TaskKind.VECTOR, table, ("up",), {part: size}, shape=shape)
        add_elementwise(block, low, "Swish", rows * low.ffn, ("gate",), {"silu": size}, inputs=1)
        add_elementwise(block, low, "Mul", rows * low.ffn, ("silu", "linear"), {"activated": size})


def kept_activation_tensors(low: Lowering) -> tuple[str, ...]:
    """Returns what is kept after ``up``: the result as the next product reads it, and a factor of an unfused SwiGLU."""
    result = saved_input(low, "experts" if low.model.experts else "down", "activated")
    return (result, "silu") if low.model.gated and not low.fusions.swiglu else (result,)


def add_activation_again(block: BlockBuilder, low: Lowering) -> None:
    """Adds the activation a second time, from ``up``, which was kept."""
    rows, name = (routed_rows(low), "experts") if low.model.experts else (low.tokens, "down")
    _add_activation(block, low, rows)
    if narrow_dtype(low, name) is not None:
        add_quantized(block, low, "activated", quantized_name("activated"), rows, low.ffn)


def _add_activation_backward(block: BlockBuilder, low: Lowering, rows: Int64Array) -> None:
    """Adds its derivative ``activated_g`` → ``up_g``."""
    size, wide = rows * low.ffn * low.element_bytes, rows * up_width(low) * low.element_bytes
    shape = shape_text([rows[0], up_width(low)])
    if not low.model.gated:
        table = catalogue.gelu_grad(rows, low.ffn, low.dtype)
        block.compute("GeluGrad", TaskKind.VECTOR, table, ("activated_g", "up"), {"up_g": wide}, shape=shape)
    elif low.fusions.swiglu:
        table = catalogue.swiglu_grad(rows, low.ffn, low.dtype)
        block.compute("SwiGluGrad", TaskKind.VECTOR, table, ("activated_g", "up"), {"up_g": wide}, shape=shape)
    else:
        elements = rows * low.ffn
        add_elementwise(block, low, "Mul", elements, ("activated_g", "silu"), {"linear_g": size})
        add_elementwise(block, low, "Mul", elements, ("activated_g", "up"), {"silu_g": size})
        add_elementwise(block, low, "SwishGrad", elements, ("silu_g", "up"), {"gate_g": size})
        table = catalogue.copy(2 * elements, low.dtype)
        block.compute("ConcatD", TaskKind.VECTOR, table, ("gate_g", "linear_g"), {"up_g": wide}, shape=shape)


def add_feed_forward_backward(block: BlockBuilder, low: Lowering, gradient: str, source: str, target: str) -> None:
    """Adds the derivative: ``gradient`` [tokens, hidden] → ``target``; ``source`` is the kept input."""
    if low.model.experts:
        _add_experts_backward(block, low, gradient, source, target)
        return
    hidden = low.model.hidden
    add_linear_backward(
        block, low, "down", hidden, low.ffn, gradient, "activated", "activated_g", column_parallel=False
    )
    _add_activation_backward(block, low, low.tokens)
    add_linear_backward(block, low, "up", up_width(low), hidden, "up_g", source, target, column_parallel=True)


def routed_rows(low: Lowering) -> Int64Array:
    """Returns int64: rows the experts of this rank compute, with tokens spread evenly."""
    return low.tokens * low.model.top_k


def _local_experts(low: Lowering) -> int:
    return low.model.experts // low.parallel.expert


def _add_exchange(block: BlockBuilder, low: Lowering, source: str, target: str) -> str:
    """Adds the exchange of rows between the ranks that share the experts; returns the name of the result."""
    if low.parallel.expert == 1:
        return source
    size = routed_rows(low) * low.model.hidden * low.element_bytes
    block.collective(CollectiveKind.ALL_TO_ALL, GroupKind.EXPERT, size, (source,), {target: size})
    return target


_ROUTING_KERNELS = {
    "permute": ("MoeTokenPermute", "GatherElements", False),
    "unpermute": ("MoeTokenUnpermute", "ScatterElementsV2", True),
    "unpermute_grad": ("MoeTokenUnpermuteGrad", "GatherElements", False),
    "permute_grad": ("MoeTokenPermuteGrad", "ScatterElementsV2", True),
}
"""Fused kernel, kernel without fusion, and whether it adds to its output."""


def _add_routing(
    block: BlockBuilder,
    low: Lowering,
    what: str,
    reads: tuple[str, ...],
    writes: dict[str, Int64Array | float],
) -> None:
    """Adds what takes tokens to their experts or back: row by row in one kernel, or element by element.

    Without the fused kernels Megatron-LM's dispatchers expand the int64 index of a row to all its elements.
    """
    fused, plain, adds = _ROUTING_KERNELS[what]
    rows, hidden = routed_rows(low), low.model.hidden
    if low.fusions.expert_routing:
        priced = catalogue.scatter_add if adds else catalogue.gather
        block.compute(fused, TaskKind.VECTOR, priced(rows, hidden, low.dtype), reads, writes)
        return
    size = low.element_bytes
    table = catalogue.vector_operator(
        "element_index", 1, rows * hidden, low.dtype, INDEX_BYTES + size * (2 if adds else 1), size
    )
    block.compute(plain, TaskKind.VECTOR, table, reads, writes, shape=shape_text([rows[0], hidden], [rows[0], hidden]))


def _narrowed(block: BlockBuilder, low: Lowering, tensor: str, width: int) -> str:
    """Adds the quantising of routed rows where the experts' products are narrow; returns what they multiply."""
    if narrow_dtype(low, "experts") is None:
        return tensor
    return add_quantized(block, low, tensor, quantized_name(tensor), routed_rows(low), width)


def _add_grouped(
    block: BlockBuilder,
    low: Lowering,
    columns: int,
    summed: int,
    reads: tuple[str, ...],
    writes: dict[str, Int64Array | float],
) -> None:
    rows, dtype = routed_rows(low), narrow_dtype(low, "experts")
    if dtype is not None:
        add_quantized(block, low, "", f"{next(iter(writes))}_w_q", _local_experts(low) * columns, summed)
    table = grouped_matmul(
        _local_experts(low), rows, columns, summed, dtype or low.dtype, out_bytes_per_element=low.element_bytes
    )
    shape = shape_text([rows[0], summed], [_local_experts(low), summed, columns])
    block.compute("GroupedMatmul", TaskKind.CUBE, table, reads, writes, shape=shape)


def _add_experts(block: BlockBuilder, low: Lowering, source: str) -> str:
    model, rows = low.model, routed_rows(low)
    size = rows * model.hidden * low.element_bytes
    logits = low.tokens * model.experts * low.element_bytes
    add_matmul(block, low, low.tokens, model.experts, model.hidden, (source,), {"router": logits})
    table = catalogue.top_k_routing(low.tokens, model.experts)
    choice = low.tokens * model.top_k * 8
    block.compute("MoeGatingTopKSoftmax", TaskKind.VECTOR, table, ("router",), {"routing": choice})
    _add_routing(block, low, "permute", (source, "routing"), {"permuted": size})
    given = _add_exchange(block, low, "permuted", "expert_input")
    given = _narrowed(block, low, given, model.hidden)
    wide = rows * up_width(low) * low.element_bytes
    _add_grouped(block, low, up_width(low), model.hidden, (given,), {"up": wide})
    _add_activation(block, low, rows)
    activated = _narrowed(block, low, "activated", low.ffn)
    _add_grouped(block, low, model.hidden, low.ffn, (activated,), {"expert_output": size})
    returned = _add_exchange(block, low, "expert_output", "returned")
    _add_routing(block, low, "unpermute", (returned, "routing"), {"down": low.full_bytes})
    return "down"


def _add_experts_backward(block: BlockBuilder, low: Lowering, gradient: str, source: str, target: str) -> None:
    model, rows = low.model, routed_rows(low)
    size = rows * model.hidden * low.element_bytes
    kept = "returned" if low.parallel.expert > 1 else "expert_output"
    _add_routing(block, low, "unpermute_grad", (gradient, "routing", kept), {"output_g": size})
    given = _add_exchange(block, low, "output_g", "output_gx")
    given = _narrowed(block, low, given, model.hidden)
    half = rows * low.ffn * low.element_bytes
    _add_grouped(block, low, low.ffn, model.hidden, (given,), {"activated_g": half})
    _add_expert_weights(block, low, model.hidden, low.ffn, (given, saved_input(low, "experts", "activated")))
    _add_activation_backward(block, low, rows)
    up_gradient = _narrowed(block, low, "up_g", up_width(low))
    _add_grouped(block, low, model.hidden, up_width(low), (up_gradient,), {"input_g": size})
    inputs = saved_input(low, "experts", "expert_input" if low.parallel.expert > 1 else "permuted")
    _add_expert_weights(block, low, up_width(low), model.hidden, (up_gradient, inputs))
    back = _add_exchange(block, low, "input_g", "input_gx")
    full = f"{target}_full" if low.parallel.tensor > 1 else target
    _add_routing(block, low, "permute_grad", (back, "routing"), {full: low.full_bytes})
    table = catalogue.softmax(low.tokens, model.experts, DType.FP32, grad=True)
    logits = low.tokens * model.experts * low.element_bytes
    block.compute("SoftmaxGrad", TaskKind.VECTOR, table, ("routing",), {"router_g": logits})
    add_matmul(block, low, low.tokens, model.hidden, model.experts, ("router_g", full), {})
    add_matmul(block, low, model.experts, model.hidden, low.tokens, ("router_g", source), {}, out_bytes=FP32_BYTES)
    if low.splits_sequence:
        writes: dict[str, Int64Array | float] = {target: low.stream_bytes}
        block.collective(CollectiveKind.REDUCE_SCATTER, GroupKind.TENSOR, low.full_bytes, (full,), writes)
    elif low.parallel.tensor > 1:
        written: dict[str, Int64Array | float] = {target: low.full_bytes}
        block.collective(CollectiveKind.ALL_REDUCE, GroupKind.TENSOR, low.full_bytes, (full,), written)


def _add_expert_weights(
    block: BlockBuilder, low: Lowering, out_width: int, in_width: int, reads: tuple[str, ...]
) -> None:
    """Adds the gradients of all local experts' weights and their addition to the fp32 main gradients."""
    experts, rows = _local_experts(low), routed_rows(low)
    per_expert = np.maximum(rows // experts, 1)
    table = matmul(
        out_width,
        in_width,
        per_expert,
        narrow_dtype(low, "experts") or low.dtype,
        batch=experts,
        out_bytes_per_element=low.element_bytes,
        family="grouped_matmul",
    )
    size = experts * out_width * in_width
    name = f"expert_{out_width}_{in_width}_g"
    block.compute("GroupedMatmul", TaskKind.CUBE, table, reads, {name: size * low.element_bytes})
    if low.fusions.gradient_accumulation:
        return
    table = catalogue.vector_operator(
        "elementwise", 1, np.full(len(rows), size), DType.FP32, FP32_BYTES + low.element_bytes, FP32_BYTES
    )
    shape, types = shape_text([size], [size]), (DType.FP32, low.dtype)
    block.compute("Add", TaskKind.VECTOR, table, (name,), shape=shape, types=types)
