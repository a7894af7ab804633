"""Shapes and types of a capture's kernels as numbers: what a fused operator is priced from."""

from dataclasses import dataclass
from math import prod

import numpy as np

from engine.analyses.fusion.shapes import parse_tensors
from engine.devices.spec import DType
from engine.trace.trace import Trace

_TYPES = {
    "FLOAT": DType.FP32, "FLOAT32": DType.FP32, "FLOAT16": DType.FP16, "BF16": DType.BF16, "BFLOAT16": DType.BF16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelShape:
    """One kernel of a place where a fusion could stand.

    Attributes:
        word: What it does (``kernel_words``).
        inputs: Dimensions of every input.
        dtype: Element type of its first input, None where the capture has none of the types that are priced.
    """

    word: str
    inputs: tuple[tuple[int, ...], ...]
    dtype: DType | None

    @property
    def elements(self) -> int:
        """Of the first input, 0 where no shape is known."""
        return prod(self.inputs[0]) if self.inputs else 0

    @property
    def is_matrix(self) -> bool:
        """Whether the first input has rows and columns."""
        return bool(self.inputs) and len(self.inputs[0]) > 1

    @property
    def is_batched(self) -> bool:
        """Whether the first input is many matrices."""
        return bool(self.inputs) and len(self.inputs[0]) > 2

    @property
    def rows(self) -> int:
        """Rows of the first input."""
        return prod(self.inputs[0][:-1])

    @property
    def columns(self) -> int:
        """Last dimension of the first input."""
        return self.inputs[0][-1]


def kernel_shape(trace: Trace, event: int, word: str) -> KernelShape:
    """Returns the shape of the kernel of an event; without shapes where the capture has none or they are not clear."""
    row = int(trace.kernel_row_of_event[event])
    if row < 0 or len(trace.kernels) == 0:
        return KernelShape(word, (), None)
    inputs = _dimensions(trace.strings.text(int(trace.kernels.input_shapes[row])))
    first_type, _, _ = trace.strings.text(int(trace.kernels.input_types[row])).partition(";")
    return KernelShape(word, inputs, _TYPES.get(first_type.strip().upper().removeprefix("DT_")))


def bytes_at_ends(trace: Trace, first: int, last: int) -> float:
    """Returns the bytes the first kernel of a chain reads and the last one writes, 0 where shapes are missing.

    What the kernels between read from elsewhere is not known, so it is the least one kernel in their place moves.
    """
    rows = trace.kernel_row_of_event[[first, last]]
    if len(trace.kernels) == 0 or np.any(rows < 0):
        return 0.0
    table, text = trace.kernels, trace.strings.text
    read = parse_tensors(text(int(table.input_shapes[rows[0]])), text(int(table.input_types[rows[0]])))
    written = parse_tensors(text(int(table.output_shapes[rows[1]])), text(int(table.output_types[rows[1]])))
    return float(sum(side.total_bytes or 0 for side in (read, written) if side is not None))


def _dimensions(text: str) -> tuple[tuple[int, ...], ...]:
    shapes = []
    for part in text.replace('"', "").split(";"):
        sizes = [size.strip() for size in part.split(",")]
        if not all(size.isdecimal() for size in sizes):
            break
        shapes.append(tuple(int(size) for size in sizes))
    return tuple(shapes)


def product_size(item: KernelShape) -> tuple[int, int, int, int] | None:
    """Returns (batch, rows, summed, columns) of a matrix product, None for other kernels and unclear shapes."""
    if item.word not in ("bmm", "matmul") or len(item.inputs) < 2:
        return None
    left, right = item.inputs[0], item.inputs[1]
    if len(left) < 2 or len(right) < 2:
        return None
    batch = prod(left[:-2])
    if right[-2] == left[-1]:
        return batch, left[-2], left[-1], right[-1]
    if right[-1] == left[-1]:
        return batch, left[-2], left[-1], right[-2]
    # The first operand is stored transposed.
    return batch, left[-1], left[-2], right[-1] if right[-2] == left[-2] else right[-2]
