"""What an iteration costs, as tables the compiled engine interpolates in. All times in ns, float64."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202

from typing import NamedTuple

import numba
import numpy as np

from engine.core.arrays import Float64Array


class IterationPrices(NamedTuple):
    """Device time of the parts of an iteration, and the host's.

    Attributes:
        tokens: Grid, shape (a,): tokens of an iteration.
        linear_ns: Shape (a,): everything whose time depends on the number of tokens alone: projections, feed-forward,
            norms, collectives.
        queries: Grid, shape (b,): tokens of a prompt computed at once.
        keys: Grid, shape (c,): tokens they see, themselves included.
        chunk_ns: Shape (b, c): attention of all layers for one such part of a prompt.
        sequences: Grid, shape (d,): sequences that decode.
        contexts: Grid, shape (e,): their mean length.
        decode_ns: Shape (d, e): attention of all layers.
        head_ns: Shape (d,): output projection and sampling of so many sequences.
        eager_host_ns: Dispatch of all operators one by one.
        graph_host_ns: Dispatch of a captured graph.
        engine_ns: Work of the engine between two iterations, which nothing hides.
        engine_sequence_ns: Likewise, per running sequence.
        swap_ns_per_block: Copy of a block between HBM and DDR.
        graph_mode: 1 where iterations that only decode replay a graph.
    """

    tokens: Float64Array
    linear_ns: Float64Array
    queries: Float64Array
    keys: Float64Array
    chunk_ns: Float64Array
    sequences: Float64Array
    contexts: Float64Array
    decode_ns: Float64Array
    head_ns: Float64Array
    eager_host_ns: float
    graph_host_ns: float
    engine_ns: float
    engine_sequence_ns: float
    swap_ns_per_block: float
    graph_mode: int


@numba.njit(cache=True)
def along(grid, values, at):
    """Returns the value at a place of a grid, on the line between its neighbours; beyond an end on the last line."""
    place = _place(grid, at)
    share = (at - grid[place]) / (grid[place + 1] - grid[place])
    return values[place] + (values[place + 1] - values[place]) * share


@numba.njit(cache=True)
def across(rows, columns, values, row, column):
    """Returns the value at a place of a table with two grids, bilinear."""
    place = _place(rows, row)
    share = (row - rows[place]) / (rows[place + 1] - rows[place])
    low = along(columns, values[place], column)
    return low + (along(columns, values[place + 1], column) - low) * share


@numba.njit(cache=True)
def _place(grid, at):
    return min(max(np.searchsorted(grid, at, side="right") - 1, 0), len(grid) - 2)
