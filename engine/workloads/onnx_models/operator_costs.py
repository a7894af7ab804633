"""The nodes of an ONNX graph as operators the cost model prices."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from engine.devices.spec import DType
from engine.runtime.cost import catalogue, matmul
from engine.runtime.cost.operators import OperatorTable

_DTYPES = {
    "FLOAT": DType.FP32, "DOUBLE": DType.FP32, "FLOAT16": DType.FP16, "BFLOAT16": DType.BF16, "INT8": DType.INT8,
    "UINT8": DType.INT8, "INT32": DType.INT32, "INT64": DType.INT64, "BOOL": DType.BOOL,
}  # fmt: skip
FREE = frozenset(
    {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Constant", "Shape", "ConstantOfShape", "Dropout"}
)
"""Operators that run no kernel at inference: views, constants, what folds away."""
FAMILIES = {
    "elementwise": (
        "Add Sub Mul Div Relu LeakyRelu PRelu Clip Neg Abs Min Max Equal Less Greater LessOrEqual GreaterOrEqual And "
        "Or Not Where Ceil Floor Round Sign HardSwish HardSigmoid Mod BitShift ThresholdedRelu"
    ),
    "transcendental": "Exp Log Sqrt Reciprocal Pow Tanh Sigmoid Erf Sin Cos Tan Elu Selu Celu Softplus Softsign Mish",
    "gelu": "Gelu",
    "rms_norm": "LayerNormalization RMSNormalization BatchNormalization InstanceNormalization LpNormalization",
    "group_norm": "GroupNormalization",
    "softmax": "Softmax LogSoftmax",
    "reduce": (
        "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ArgMax ArgMin "
        "GlobalAveragePool GlobalMaxPool AveragePool MaxPool CumSum"
    ),
    "transpose": "Transpose DepthToSpace SpaceToDepth",
    "concat": "Concat Split Expand Tile Pad",
    "slice": "Slice",
    "gather": "Gather GatherElements GatherND Embedding",
    "scatter": "ScatterElements ScatterND",
    "cast": "Cast QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
    "sort": "TopK",
    "element_index": "OneHot Range Trilu",
}
"""Family of the cost model → operators that are priced by it."""
_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}
MATRIX = ("MatMul", "Gemm", "Conv", "ConvTranspose", "MatMulInteger", "ConvInteger")


@dataclass(frozen=True, slots=True)
class Priced:
    """One node.

    Attributes:
        node: Its name, or its operator where it has none.
        operator: Its operator type.
        table: What is priced, None for a node that runs no kernel.
        by_bytes: Whether it is priced by the bytes it moves because the cost model does not know the operator or its
            shapes are unknown.
    """

    node: str
    operator: str
    table: OperatorTable | None
    by_bytes: bool = False


def priced_node(node: Any) -> Priced:
    """Returns a node of a graph with inferred shapes as an operator."""
    name, operator = str(node.name or node.op_type), str(node.op_type)
    if operator in FREE:
        return Priced(name, operator, None)
    maker = _MATRIX_TABLES.get(operator)
    if maker is not None and node.domain == "":
        table = maker(node)
        if table is not None:
            return Priced(name, operator, table)
    family = _FAMILY_OF.get(operator) if node.domain == "" else None
    return Priced(name, operator, moved_bytes_table(node, family or "default"), by_bytes=family is None)


def moved_bytes_table(node: Any, family: str) -> OperatorTable:
    """Returns a vector operator that reads every input and writes every output once."""
    read = sum(value_bytes(value) for value in node.inputs if value is not None)
    written = sum(value_bytes(value) for value in node.outputs)
    shape = shape_of(node.outputs[0]) or (1,)
    row = max(shape[-1], 1)
    rows = max(prod(shape) // row, 1)
    elements = rows * row
    return catalogue.vector_operator(family, rows, row, dtype_of(node.outputs[0]), read / elements, written / elements)


def shape_of(value: Any) -> tuple[int, ...] | None:
    """Returns a value's shape, None where it is not known in full."""
    shape = getattr(value, "shape", None)
    if shape is None or any(not isinstance(size, int) for size in shape):
        return None
    return tuple(shape)


def dtype_of(value: Any) -> DType:
    """Returns the cost model's name of a value's type; FP32 where it is unknown."""
    return _DTYPES.get(value.dtype.name, DType.FP32) if value is not None and value.dtype is not None else DType.FP32


def value_bytes(value: Any) -> int:
    """Returns the bytes of a value, 0 where its shape is unknown."""
    shape = shape_of(value)
    return prod(shape) * dtype_of(value).size_bytes if shape is not None else 0


def _matmul(node: Any) -> OperatorTable | None:
    left, right = shape_of(node.inputs[0]), shape_of(node.inputs[1])
    if left is None or right is None or not left or not right:
        return None
    left, right = (1, *left) if len(left) == 1 else left, (*right, 1) if len(right) == 1 else right
    dtype = _matrix_dtype(node)
    if len(right) == 2:
        # One matrix for all: the batch only adds rows.
        return matmul(prod(left[:-1]), right[1], left[-1], dtype)
    outer = prod(max(a, b) for a, b in zip(_padded(left, right), _padded(right, left), strict=True))
    return matmul(left[-2], right[-1], left[-1], dtype, batch=outer)


def _padded(shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (max(len(shape), len(other)) - len(shape)) + shape[:-2]


def _gemm(node: Any) -> OperatorTable | None:
    left, right = shape_of(node.inputs[0]), shape_of(node.inputs[1])
    if left is None or right is None:
        return None
    rows, summed = left[::-1] if _integer(node, "transA", 0) else left
    columns = right[0] if _integer(node, "transB", 0) else right[1]
    return matmul(rows, columns, summed, _matrix_dtype(node))


def _convolution(node: Any) -> OperatorTable | None:
    weight, output = shape_of(node.inputs[1]), shape_of(node.outputs[0])
    if weight is None or output is None:
        return None
    groups = _integer(node, "group", 1)
    pixels = output[0] * prod(output[2:])
    transposed = node.op_type == "ConvTranspose"
    channels = weight[1] if transposed else weight[0] // groups
    summed = (weight[0] // groups if transposed else weight[1]) * prod(weight[2:])
    return matmul(pixels, channels, summed, _matrix_dtype(node), batch=groups, family="conv")


def _matrix_dtype(node: Any) -> DType:
    found = dtype_of(node.inputs[0])
    return DType.INT8 if found is DType.BOOL else found


def _integer(node: Any, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return int(attribute.as_int()) if attribute is not None else default


_MATRIX_TABLES: dict[str, Callable[[Any], OperatorTable | None]] = {
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "Gemm": _gemm,
    "Conv": _convolution,
    "ConvInteger": _convolution,
    "ConvTranspose": _convolution,
}
