"""How gradients and weights are spread over a pass: shapes of its products say what is ready or needed when."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import Float64Array, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.progress import Stretch
from engine.optimizations.products import products_of

ROUNDING_RATIO = 0.1
"""Norms, biases and padding are less than this share of a model's weights."""
LEAST_RATIO = 0.5
"""Where products make less than this share of the weights, and no embedding is named, the rest could be anywhere."""
_EMBEDDING_WORDS = ("embedding", "scatter", "indexput", "gather")


def by_gradients(graph: TaskGraph, stretch: Stretch, elements: float, tokens: int = 0) -> Stretch:
    """Returns a backward pass measured by the gradients it has completed instead of by its time.

    Products that sum over tokens make gradients of weights as large as their result. What they do not account for, the
    embedding above all, is complete at the end of the pass; so is a head that shares its weights with the embedding.
    Without shapes the pass comes back as it is.

    Args:
        graph: The tasks.
        stretch: The pass.
        elements: Gradients the rank exchanges.
        tokens: As ``products_of`` the whole graph tells them, where the caller knows.
    """
    found = products_of(graph, np.sort(stretch.task), tokens)
    made = found.makes_weight_gradient
    task, amount = found.task[made], (found.m * found.n)[made].astype(np.float64)
    place = _places(stretch, task)
    ends_in_embedding = _names_embedding(graph, stretch.task[-max(len(stretch.task) // 10, 1) :])
    if not _accounts_for(amount, elements, ends_in_embedding):
        return stretch
    rest = elements - amount.sum()
    if ends_in_embedding and rest < ROUNDING_RATIO * elements:
        rest += amount.max()
        amount[np.argmax(amount)] = 0.0
    return _measured(stretch, place, amount, (max(rest, 0.0), len(stretch.task) - 1))


def by_weights(graph: TaskGraph, stretch: Stretch, elements: float, tokens: int = 0) -> Stretch:
    """Returns a forward pass measured by the weights its products need; the rest, the embedding, is needed at once.

    A head that shares its weights with the embedding is needed with it.

    Args:
        graph: The tasks.
        stretch: The pass.
        elements: Weights the rank gathers.
        tokens: See ``by_gradients``.
    """
    found = products_of(graph, np.sort(stretch.task), tokens)
    task, amount = found.task, (found.k * found.n).astype(np.float64)
    # What follows once all weights were needed is a backward pass, whose products need the same ones again.
    amount = np.diff(np.minimum(np.cumsum(amount), elements), prepend=0.0)
    begins_in_embedding = _names_embedding(graph, stretch.task[: max(len(stretch.task) // 10, 1)])
    if not _accounts_for(amount, elements, begins_in_embedding):
        return stretch
    rest = elements - float(amount.sum())
    if begins_in_embedding and rest < ROUNDING_RATIO * elements:
        rest += amount.max()
        amount[np.argmax(amount)] = 0.0
    return _measured(stretch, _places(stretch, task), amount, (max(rest, 0.0), 0))


def _accounts_for(amount: Float64Array, elements: float, has_embedding: bool) -> bool:
    """Returns whether products and an embedding make up all weights, as far as it can be told."""
    made = float(amount.sum())
    least = 0.0 if has_embedding else LEAST_RATIO * elements
    return len(amount) > 0 and least <= made <= (1 + ROUNDING_RATIO) * elements


def _places(stretch: Stretch, task: Int32Array) -> Int64Array:
    order = np.argsort(stretch.task)
    answer: Int64Array = order[np.searchsorted(stretch.task[order], task)]
    return answer


def _measured(stretch: Stretch, place: Int64Array, amount: Float64Array, rest: tuple[float, int]) -> Stretch:
    each = np.zeros(len(stretch.task))
    np.add.at(each, place, amount)
    each[rest[1]] += rest[0]
    done = np.cumsum(each)
    return replace(stretch, done_ratio=done / done[-1])


def _names_embedding(graph: TaskGraph, task: Int32Array) -> bool:
    names = {graph.strings.text(int(name)).casefold().replace("_", "") for name in np.unique(graph.name[task])}
    return any(word in name for name in names for word in _EMBEDDING_WORDS)
