"""Norms of the residual stream: one kernel, or the operators an unfused RMSNorm is made of."""

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import catalogue
from engine.workloads.blocks import BlockBuilder, shape_text
from engine.workloads.lowering import FP32_BYTES, Lowering, add_elementwise, add_widening


def kept_norm_tensors(low: Lowering, norm: str, *, with_residual: bool = False) -> tuple[str, ...]:
    """Returns what an unfused RMSNorm keeps for its backward pass: its input in fp32 and what its weight multiplies.

    That is what autograd saves of x.float(), pow, rsqrt and the two products; a fused kernel reads its input again.
    """
    if _is_one_kernel(low, with_residual):
        return ()
    return (f"{norm}_n",) if low.dtype is DType.FP32 else (f"{norm}_f32", f"{norm}_c")


def _is_one_kernel(low: Lowering, with_residual: bool) -> bool:
    return not low.model.gated or low.fusions.rms_norm or (with_residual and low.fuses_residual_norm)


def add_norm(block: BlockBuilder, low: Lowering, source: str, target: str) -> None:
    """Adds the norm of the residual stream: one kernel, or the seven an unfused RMSNorm is made of."""
    rows, hidden = low.stream_tokens, low.model.hidden
    shape = shape_text([rows[0], hidden], [hidden])
    if not low.model.gated:
        table = catalogue.norm(rows, hidden, low.dtype, family="layer_norm")
        block.compute("LayerNormV3", TaskKind.VECTOR, table, (source,), {target: low.stream_bytes}, shape=shape)
        return
    if low.fusions.rms_norm:
        table = catalogue.norm(rows, hidden, low.dtype)
        block.compute("RmsNorm", TaskKind.VECTOR, table, (source,), {target: low.stream_bytes}, shape=shape)
        return
    wide, elements = rows * hidden * FP32_BYTES, rows * hidden
    is_wide = low.dtype is DType.FP32
    given = add_widening(block, low, source, f"{target}_f32", elements, shape)
    add_elementwise(block, low, "Pows", elements, (given,), {f"{target}_sq": wide}, inputs=1, dtype=DType.FP32)
    mean = catalogue.vector_operator("reduce", rows, hidden, DType.FP32, FP32_BYTES, 0)
    block.compute("ReduceMean", TaskKind.VECTOR, mean, (f"{target}_sq",), {f"{target}_rs": rows * 4}, shape=shape)
    add_elementwise(block, low, "Rsqrt", rows, (f"{target}_rs",), {}, inputs=1, dtype=DType.FP32)
    reads = (given, f"{target}_rs")
    add_elementwise(block, low, "Mul", elements, reads, {f"{target}_n": wide}, inputs=1, dtype=DType.FP32)
    normed = f"{target}_n"
    if not is_wide:
        normed = f"{target}_c"
        cast = catalogue.cast(elements, DType.FP32, low.dtype)
        block.compute("Cast", TaskKind.VECTOR, cast, (f"{target}_n",), {normed: low.stream_bytes}, shape=shape)
    add_elementwise(block, low, "Mul", elements, (normed,), {target: low.stream_bytes}, inputs=1)


def add_residual_norm(block: BlockBuilder, low: Lowering, update: str, stream: str, summed: str, target: str) -> None:
    """Adds one kernel that adds ``update`` to the residual ``stream`` and norms the sum: writes both."""
    rows, hidden = low.stream_tokens, low.model.hidden
    gated = low.model.gated
    table = catalogue.norm(rows, hidden, low.dtype, family="add_rms_norm" if gated else "add_layer_norm")
    writes: dict[str, Int64Array | float] = {summed: low.stream_bytes, target: low.stream_bytes}
    shape = shape_text([rows[0], hidden], [rows[0], hidden], [hidden])
    name = "AddRmsNorm" if gated else "AddLayerNorm"
    block.compute(name, TaskKind.VECTOR, table, (update, stream), writes, shape=shape)


def add_norm_backward(
    block: BlockBuilder, low: Lowering, norm: str, source: str, target: str, *, with_residual: bool = False
) -> None:
    """Adds the derivative of ``norm`` (its result's name) over ``source``: one kernel, or six of an unfused RMSNorm.

    Reads the gradient of the result, named ``norm`` with ``_g`` behind it. ``with_residual``: of a norm that may have
    been one kernel with the addition before it.
    """
    rows, hidden, gradient = low.stream_tokens, low.model.hidden, f"{norm}_g"
    shape = shape_text([rows[0], hidden], [hidden])
    if _is_one_kernel(low, with_residual):
        family = "rms_norm_grad" if low.model.gated else "layer_norm_grad"
        name = "RmsNormGrad" if low.model.gated else "LayerNormGradV3"
        table = catalogue.norm_grad(rows, hidden, low.dtype, family=family)
        block.compute(name, TaskKind.VECTOR, table, (gradient, source), {target: low.stream_bytes}, shape=shape)
        return
    elements, wide = rows * hidden, rows * hidden * FP32_BYTES
    is_wide = low.dtype is DType.FP32
    normed = kept_norm_tensors(low, norm)[-1]
    kept = source if is_wide else f"{norm}_f32"
    add_elementwise(block, low, "Mul", elements, (gradient, normed), {f"{target}_w": low.stream_bytes}, inputs=1)
    given = add_widening(block, low, f"{target}_w", f"{target}_f", elements, shape)
    reads = (given, kept)
    add_elementwise(block, low, "Mul", elements, reads, {f"{target}_p": wide}, dtype=DType.FP32)
    total = catalogue.vector_operator("reduce", rows, hidden, DType.FP32, FP32_BYTES, 0)
    block.compute("ReduceSum", TaskKind.VECTOR, total, (f"{target}_p",), {}, shape=shape)
    last = target if is_wide else f"{target}_a"
    add_elementwise(block, low, "Addcmul", elements, reads, {last: wide}, inputs=3, dtype=DType.FP32)
    if not is_wide:
        cast = catalogue.cast(elements, DType.FP32, low.dtype)
        block.compute("Cast", TaskKind.VECTOR, cast, (last,), {target: low.stream_bytes}, shape=shape)
