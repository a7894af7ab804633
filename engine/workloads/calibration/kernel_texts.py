"""What a capture says of one kernel, parsed from the profiler's texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from engine.devices.spec import DType

Shape = tuple[int, ...]

DTYPES: Mapping[str, DType] = {
    "FLOAT": DType.FP32,
    "DT_BF16": DType.BF16,
    "FLOAT16": DType.FP16,
    "INT8": DType.INT8,
    "UINT8": DType.INT8,
    "INT32": DType.INT32,
    "UINT32": DType.INT32,
    "INT64": DType.INT64,
    "UINT64": DType.INT64,
    "DOUBLE": DType.INT64,
    "BOOL": DType.BOOL,
}
"""Spellings of kernel_details.csv. DOUBLE is only moved, never multiplied, on these devices: eight bytes."""


@dataclass(frozen=True, slots=True)
class KernelShapes:
    """What a capture says of one kernel.

    Attributes:
        op_type: The profiler's type, such as ``"MatMulV3"``.
        inputs: Shape per input; () for a scalar or an input left out.
        input_types: Type per input; None where the profiler's word is not a number type.
        outputs: Shape per output.
        output_types: Type per output.
    """

    op_type: str
    inputs: tuple[Shape, ...]
    input_types: tuple[DType | None, ...]
    outputs: tuple[Shape, ...]
    output_types: tuple[DType | None, ...]

    @property
    def dtype(self) -> DType:
        """Type of the first input that has one."""
        return next((dtype for dtype in (*self.input_types, *self.output_types) if dtype is not None), DType.FP32)

    @property
    def read_bytes(self) -> int:
        """Bytes of all inputs."""
        return _bytes(self.inputs, self.input_types)

    @property
    def write_bytes(self) -> int:
        """Bytes of all outputs."""
        return _bytes(self.outputs, self.output_types)


def kernel_shapes(
    op_type: str, input_shapes: str, input_types: str, output_shapes: str, output_types: str
) -> KernelShapes | None:
    """Returns the parsed texts of a row, None where it has no shapes (``"N/A"``) or they are no shapes."""
    try:
        return KernelShapes(
            op_type,
            _shapes(input_shapes),
            _types(input_types),
            _shapes(output_shapes) if output_shapes != "N/A" else (),
            _types(output_types) if output_types != "N/A" else (),
        )
    except ValueError:
        return None


def _shapes(text: str) -> tuple[Shape, ...]:
    return tuple(
        tuple(int(extent) for extent in part.split(",")) if part.strip() else ()
        for part in text.strip().strip('"').split(";")
    )


def _types(text: str) -> tuple[DType | None, ...]:
    return tuple(DTYPES.get(word.strip()) for word in text.strip().split(";"))


def _bytes(shapes: Sequence[Shape], types: Sequence[DType | None]) -> int:
    return sum(prod(shape) * dtype.size_bytes for shape, dtype in zip(shapes, types, strict=False) if dtype is not None)
