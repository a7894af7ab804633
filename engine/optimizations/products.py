"""Matrix products of a graph by the shapes of their operands: sizes, tokens, and which make gradients of weights."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph, TaskKind

_DIMENSIONS = 2
_NEARLY_ALL = 0.9
"""A router or a head has other sides than the products of layers; they are few."""


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Products [m, k] × [k, n] whose shapes are told. Columns of shape (n,).

    Attributes:
        task: int32.
        m: int64 rows of the result.
        n: int64 columns of the result.
        k: int64 summed dimension.
        tokens: The dimension of activations all products of a pass share; 0 where no shape tells.
    """

    task: Int32Array
    m: Int64Array
    n: Int64Array
    k: Int64Array
    tokens: int

    def __len__(self) -> int:
        return len(self.task)

    @property
    def makes_weight_gradient(self) -> BoolArray:
        """bool, shape (n,): sums over tokens, so the result is as large as a weight."""
        answer: BoolArray = (self.k == self.tokens) & (self.tokens > 0)
        return answer


def products_of(graph: TaskGraph, task: Int32Array | None = None, tokens: int = 0) -> Products:
    """Returns the products among tasks (all of the graph by default) whose operands' shapes are matrices.

    What counts as tokens is told by all products of the graph: a forward pass alone sums over none. Who asks often
    finds that out once and gives it.
    """
    if task is None:
        return _products(graph, np.flatnonzero(graph.kind == TaskKind.CUBE), tokens)
    return _products(graph, task[graph.kind[task] == TaskKind.CUBE], tokens or products_of(graph).tokens)


def _products(graph: TaskGraph, cubes: AnyArray, known_tokens: int) -> Products:
    shapes, inverse = np.unique(graph.shape[cubes], return_inverse=True)
    pairs = [operand_sizes(graph.strings.text(int(item))) for item in shapes]
    count = np.bincount(inverse, minlength=len(shapes)).astype(np.int64)
    tokens = known_tokens or _tokens(pairs, count)
    sizes = [(0, 0, 0) if pair is None else product_sizes(pair, tokens) for pair in pairs]
    table = np.array(sizes, dtype=np.int64).reshape(-1, 3)[inverse]
    known = table[:, 0] > 0
    m, n, k = (table[known, column] for column in range(3))
    return Products(cubes[known].astype(np.int32), m, n, k, tokens)


def operand_sizes(shape: str) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Returns both operands of ``"4096,1024;1024,3072"`` as matrices, None where the text is no product of two.

    Leading dimensions of the first operand are rows.
    """
    operands = shape.replace('"', "").split(";")[:2]
    try:
        sizes = [[int(part) for part in operand.split(",")] for operand in operands]
    except ValueError:
        return None
    if len(sizes) != _DIMENSIONS or len(sizes[0]) < _DIMENSIONS or len(sizes[1]) != _DIMENSIONS:
        return None
    left, right = sizes
    return (int(np.prod(left[:-1])), left[-1]), (right[0], right[1])


def product_sizes(pair: tuple[tuple[int, int], tuple[int, int]], tokens: int = 0) -> tuple[int, int, int]:
    """Returns m, n, k of a product whose operands may be stored transposed; zeros where nothing can be summed.

    Where more than one dimension could be the summed one, tokens that both operands have are: the result is a weight's
    gradient then. Else the operands are taken as stored, then the second one as transposed.
    """
    left, right = pair
    if tokens and tokens in left and tokens in right and left != right:
        return _other(left, tokens), _other(right, tokens), tokens
    for k in (left[1], left[0]):
        if k in right:
            return _other(left, k), right[1] if right[0] == k else right[0], k
    return 0, 0, 0


def _other(size: tuple[int, int], taken: int) -> int:
    return size[1] if size[0] == taken else size[0]


def _tokens(pairs: list[tuple[tuple[int, int], tuple[int, int]] | None], count: Int64Array) -> int:
    """Returns the dimension that the first operand of nearly all products has and about half of the products sum over.

    Activations and their gradients come first in a product, and have the tokens as one of their sides; weights never
    have. Products for results and for gradients of inputs keep the tokens, those for gradients of weights sum over
    them, as a side of both operands. Among sides that are as common the one nearest to a half is taken: a width of the
    model is summed elsewhere.
    """
    first: dict[int, int] = {}
    shared: dict[int, int] = {}
    # A loop over distinct shapes.
    for pair, number in zip(pairs, count.tolist(), strict=True):
        if pair is None:
            continue
        for size in {*pair[0]}:
            first[size] = first.get(size, 0) + number
        for size in {*pair[0]} & {*pair[1]}:
            shared[size] = shared.get(size, 0) + number
    if not first:
        return 0
    most = max(first.values())
    common = [size for size, number in first.items() if number >= _NEARLY_ALL * most]
    found = min(
        common, key=lambda size: (abs(2 * shared.get(size, 0) - first[size]), shared.get(size, 0), -first[size])
    )
    # What every product sums over are no tokens: nothing would come out of the pass.
    known = sum(number for pair, number in zip(pairs, count.tolist(), strict=True) if pair is not None)
    return found if shared.get(found, 0) < known else 0
