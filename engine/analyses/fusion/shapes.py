"""Ascend's shape and type texts (``"4096,1024;1024"``, ``"DT_BF16;FLOAT"``) as numbers of elements and bytes."""

from dataclasses import dataclass

_BYTES_OF_TYPE = {
    "FLOAT": 4, "FLOAT32": 4, "INT32": 4, "UINT32": 4,
    "FLOAT16": 2, "BF16": 2, "BFLOAT16": 2, "INT16": 2, "UINT16": 2,
    "INT8": 1, "UINT8": 1, "BOOL": 1, "HIFLOAT8": 1, "FLOAT8_E5M2": 1, "FLOAT8_E4M3FN": 1,
    "INT64": 8, "UINT64": 8, "DOUBLE": 8, "COMPLEX64": 8, "COMPLEX128": 16,
}  # fmt: skip


_MAX_ELEMENTS = 1 << 50
"""No tensor has more; sums of sizes up to here fit int64."""
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors on one side of a kernel.

    Attributes:
        elements: Number of elements of each tensor; a scalar (empty shape) has 1.
        types: Type of each, without ``DT_``; "" where not recorded.
        bytes: Size of each; None where the type is unknown.
    """

    elements: tuple[int, ...]
    types: tuple[str, ...]
    bytes: tuple[int | None, ...]

    @property
    def total_bytes(self) -> int | None:
        """Sum of all sizes; None where one is unknown."""
        known = [size for size in self.bytes if size is not None]
        return sum(known) if len(known) == len(self.bytes) else None

    @property
    def largest_elements(self) -> int:
        """Elements of the largest tensor, 0 where there is none."""
        return max(self.elements, default=0)


NO_TENSORS = Tensors((), (), ())


def parse_tensors(shapes: str, types: str) -> Tensors | None:
    """Returns the tensors described by two texts of the kernel table, None where they are not recorded or not clear."""
    shapes, types = shapes.replace('"', "").strip(), types.replace('"', "").strip()
    if types in ("", "N/A"):
        return None
    type_names = tuple(name.strip().upper().removeprefix("DT_") for name in types.split(";"))
    shape_texts = () if shapes == "N/A" else tuple(shapes.split(";"))
    if len(shape_texts) != len(type_names):
        return None
    elements = []
    for text in shape_texts:
        count = _elements(text)
        if count is None:
            return None
        elements.append(count)
    # An optional input that was not passed has type UNDEFINED: nothing is read for it.
    sizes = tuple(
        0 if name == "UNDEFINED" else count * _BYTES_OF_TYPE[name] if name in _BYTES_OF_TYPE else None
        for count, name in zip(elements, type_names, strict=True)
    )
    return Tensors(tuple(elements), type_names, sizes)


def _elements(shape: str) -> int | None:
    count = 1
    for dimension in shape.split(",") if shape.strip() else ():
        if not dimension.strip().isdecimal() or len(dimension) > _MAX_DIGITS:
            return None
        count *= int(dimension)
    return count if count < _MAX_ELEMENTS else None
