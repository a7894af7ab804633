"""Matrix products and other kernels of a recorded step, read for the sizes of the model behind them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np

from engine.analyses.steps import steps
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace
from engine.workloads.calibration.kernel_texts import KernelShapes, kernel_shapes

_PRODUCTS = ("MatMul", "MatMulV2", "MatMulV3")


@dataclass(frozen=True, slots=True)
class Product:
    """A product [m, k] × [k, n] in no particular orientation.

    Attributes:
        extents: m, n and k, ascending.
        count: How often it ran.
    """

    extents: tuple[int, int, int]
    count: int


@dataclass(frozen=True, slots=True)
class RankKernels:
    """Distinct kernels of one rank.

    Attributes:
        kernels: Shapes of each, with how often it ran.
        products: Of matrices, by extents.
        types: How often each type of kernel ran, with or without shapes.
        step_count: Steps they belong to.
    """

    kernels: tuple[tuple[KernelShapes, int], ...]
    products: tuple[Product, ...]
    types: Mapping[str, int]
    step_count: int

    def of(self, *types: str) -> Iterator[tuple[KernelShapes, int]]:
        """Yields kernels of these types."""
        return ((kernel, count) for kernel, count in self.kernels if kernel.op_type in types)

    def per_step(self, *types: str) -> float:
        """Returns how often kernels of these types ran in a step."""
        return sum(self.types.get(name, 0) for name in types) / self.step_count


def rank_kernels(trace: Trace) -> RankKernels:
    """Returns the distinct kernels of a rank. A Python loop over distinct texts, not over events."""
    table = trace.kernels
    columns = (table.op_type, table.input_shapes, table.input_types, table.output_shapes, table.output_types)
    rows, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True) if len(table) else ([], [])
    found: list[tuple[KernelShapes, int]] = []
    types: Counter[str] = Counter()
    for row, count in zip(np.asarray(rows).tolist(), np.asarray(counts).tolist(), strict=True):
        op_type, *texts = (trace.strings.text(item) if item != ABSENT else "" for item in row)
        types[op_type] += count
        shapes = kernel_shapes(op_type, *texts) if texts[0] else None
        if shapes is not None:
            found.append((shapes, count))
    numbered = sum(step.step is not None for step in steps(trace))
    return RankKernels(tuple(found), _products(found), types, max(numbered, 1))


def _products(kernels: Sequence[tuple[KernelShapes, int]]) -> tuple[Product, ...]:
    totals: Counter[tuple[int, int, int]] = Counter()
    for kernel, count in kernels:
        extents = product_extents(kernel) if kernel.op_type in _PRODUCTS else None
        if extents is not None:
            totals[extents] += count
    return tuple(Product(extents, count) for extents, count in totals.items())


def product_extents(kernel: KernelShapes) -> tuple[int, int, int] | None:
    """Returns m, n and k of a product, ascending; None where its shapes are not one's.

    With a result the extents follow from element counts, which hold for transposed and blocked operands alike; without
    one (a simulated recording) from the extent both operands share.
    """
    if len(kernel.inputs) < 2 or not kernel.inputs[0] or not kernel.inputs[1]:
        return None
    first, second = kernel.inputs[0], kernel.inputs[1]
    if kernel.outputs and kernel.outputs[0]:
        result = prod(kernel.outputs[0])
        inner = isqrt(prod(first) * prod(second) // result)
        if inner == 0 or prod(first) % inner or prod(second) % inner:
            return None
        return _ascending(prod(first) // inner, prod(second) // inner, inner)
    if len(first) == 2 and len(second) == 2 and first[1] == second[0]:
        return _ascending(first[0], second[1], first[1])
    return None


def _ascending(*extents: int) -> tuple[int, int, int]:
    small, middle, large = sorted(extents)
    return small, middle, large


def without(extents: tuple[int, int, int], size: int) -> tuple[int, int] | None:
    """Returns the other two extents of a product that has one of ``size``, ascending; None where it has none."""
    if size not in extents:
        return None
    rest = list(extents)
    rest.remove(size)
    return rest[0], rest[1]
