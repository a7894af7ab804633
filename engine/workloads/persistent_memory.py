"""What lives on a rank as long as the job: its sizes, and which allocations are a layer's weights, gradients, state."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.workloads.communication_settings import communication_settings
from engine.workloads.gradient_exchange import kept_bytes
from engine.workloads.parameters import (
    ADAM_STATE_BYTES,
    MAIN_GRADIENT_BYTES,
    WeightTensor,
    layer_weights,
    shard_count,
)
from engine.workloads.scenario import Scenario
from engine.workloads.tiering import moved_pieces

_BEFORE_THE_LAYERS = ("embedding", "positions")


@dataclass(frozen=True, slots=True, eq=False)
class PersistentMemory:
    """Allocations that live as long as the job; an allocation's block id is its place in ``sizes``.

    Attributes:
        sizes: int64, shape (allocations,), bytes.
        weights: Ids of the layers' weights, one per layer in the order of the stage; empty unless weights are cold.
        gradients: Ids of the layers' gradients, likewise.
        state: Ids of the optimizer's state.
    """

    sizes: Int64Array
    weights: range
    gradients: range
    state: range


def persistent_memory(scenario: Scenario, weights: Sequence[WeightTensor]) -> PersistentMemory:
    """Returns what lives as long as the job: weights, gradients, optimizer state.

    bf16 or fp16 weights (2 bytes a parameter), fp32 gradients in one flat buffer (4), fp32 master weight and two
    moments (12, over the replicas with a distributed optimizer): 18 bytes a parameter. ``reuse_fp32_parameters`` keeps
    of the master weights only what the training weights lack, 2 bytes. fp32 weights (4) have no master copy.
    Gradients a compression has not sent yet are one more buffer of their size. What is cold is in the pieces it moves
    in: of weights and gradients one flat buffer per layer, of the state pieces. State comes last.
    """
    element = scenario.model.dtype.size_bytes
    counts = np.array([tensor.element_count for tensor in weights], np.int64)
    first, layers = _layer_counts(scenario, weights)
    outside = int(counts.sum() - layers.sum())
    sizes = (counts * element).tolist()
    layer_ids = range(0)
    if scenario.memory.is_cold("weights"):
        per_layer = len(layer_weights(scenario.model, scenario.parallel))
        sizes[first : first + per_layer * len(layers)] = (layers * element).tolist()
        layer_ids = range(first, first + len(layers))
    gradient_ids = range(0)
    if scenario.memory.is_cold("gradients"):
        gradient_ids = range(len(sizes), len(sizes) + len(layers))
        sizes += (layers * MAIN_GRADIENT_BYTES).tolist()
        sizes += [outside * MAIN_GRADIENT_BYTES] if outside else []
    else:
        sizes.append(int(counts.sum()) * MAIN_GRADIENT_BYTES)
    kept = kept_bytes(communication_settings(scenario), scenario.parallel, weights)
    sizes += [kept] if kept else []
    state = _state_sizes(scenario, weights)
    ids = range(len(sizes), len(sizes) + len(state))
    return PersistentMemory(np.concatenate((np.array(sizes, np.int64), state)), layer_ids, gradient_ids, ids)


def cold_bytes(scenario: Scenario, held: PersistentMemory) -> int:
    """Returns what of a rank's persistent memory needs room in DDR."""
    state = held.state if scenario.memory.is_cold("optimizer_state") else range(0)
    return sum(int(held.sizes[ids.start : ids.stop].sum()) for ids in (held.weights, held.gradients, state))


def _layer_counts(scenario: Scenario, weights: Sequence[WeightTensor]) -> tuple[int, Int64Array]:
    """Returns where the first layer's weights begin, and the elements of every layer of the stage, int64."""
    first = next((at for at, tensor in enumerate(weights) if tensor.name not in _BEFORE_THE_LAYERS), len(weights))
    of_one = layer_weights(scenario.model, scenario.parallel)
    layers = scenario.model.layers // scenario.parallel.pipeline
    return first, np.full(layers, sum(tensor.element_count for tensor in of_one), np.int64)


def _state_sizes(scenario: Scenario, weights: Sequence[WeightTensor]) -> Int64Array:
    """Returns the sizes of the optimizer's state alone, int64."""
    state = [shard_count(tensor, scenario.parallel) for tensor in weights]
    if scenario.parallel.distributed_optimizer:
        state = [sum(state)]
    moment = ADAM_STATE_BYTES // 3
    master = moment
    if scenario.model.dtype is DType.FP32:
        # An fp32 job's weights are their own master copy: only the two moments are left.
        master = 0
    elif scenario.enabled("memory.reuse_fp32_parameters"):
        master -= scenario.model.dtype.size_bytes
    parts = np.array([part for part in (master, moment, moment) if part], np.int64)
    sizes = np.outer(np.array(state, np.int64), parts).ravel()
    return moved_pieces(sizes) if scenario.memory.is_cold("optimizer_state") else sizes
