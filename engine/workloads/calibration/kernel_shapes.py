"""Kernels of a capture as operators: from the type, shapes and element types the profiler wrote.

A kernel type that nobody described, or a row without shapes, gives None and is counted by the caller.
"""

from collections.abc import Callable, Mapping
from math import isqrt, prod

from engine.devices.spec import DType
from engine.runtime.cost.catalogue import adamw, flash_attention
from engine.runtime.cost.operators import Law, OperatorTable, matmul, operator_table
from engine.workloads.calibration.kernel_texts import KernelShapes, Shape

BLOCK = 16
"""Filters of one block of the matrix unit's weight layout."""
FLAT_BUFFER_ELEMENTS = 1 << 20
"""From here on a one-dimensional tensor is taken for a flat buffer of weights, gradients or moments."""


def kernel_operator(kernel: KernelShapes) -> OperatorTable | None:
    """Returns the operator a kernel is priced as, None for types nobody described and shapes that do not fit."""
    describe = _KERNELS.get(kernel.op_type)
    return describe(kernel) if describe is not None else None


def _elementwise(family: str) -> Callable[[KernelShapes], OperatorTable | None]:
    """Every element by itself: as many as the largest tensor has."""

    def operator(kernel: KernelShapes) -> OperatorTable | None:
        elements = max((prod(shape) for shape in (*kernel.inputs, *kernel.outputs)), default=0)
        return _vector(family, kernel, 1, elements)

    return operator


def _moved(family: str) -> Callable[[KernelShapes], OperatorTable | None]:
    """Only what is written is read: slices, gathers."""

    def operator(kernel: KernelShapes) -> OperatorTable | None:
        if not kernel.outputs:
            return None
        rows, width = _rows(kernel.outputs[0])
        return operator_table(
            family,
            Law.VECTOR,
            kernel.dtype,
            m=rows,
            n=width,
            read_bytes=kernel.write_bytes,
            write_bytes=kernel.write_bytes,
        )

    return operator


def _row_wise(family: str) -> Callable[[KernelShapes], OperatorTable | None]:
    """Every row of the first input by itself."""

    def operator(kernel: KernelShapes) -> OperatorTable | None:
        rows, width = _rows(kernel.inputs[0])
        return _vector(family, kernel, rows, width)

    return operator


def _vector(family: str, kernel: KernelShapes, rows: int, width: int) -> OperatorTable | None:
    if rows * width == 0:
        return None
    return operator_table(
        family,
        Law.VECTOR,
        kernel.dtype,
        m=rows,
        n=width,
        read_bytes=kernel.read_bytes,
        write_bytes=kernel.write_bytes,
        cold=family != "copy" and (_is_flat_buffer(kernel) or _is_accumulation(kernel)),
    )


def _is_flat_buffer(kernel: KernelShapes) -> bool:
    """Long one-dimensional tensors are an optimizer's flat buffers, last touched a step ago (copies: just updated)."""
    return len(kernel.inputs[0]) == 1 and kernel.inputs[0][0] >= FLAT_BUFFER_ELEMENTS


def _is_accumulation(kernel: KernelShapes) -> bool:
    """fp32 += half precision of one shape is a gradient added to its accumulator, last touched a micro-batch ago."""
    return (
        kernel.op_type == "Add"
        and len(kernel.inputs) == 2
        and kernel.inputs[0] == kernel.inputs[1]
        and kernel.input_types[0] is DType.FP32
        and kernel.input_types[1] in (DType.BF16, DType.FP16)
    )


def _rows(shape: Shape) -> tuple[int, int]:
    return prod(shape[:-1]), (shape[-1] if shape else 1)


