"""Products with weights, forward and backward: the linear layers, wide or in eight bits."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import catalogue, matmul
from engine.workloads.blocks import LAST, NONE_AWAITED, ONE_BEFORE, BlockBuilder, GroupKind, shape_text
from engine.workloads.lowering import FP32_BYTES, Lowering, add_gather, add_matmul

_PART_OF = {
    "qkv": "attention",
    "projected": "attention",
    "up": "feed_forward",
    "down": "feed_forward",
    "experts": "experts",
    "head": "head",
}
"""Name of a linear layer → part of the model."""
_SCALE_BYTES = 4
"""fp32 scale of one row of a quantised tensor."""


def narrow_dtype(low: Lowering, name: str) -> DType | None:
    """Returns the type a linear layer's operands are quantised to, None where they stay wide."""
    return low.fusions.narrow.of(_PART_OF[name])


def saved_input(low: Lowering, name: str, tensor: str) -> str:
    """Returns the name of what the backward pass keeps of a linear layer's input: quantised where the product is."""
    return tensor if narrow_dtype(low, name) is None else quantized_name(tensor)


def quantized_name(tensor: str) -> str:
    """Returns the name of a tensor's quantised copy."""
    return f"{tensor}_q"


def add_quantized(
    block: BlockBuilder,
    low: Lowering,
    source: str,
    target: str,
    rows: Int64Array | int,
    width: int,
    *,
    awaits: int = LAST,
) -> str:
    """Adds the quantising of a tensor [rows, width]; an empty ``source`` is a weight. Returns ``target``."""
    table = catalogue.vector_operator("dynamic_quant", rows, width, low.dtype, low.element_bytes, 1, cold=not source)
    size = np.asarray(rows, np.int64) * (width + _SCALE_BYTES)
    shape = shape_text([int(np.ravel(rows)[0]), width])
    reads = (source,) if source else ()
    block.compute("DynamicQuant", TaskKind.VECTOR, table, reads, {target: size}, shape=shape, awaits=awaits)
    return target


def add_quantized_matmul(
    block: BlockBuilder,
    low: Lowering,
    sizes: tuple[Int64Array | int, Int64Array | int, Int64Array | int],
    reads: tuple[str, ...],
    writes: dict[str, Int64Array | float],
    dtype: DType,
    *,
    awaits: int = LAST,
) -> None:
    """Adds a product of quantised operands, ``sizes``: rows, columns, summed; the result is as wide as activations."""
    table = matmul(*sizes, dtype, out_bytes_per_element=low.element_bytes, family="quant_matmul")
    rows, columns, summed = (int(np.ravel(size)[0]) for size in sizes)
    shape = shape_text([rows, summed], [summed, columns])
    block.compute("QuantBatchMatmulV3", TaskKind.CUBE, table, reads, writes, shape=shape, awaits=awaits)


def add_gathered(block: BlockBuilder, low: Lowering, name: str, out_width: int, tensor: str) -> str:
    """Adds the gathering of a column-parallel layer's input with sequence parallelism; returns the whole input's name.

    Where the product is narrow, its operands are quantised before: half the bytes travel, and the product follows the
    transfer at once.
    """
    if not low.splits_sequence:
        return tensor
    if narrow_dtype(low, name) is None:
        add_gather(block, low, tensor, f"{tensor}_full")
        return f"{tensor}_full"
    kept, size = quantized_name(tensor), low.tokens * low.model.hidden
    add_quantized(block, low, tensor, kept, low.stream_tokens, low.model.hidden)
    add_quantized(block, low, "", f"{name}_w_q", out_width, low.model.hidden)
    block.collective(CollectiveKind.ALL_GATHER, GroupKind.TENSOR, size, (kept,), {f"{kept}_full": size})
    return f"{kept}_full"


def add_linear(
    block: BlockBuilder, low: Lowering, name: str, widths: tuple[int, int], source: str, target: str
) -> None:
    """Adds x [tokens, in] → ``target`` [tokens, out]; ``widths``: out, in. The input may be quantised already."""
    out_width, in_width = widths
    written: dict[str, Int64Array | float] = {target: low.tokens * out_width * low.element_bytes}
    dtype = narrow_dtype(low, name)
    if dtype is None:
        add_matmul(block, low, low.tokens, out_width, in_width, (source,), written)
        return
    given = source
    if not source.endswith(("_q", "_q_full")):
        given = add_quantized(block, low, source, quantized_name(source), low.tokens, in_width)
    weight = f"{name}_w_q"
    if not block.writes(weight):
        add_quantized(block, low, "", weight, out_width, in_width)
    add_quantized_matmul(block, low, (low.tokens, out_width, in_width), (given, weight), written, dtype)


