"""Sizes of products from the shapes of their operands."""

import numpy as np
import pytest

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskKind
from engine.optimizations.products import operand_sizes, product_sizes, products_of

TOKENS, HIDDEN, FFN = 2048, 4096, 11008


def graph_of(shapes):
    builder = GraphBuilder()
    for shape in shapes:
        text = builder.strings.intern(shape)
        builder.add_task("MatMulV3", TaskKind.CUBE, stream=Stream.COMPUTE, duration_ns=1, shape=text)
    return builder.build()


def layer(tokens, hidden, ffn):
    sizes = ((hidden, 3 * hidden), (hidden, hidden), (hidden, 2 * ffn), (ffn, hidden))
    forward = [f"{tokens},{k};{k},{n}" for k, n in sizes]
    inputs = [f"{tokens},{n};{n},{k}" for k, n in sizes]
    weights = [f"{n},{tokens};{tokens},{k}" for k, n in sizes]
    return forward + inputs + weights


@pytest.mark.parametrize("tokens", [TOKENS, HIDDEN, 512])
def test_products_that_sum_over_tokens_make_gradients_of_weights(tokens):
    found = products_of(graph_of(layer(tokens, HIDDEN + 128, FFN)))
    assert found.tokens == tokens
    made = found.makes_weight_gradient
    assert made.sum() == 4
    hidden = HIDDEN + 128
    weights = 3 * hidden * hidden + hidden * hidden + 2 * hidden * FFN + FFN * hidden
    assert (found.m * found.n)[made].sum() == weights


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4096,1024;1024,3072", (4096, 3072, 1024)),
        ("4096,1024;3072,1024", (4096, 3072, 1024)),
        ("1024,4096;1024,3072", (4096, 3072, 1024)),
        ("2,2048,1024;1024,3072", (4096, 3072, 1024)),
        ('"4096,1024;1024,3072;3072"', (4096, 3072, 1024)),
    ],
)
def test_operands_may_be_stored_transposed(text, sizes):
    assert product_sizes(operand_sizes(text)) == sizes


@pytest.mark.parametrize("text", ["", "4096,1024", "4096;1024", "a,b;c,d", "2,3,4;5,6,7"])
def test_what_is_no_product_of_two_matrices_has_no_sizes(text):
    assert operand_sizes(text) is None


def test_a_graph_without_shapes_has_no_products():
    builder = GraphBuilder()
    builder.add_task("MatMulV3", TaskKind.CUBE, stream=Stream.COMPUTE, duration_ns=1)
    found = products_of(builder.build())
    assert len(found) == 0
    assert found.tokens == 0
    assert not np.any(found.makes_weight_gradient)
