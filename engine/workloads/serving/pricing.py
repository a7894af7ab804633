"""Prices of iterations on a device: forward passes priced by the cost model, on grids."""

from collections.abc import Sequence

import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.core.units import NS_PER_S
from engine.devices.spec import DeviceSpec
from engine.runtime.collectives import Network, collective_durations
from engine.runtime.cost import concatenate, operator_durations
from engine.workloads.serving.engine_costs import EngineCosts
from engine.workloads.serving.forward import (
    ForwardOperator,
    Shard,
    attention,
    embedding_operators,
    head_operators,
    layer_operators,
)
from engine.workloads.serving.iteration_prices import IterationPrices
from engine.workloads.serving.settings import ServingSettings

_STEPS_PER_DOUBLING = 2
"""Points of a grid between a number and twice that number: between them times are taken to lie on a line."""


def iteration_prices(
    shard: Shard, device: DeviceSpec, network: Network, settings: ServingSettings, costs: EngineCosts
) -> IterationPrices:
    """Returns the prices of iterations of one model shard.

    Args:
        shard: The device's part of the model.
        device: It.
        network: Links of tensor and expert groups; the group's ranks are the first of a server.
        settings: Largest batch and iteration; whether graphs are replayed.
        costs: Of the engine's program.
    """
    tokens = _grid(max(settings.max_batched_tokens, settings.max_batch * (1 + settings.speculative_tokens), 2))
    sequences = _grid(max(settings.max_batch, 2))
    contexts = _grid(1 << 17)
    queries = _grid(max(settings.max_batched_tokens, 2))
    layer = layer_operators(shard, tokens)
    first, head = embedding_operators(shard, tokens), head_operators(shard, sequences)
    layers = shard.model.layers
    # Attention is one more operator of every layer.
    operator_count = layers * (len(layer) + 1) + len(first) + len(head)
    block_bytes = shard.kv_bytes_per_token * settings.block_tokens
    return IterationPrices(
        tokens=tokens.astype(np.float64),
        linear_ns=layers * _total_ns(layer, device, network, shard) + _total_ns(first, device, network, shard),
        queries=queries.astype(np.float64),
        keys=contexts.astype(np.float64),
        chunk_ns=_attention_ns(shard, device, np.ones_like(queries), queries, contexts),
        sequences=sequences.astype(np.float64),
        contexts=contexts.astype(np.float64),
        decode_ns=_attention_ns(shard, device, sequences, np.ones_like(sequences), contexts),
        head_ns=_total_ns(head, device, network, shard),
        eager_host_ns=operator_count * costs.operator_ns,
        graph_host_ns=device.host_dispatch_ns,
        engine_ns=costs.iteration_ns,
        engine_sequence_ns=costs.sequence_ns,
        swap_ns_per_block=block_bytes / device.ddr_bytes_per_s * NS_PER_S,
        graph_mode=int(settings.graph_mode),
    )


def _grid(highest: int) -> Int64Array:
    """Returns whole numbers from 1 to at least ``highest``, evenly spaced by ratio, int64."""
    points = np.arange(0, np.log2(highest) + 1, 1 / _STEPS_PER_DOUBLING)
    return np.unique(np.rint(2.0**points).astype(np.int64))


def _total_ns(operators: Sequence[ForwardOperator], device: DeviceSpec, network: Network, shard: Shard) -> Float64Array:
    """Returns the device time of a list of operators, float64, shape (rows,): each table has one row per batch."""
    tables = [item.table for item in operators if item.table is not None]
    total: Float64Array = np.zeros(1)
    if tables:
        durations = operator_durations(device, concatenate(tables)).reshape(len(tables), -1)
        total = durations.sum(axis=0).astype(np.float64)
    for item in operators:
        if item.payload_bytes is not None:
            ranks = range(shard.expert if item.in_experts else shard.tensor)
            total = total + collective_durations(item.collective, item.payload_bytes, ranks, network)
    return total


def operator_times(
    operators: Sequence[ForwardOperator], device: DeviceSpec, network: Network, shard: Shard
) -> Float64Array:
    """Returns the device time of each operator of a list whose tables have one row, ns, shape (operators,)."""
    return np.array([float(_total_ns([item], device, network, shard)[0]) for item in operators], dtype=np.float64)


def _attention_ns(
    shard: Shard, device: DeviceSpec, sequences: Int64Array, queries: Int64Array, contexts: Int64Array
) -> Float64Array:
    """Returns the time of attention in all layers, float64, shape (sequences, contexts); keys are at least queries."""
    rows = np.repeat(np.arange(len(sequences)), len(contexts))
    keys = np.maximum(np.tile(contexts, len(sequences)), queries[rows])
    model = shard.model
    windows = [model.window_of(layer) for layer in range(model.layers)]
    total = np.zeros(len(rows))
    for window in sorted(set(windows)):
        table = attention(shard, window, sequences[rows], queries[rows], keys)
        total += windows.count(window) * operator_durations(device, table)
    return total.reshape(len(sequences), len(contexts))


def kv_block_count(shard: Shard, device: DeviceSpec, settings: ServingSettings) -> int:
    """Returns the blocks of keys and values that fit beside the weights and one iteration's activations.

    Activations: the widest tensors of a layer for all tokens of an iteration, and the logits of the batch, as an engine
    finds them by a trial run before it reserves the rest.
    """
    if settings.kv_block_count is not None:
        return settings.kv_block_count
    model = shard.model
    inner = (2 if model.gated else 1) * shard.ffn * max(model.top_k, 1)
    activations = settings.max_batched_tokens * (4 * model.hidden + inner + shard.heads * model.head_dim * 2) * 2
    logits = settings.max_batch * model.vocab * 4 * 2
    room = device.hbm_usable_bytes * settings.memory_ratio - shard.weight_bytes - activations - logits
    return max(int(room // (shard.kv_bytes_per_token * settings.block_tokens)), 0)
