"""Sizes of GPU kernels from the shapes their framework calls were given (``Input Dims``, ``Input type``)."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

MAX_CALLS = 4_000
"""Arguments are read from the source one by one (about 60 µs each): those of the calls whose kernels take longest."""
_BYTES_OF_TYPE = {
    "double": 8, "long int": 8, "long": 8, "long long": 8, "c10::complex<float>": 8,
    "float": 4, "int": 4,
    "c10::Half": 2, "c10::BFloat16": 2, "short int": 2, "short": 2,
    "unsigned char": 1, "signed char": 1, "char": 1, "bool": 1,
}  # fmt: skip
_REDUCTIONS = frozenset(("sum", "mean", "max", "var", "norm"))
"""Write one value where they read many: what they write does not count."""
_WRITES_FIRST = frozenset(("copy",))
"""``copy_(target, source)`` lists what it writes first."""


def call_sizes(
    trace: Trace, operator: Int32Array, word: Sequence[str], duration_ns: Int64Array, streaming: frozenset[str]
) -> Int64Array:
    """Returns main elements, input bytes, largest input and output bytes of every kernel, int64, shape (kernels, 4).

    Unknown is −1: without recorded shapes, for lists of tensors, and for calls beyond the longest ``MAX_CALLS``. A
    call's result is not recorded; element-wise ones write as many elements as their largest input has, of the type of
    the first.

    Args:
        trace: The run.
        operator: int32, shape (kernels,): event row of the framework call, −1 for none.
        word: What each kernel does; only the first kernel of a call has a word of its own.
        duration_ns: int64, shape (kernels,).
        streaming: Words of kernels that read each input once and write each output once.
    """
    sizes = np.full((len(operator), 4), ABSENT, dtype=np.int64)
    wanted = np.flatnonzero(np.array([item in streaming for item in word], dtype=np.bool_) & (operator >= 0))
    wanted = wanted[np.argsort(-duration_ns[wanted], kind="stable")[:MAX_CALLS]]
    if not _has_shapes(trace, operator[wanted[:8]]):
        return sizes
    # One read per call; the number is bounded above.
    for row in wanted.tolist():
        tensors = _tensors(trace.arguments(int(operator[row])))
        if tensors:
            sizes[row] = _sizes(word[row], tensors)
    return sizes


def _has_shapes(trace: Trace, sample: Int32Array) -> bool:
    """Returns whether the recording keeps shapes: some of the longest calls have them."""
    return any("Input Dims" in trace.arguments(int(event)) for event in sample.tolist())


def _tensors(arguments: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Returns (elements, bytes of one) of every tensor a call was given, [] where one is not clear."""
    shapes, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list) or len(shapes) != len(types):
        return []
    found = []
    for shape, kind in zip(shapes, types, strict=True):
        if not isinstance(shape, list) or not shape:
            continue  # a number, or nothing passed
        if not all(isinstance(size, int) and size >= 0 for size in shape) or kind not in _BYTES_OF_TYPE:
            return []
        found.append((prod(shape), _BYTES_OF_TYPE[kind]))
    return found


def _sizes(word: str, tensors: list[tuple[int, int]]) -> tuple[int, int, int, int]:
    read = tensors[1:] if word in _WRITES_FIRST and len(tensors) > 1 else tensors
    input_bytes = [elements * size for elements, size in read]
    elements = max(elements for elements, _ in tensors)
    if word in _REDUCTIONS:
        written = 0
    elif word in _WRITES_FIRST:
        written = tensors[0][0] * tensors[0][1]
    else:
        written = elements * tensors[0][1]
    return elements, sum(input_bytes), max(input_bytes), written