def add_weight_gradient(
    block: BlockBuilder, low: Lowering, name: str, widths: tuple[int, int], reads: tuple[str, ...], awaits: int
) -> None:
    """Adds the gradient of a weight [out, in] and its addition to the fp32 main gradient.

    In one kernel the product reads what it adds to, as npu_matmul_add_fp32 does.
    """
    out_width, in_width = widths
    size, dtype = out_width * in_width, narrow_dtype(low, name)
    fused = low.fusions.gradient_accumulation
    tensor, width = f"{name}_gradient", FP32_BYTES if fused else low.element_bytes
    written: dict[str, Int64Array | float] = {} if fused else {tensor: size * low.element_bytes}
    family = "matmul" if dtype is None else "quant_matmul"
    table = matmul(out_width, in_width, low.tokens, dtype or low.dtype, out_bytes_per_element=width, family=family)
    if fused:
        table = replace(table, read_bytes=table.read_bytes + size * FP32_BYTES)
    kernel = "MatMulV3" if dtype is None else "QuantBatchMatmulV3"
    shape = shape_text([out_width, int(low.tokens[0])], [int(low.tokens[0]), in_width])
    block.compute(kernel, TaskKind.CUBE, table, reads, written, shape=shape, awaits=awaits)
    if fused:
        return
    table = catalogue.vector_operator("elementwise", 1, size, DType.FP32, FP32_BYTES + low.element_bytes, FP32_BYTES)
    shape, types = shape_text([size], [size]), (DType.FP32, low.dtype)
    block.compute("Add", TaskKind.VECTOR, table, (tensor,), shape=shape, types=types, awaits=NONE_AWAITED)


def add_linear_backward(
    block: BlockBuilder,
    low: Lowering,
    name: str,
    out_width: int,
    in_width: int,
    gradient: str,
    source: str,
    input_gradient: str,
    *,
    column_parallel: bool,
) -> None:
    """Adds the backward pass of x [tokens, in] → y [tokens, out] where one of the widths is this rank's part.

    ``source`` is the layer's input; what was kept of it may be its quantised copy. Column-parallel (``out_width`` is a
    part): with sequence parallelism the input is gathered again beside the product for the input's gradient, and that
    gradient is reduced beside the product for the weight's, as Megatron-LM does; without it the gradient is all-reduced
    beside it; where nothing overlaps, one after another. Row-parallel: with sequence parallelism the output's gradient
    was gathered before by the caller.
    """
    communicates = column_parallel and low.parallel.tensor > 1
    size = low.tokens * in_width * low.element_bytes
    kept, dtype = saved_input(low, name, source), narrow_dtype(low, name)
    whole = kept
    if communicates and low.splits_sequence:
        whole = f"{name}_gathered"
        payload = size if dtype is None else low.tokens * in_width
        written: dict[str, Int64Array | float] = {whole: payload}
        block.collective(CollectiveKind.ALL_GATHER, GroupKind.TENSOR, payload, (kept,), written, beside_product=False)
    beside = NONE_AWAITED if whole != kept and low.fusions.tensor_overlap else LAST
    full = f"{input_gradient}_full" if communicates and low.splits_sequence else input_gradient
    if dtype is None:
        add_matmul(block, low, low.tokens, in_width, out_width, (gradient,), {full: size}, awaits=beside)
    else:
        gradient = add_quantized(block, low, gradient, f"{name}_out_g_q", low.tokens, out_width, awaits=beside)
        weight = add_quantized(block, low, "", f"{name}_w_g_q", out_width, in_width, awaits=beside)
        sizes = (low.tokens, in_width, out_width)
        add_quantized_matmul(block, low, sizes, (gradient, weight), {full: size}, dtype, awaits=beside)
    if communicates and low.splits_sequence:
        reduced: dict[str, Int64Array | float] = {input_gradient: size // low.parallel.tensor}
        block.collective(CollectiveKind.REDUCE_SCATTER, GroupKind.TENSOR, size, (full,), reduced)
    elif communicates:
        block.collective(CollectiveKind.ALL_REDUCE, GroupKind.TENSOR, size, (full,))
    awaits = LAST
    if communicates and low.fusions.tensor_overlap:
        awaits = ONE_BEFORE if whole != kept else NONE_AWAITED
    add_weight_gradient(block, low, name, (out_width, in_width), (gradient, whole), awaits)
