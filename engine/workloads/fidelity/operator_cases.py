"""One row of the cann-bench table, as the functions that turn it into kernels get it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from engine.devices.spec import DeviceSpec, DType
from engine.runtime.cost.catalogue import vector_operator
from engine.runtime.cost.operators import OperatorTable

Shape = list[int]

DTYPES = {
    "float32": DType.FP32,
    "float16": DType.FP16,
    "bfloat16": DType.BF16,
    "int8": DType.INT8,
    "int32": DType.INT32,
    "int64": DType.INT64,
    "bool": DType.BOOL,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table.

    Attributes:
        shapes: Shape per input; None for an input left out; a list of shapes for a list of tensors.
        dtypes: Type per input.
        attributes: As in the file.
        device: Where it ran.
        kernels: Names of the kernels the file lists, with counts.
    """

    shapes: Sequence[Any]
    dtypes: Sequence[DType | None]
    attributes: Mapping[str, Any]
    device: DeviceSpec
    kernels: Mapping[str, int]

    @property
    def dtype(self) -> DType:
        """Type of the first input."""
        return self.dtypes[0] or DType.FP32

    def size(self, index: int) -> int:
        """Bytes of one element of an input."""
        dtype = self.dtypes[min(index, len(self.dtypes) - 1)]
        return (dtype or DType.FP32).size_bytes


Kernels = list[OperatorTable]


def elements_of(shape: Sequence[int]) -> int:
    """Returns the elements of a shape."""
    return int(prod(shape))


def rows_of(shape: Sequence[int]) -> tuple[int, int]:
    """Returns the rows of a shape and the elements of one."""
    return elements_of(shape[:-1]), int(shape[-1])


def input_bytes(case: Case) -> int:
    """Returns the bytes of all inputs, those left out as nothing."""
    total = 0
    for index, shape in enumerate(case.shapes):
        if shape is not None:
            shapes = shape if shape and isinstance(shape[0], list) else [shape]
            total += sum(elements_of(one) for one in shapes) * case.size(index)
    return total


def layout_change(elements: int, dtype: DType) -> OperatorTable:
    """Returns the rewriting of a tensor into or out of the blocked layout of the matrix unit."""
    return vector_operator("layout_change", 1, elements, dtype, dtype.size_bytes, dtype.size_bytes)
