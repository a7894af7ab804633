"""Norms of the residual stream: one kernel, or the operators an unfused RMSNorm is made of."""

from engine.devices.spec import DType
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import catalogue
from engine.workloads.blocks import BlockBuilder, shape_text
from engine.workloads.lowering import FP32_BYTES, Lowering, add_elementwise


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
    cast = catalogue.cast(elements, low.dtype, DType.FP32)
    block.compute("Cast", TaskKind.VECTOR, cast, (source,), {f"{target}_f32": wide}, shape=shape)
    add_elementwise(
        block, low, "Pows", elements, (f"{target}_f32",), {f"{target}_sq": wide}, inputs=1, dtype=DType.FP32
    )
    mean = catalogue.vector_operator("reduce", rows, hidden, DType.FP32, FP32_BYTES, 0)
    block.compute("ReduceMean", TaskKind.VECTOR, mean, (f"{target}_sq",), {f"{target}_rs": rows * 4}, shape=shape)
    add_elementwise(block, low, "Rsqrt", rows, (f"{target}_rs",), {}, inputs=1, dtype=DType.FP32)
    reads = (f"{target}_f32", f"{target}_rs")
    add_elementwise(block, low, "Mul", elements, reads, {f"{target}_n": wide}, inputs=1, dtype=DType.FP32)
    cast = catalogue.cast(elements, DType.FP32, low.dtype)
    block.compute("Cast", TaskKind.VECTOR, cast, (f"{target}_n",), {f"{target}_c": low.stream_bytes}, shape=shape)
    add_elementwise(block, low, "Mul", elements, (f"{target}_c",), {target: low.stream_bytes}, inputs=1)


def add_norm_backward(block: BlockBuilder, low: Lowering, gradient: str, source: str, target: str) -> None:
    """Adds the norm's derivative: one kernel, or the six of an unfused RMSNorm."""
    rows, hidden = low.stream_tokens, low.model.hidden
    shape = shape_text([rows[0], hidden], [hidden])
    if low.fusions.rms_norm or not low.model.gated:
        family = "rms_norm_grad" if low.model.gated else "layer_norm_grad"
        name = "RmsNormGrad" if low.model.gated else "LayerNormGradV3"
        table = catalogue.norm_grad(rows, hidden, low.dtype, family=family)
        block.compute(name, TaskKind.VECTOR, table, (gradient, source), {target: low.stream_bytes}, shape=shape)
        return
    elements, wide = rows * hidden, rows * hidden * FP32_BYTES
    add_elementwise(block, low, "Mul", elements, (gradient,), {f"{target}_w": low.stream_bytes}, inputs=1)
    cast = catalogue.cast(elements, low.dtype, DType.FP32)
    block.compute("Cast", TaskKind.VECTOR, cast, (f"{target}_w",), {f"{target}_f": wide}, shape=shape)
    reads = (f"{target}_f", source)
    add_elementwise(block, low, "Mul", elements, reads, {f"{target}_p": wide}, dtype=DType.FP32)
    total = catalogue.vector_operator("reduce", rows, hidden, DType.FP32, FP32_BYTES, 0)
    block.compute("ReduceSum", TaskKind.VECTOR, total, (f"{target}_p",), {}, shape=shape)
    add_elementwise(block, low, "Addcmul", elements, reads, {f"{target}_a": wide}, inputs=3, dtype=DType.FP32)
    cast = catalogue.cast(elements, DType.FP32, low.dtype)
    block.compute("Cast", TaskKind.VECTOR, cast, (f"{target}_a",), {target: low.stream_bytes}, shape=shape)