def _swiglu(kernel: KernelShapes) -> OperatorTable | None:
    """The input holds gate and up side by side; the activation works on half of it."""
    rows, width = _rows(kernel.inputs[0])
    return _vector("swiglu", kernel, rows, width // 2)


def _fill(kernel: KernelShapes) -> OperatorTable | None:
    if not kernel.outputs:
        return None
    return operator_table(
        "fill",
        Law.VECTOR,
        kernel.dtype,
        m=1,
        n=prod(kernel.outputs[0]),
        read_bytes=0,
        write_bytes=kernel.write_bytes,
    )


def _scatter(kernel: KernelShapes) -> OperatorTable | None:
    """Adds rows of the first input by index: reads and writes as many rows of the result."""
    rows, width = _rows(kernel.inputs[0])
    size = kernel.dtype.size_bytes
    return operator_table(
        "scatter",
        Law.VECTOR,
        kernel.dtype,
        m=rows,
        n=width,
        read_bytes=2 * rows * width * size,
        write_bytes=rows * width * size,
    )


def _index_put(kernel: KernelShapes) -> OperatorTable | None:
    """Writes the second input's values into the first in place, which the profiler lists as a whole new output."""
    if len(kernel.inputs) < 2:
        return None
    values, size = prod(kernel.inputs[1]), kernel.dtype.size_bytes
    return operator_table(
        "index", Law.VECTOR, kernel.dtype, m=1, n=values, read_bytes=values * size, write_bytes=values * size
    )


def _adamw(kernel: KernelShapes) -> OperatorTable | None:
    """The profiler lists weight, two moments and the gradient; results are written in place and not listed."""
    if len(kernel.inputs) < 4:
        return None
    gradient = kernel.input_types[3] or DType.FP32
    return adamw(prod(kernel.inputs[0]), gradient_bytes=gradient.size_bytes)


def _matmul(kernel: KernelShapes) -> OperatorTable | None:
    """[m, n] from the result; k from element counts, which hold for transposed and blocked operands alike."""
    if len(kernel.inputs) < 2 or not kernel.outputs or not kernel.outputs[0]:
        return None
    result = kernel.outputs[0]
    blocked = len(result) == 4 and result[2:] == (16, 16)
    m, n = (result[1] * 16, result[0] * 16) if blocked else (prod(result[:-1]), result[-1])
    first, second = prod(kernel.inputs[0]), prod(kernel.inputs[1])
    batch = prod(result[:-2]) if kernel.op_type.startswith("BatchMatMul") else 1
    k = isqrt(first * second // (m // batch * n)) // batch if batch == 1 else first // m
    if k < 1 or m // batch * k * batch != first:
        return None
    out = kernel.output_types[0] or kernel.dtype
    transposed = len(kernel.inputs[0]) == 2 and kernel.inputs[0] == (k, m) and k != m
    return matmul(
        m // batch,
        n,
        k,
        kernel.dtype,
        batch=batch,
        out_bytes_per_element=out.size_bytes,
        transposed=transposed,
    )


def _convolution(family: str, weights: int, pixels: int) -> Callable[[KernelShapes], OperatorTable | None]:
    """A product over windows, from blocked shapes: weights [window, filters / 16, 16, channels], images of five axes.

    Args:
        family: Whose constants apply.
        weights: Input that holds the filters; -1 where they are the output.
        pixels: Input that holds the gradient of the image of filters; -1 where it is the output.
    """

    def operator(kernel: KernelShapes) -> OperatorTable | None:
        tensors = (*kernel.inputs[:3], kernel.outputs[0] if kernel.outputs else ())
        if len(tensors) < 4:
            return None
        filters, image = tensors[weights], tensors[pixels]
        if len(filters) != 4 or filters[2] != BLOCK or len(image) != 5:
            return None
        n, k, m = filters[1] * BLOCK, filters[0] * filters[3], prod(image) // (image[1] * image[4])
        dimensions = {"conv": (m, n, k), "conv_backprop_input": (m, k, n), "conv_backprop_filter": (n, k, m)}
        rows, columns, depth = dimensions[family]
        return operator_table(
            family,
            Law.MATMUL,
            next(dtype for dtype in kernel.output_types if dtype is not None),
            m=rows,
            n=columns,
            k=depth,
            read_bytes=kernel.read_bytes,
            write_bytes=kernel.write_bytes,
        )

    return operator


def _attention(*, grad: bool) -> Callable[[KernelShapes], OperatorTable | None]:
    """Batch, heads and queries from the softmax statistics [B, N, S, 8]; sizes of heads from element counts."""

    def operator(kernel: KernelShapes) -> OperatorTable | None:
        statistics = next(
            (shape for shape in (*kernel.outputs, *kernel.inputs) if len(shape) == 4 and shape[-1] == 8), None
        )
        if statistics is None or len(kernel.inputs) < 3:
            return None
        batch, heads, queries, _ = statistics
        query, key = kernel.inputs[0], kernel.inputs[1]
        keys = _sequence(query, key, batch, queries)
        head_size = prod(query) // (batch * heads * queries)
        if keys is None or head_size == 0 or prod(key) % (batch * keys * head_size):
            return None
        compressed_mask = (2048, 2048) in kernel.inputs
        return flash_attention(
            batch,
            heads,
            prod(key) // (batch * keys * head_size),
            queries,
            keys,
            head_size,
            kernel.dtype,
            causal=compressed_mask or (queries, keys) in kernel.inputs,
            grad=grad,
        )

    return operator


def _sequence(query: Shape, key: Shape, batch: int, queries: int) -> int | None:
    """Returns the keys of a sequence: the extent of ``key`` on the axis where ``query`` has its queries."""
    if len(query) != len(key):
        return None
    axis = next((axis for axis, extent in enumerate(query[:-1]) if extent == queries and key[axis] != batch), None)
    return None if axis is None else key[axis]


_KERNELS: Mapping[str, Callable[[KernelShapes], OperatorTable | None]] = {
    **dict.fromkeys(("MatMulV2", "MatMulV3", "MatMul", "BatchMatMulV2", "BatchMatMul", "BatchMatMulV3"), _matmul),
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "RealDiv", "Div", "Muls", "Adds", "AddV2", "Exp", "Pows", "Pow", "Sqrt", "Rsqrt", "Neg",
         "Abs", "Maximum", "Minimum", "Greater", "GreaterEqual", "Less", "LessEqual", "Equal", "NotEqual", "Axpy",
         "LogicalNot", "LogicalAnd", "LogicalOr", "SelectV2", "MaskedFill", "Square", "Relu", "ReluGrad", "Range",
         "NLLLoss", "NLLLossGrad", "NonZero"),
        _elementwise("elementwise"),
    ),
    **dict.fromkeys(("Sin", "Cos", "Tanh", "Sigmoid", "Log"), _elementwise("transcendental")),
    "Cast": _elementwise("cast"),
    **dict.fromkeys(("TensorMove", "ViewCopy", "Identity", "AsStrided", "BroadcastTo"), _elementwise("copy")),
    **dict.fromkeys(("ForeachAddList", "ForeachMulScalar"), _elementwise("foreach")),
    "DropOutDoMask": _elementwise("dropout"),
    **dict.fromkeys(("MaxPoolWithArgmaxV1", "MaxPoolGradWithArgmaxV1"), _elementwise("max_pool")),
    "Conv2D": _convolution("conv", 1, -1),
    "Conv2DBackpropInput": _convolution("conv_backprop_input", 1, 2),
    "Conv2DBackpropFilter": _convolution("conv_backprop_filter", -1, 2),
    "Index": _moved("index"),
    "IndexPutV2": _index_put,
    **dict.fromkeys(("Sort", "TopKV2"), _row_wise("sort")),
    "Transpose": _elementwise("transpose"),
    "TransData": _elementwise("layout_change"),
    **dict.fromkeys(("ConcatD", "Concat", "Pack"), _elementwise("concat")),
    **dict.fromkeys(("Slice", "StridedSlice", "StridedSliceD", "SplitD", "SplitV"), _moved("slice")),
    **dict.fromkeys(("ZerosLike", "OnesLike", "Fill"), _fill),
    **dict.fromkeys(("GatherV2", "GatherV3"), _moved("gather")),
    **dict.fromkeys(("EmbeddingDenseGradV2", "EmbeddingDenseGrad"), _scatter),
    **dict.fromkeys(
        ("LpNormV2", "LpNorm", "ReduceSum", "ReduceSumD", "ReduceMean", "ReduceMeanD", "ReduceMax", "ReduceAll",
         "ReduceAny", "ArgMaxWithValue", "ArgMaxV2"),
        _elementwise("reduce"),
    ),
    "RmsNorm": _row_wise("rms_norm"),
    "RmsNormGrad": _row_wise("rms_norm_grad"),
    "AddRmsNorm": _row_wise("add_rms_norm"),
    **dict.fromkeys(("LayerNormV4", "LayerNormV3", "LayerNorm"), _row_wise("layer_norm")),
    **dict.fromkeys(("LayerNormGrad", "LayerNormGradV3"), _row_wise("layer_norm_grad")),
    **dict.fromkeys(("SoftmaxV2", "ScaledMaskedSoftmax", "LogSoftmaxV2"), _row_wise("softmax")),
    **dict.fromkeys(("SoftmaxGrad", "ScaledMaskedSoftmaxGrad", "LogSoftmaxGrad"), _row_wise("softmax_grad")),
    **dict.fromkeys(("RotaryPositionEmbedding", "RotaryMul"), _row_wise("rotary")),
    **dict.fromkeys(("RotaryPositionEmbeddingGrad", "RotaryMulGrad"), _row_wise("rotary_grad")),
    **dict.fromkeys(("SwiGlu", "Swiglu"), _swiglu),
    "SwiGluGrad": _row_wise("swiglu_grad"),
    **dict.fromkeys(("Gelu", "GeluV2"), _elementwise("gelu")),
    "GeluGrad": _elementwise("gelu_grad"),
    **dict.fromkeys(("ApplyAdamWV2", "ApplyAdamW"), _adamw),
    "FlashAttentionScore": _attention(grad=False),
    "FlashAttentionScoreGrad": _attention(grad=True),
}  # fmt: skip
