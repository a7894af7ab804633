"""Prices of iterations that can be checked by hand."""

import numpy as np

from engine.workloads.serving.iteration_prices import IterationPrices


def simple_prices(
    *,
    token_ns: float = 1_000.0,
    weights_ns: float = 10_000_000.0,
    host_ns: float = 0.0,
    graph_host_ns: float = 0.0,
    graph_mode: int = 0,
    engine_ns: float = 0.0,
) -> IterationPrices:
    """Returns prices where an iteration takes ``weights_ns`` and ``token_ns`` per token, and attention nothing."""
    grid = np.array([1.0, 1_000_000.0])
    flat = np.zeros((2, 2))
    return IterationPrices(
        tokens=grid,
        linear_ns=weights_ns + grid * token_ns,
        queries=grid,
        keys=grid,
        chunk_ns=flat,
        sequences=grid,
        contexts=grid,
        decode_ns=flat,
        head_ns=np.zeros(2),
        eager_host_ns=host_ns,
        graph_host_ns=graph_host_ns,
        engine_ns=engine_ns,
        engine_sequence_ns=0.0,
        swap_ns_per_block=100_000.0,
        graph_mode=graph_mode,
    )
