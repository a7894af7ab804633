"""A forward pass of a decoder over a batch of tokens, as the operators of one device.

Operators whose cost depends on the number of tokens alone are apart from attention, whose cost depends on lengths.
Fused as serving engines run them: RMSNorm with the residual addition, SwiGLU, rotary positions, flash attention.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskKind
from engine.runtime.cost import catalogue, grouped_matmul, matmul
from engine.runtime.cost.operators import OperatorTable
from engine.workloads.models.spec import ModelSpec
from engine.workloads.serving.settings import WeightFormat

MXFP4_BITS = 4.25
"""Bits of a weight: 4, and a scale of 8 for every 32 (OCP Microscaling Formats specification 1.0)."""
W4_BITS = 4.125
"""Bits of a weight: 4, and a scale of 16 for every group of 128 (the usual group of AWQ and GPTQ)."""


class ForwardOperator(NamedTuple):
    """One operator of a pass; tables have one row per number of tokens.

    Attributes:
        name: As Ascend's profiler names its kernel.
        kind: Resource.
        table: Cost columns; None for a collective.
        collective: What is exchanged in the tensor or expert group.
        payload_bytes: int64, shape (rows,), of a collective.
        in_experts: Whether its group is the one that shares experts.
    """

    name: str
    kind: TaskKind
    table: OperatorTable | None = None
    collective: CollectiveKind = CollectiveKind.UNKNOWN
    payload_bytes: Int64Array | None = None
    in_experts: bool = False


@dataclass(frozen=True, slots=True)
class Shard:
    """What one device has of a model.

    Attributes:
        model: The whole.
        tensor: Devices that share every layer.
        expert: Devices that share the experts, 1 for none.
        weights: How weights are stored.
    """

    model: ModelSpec
    tensor: int = 1
    expert: int = 1
    weights: WeightFormat = WeightFormat.BF16

    @property
    def heads(self) -> int:
        """Query heads of the device."""
        return self.model.heads // self.tensor

    @property
    def kv_heads(self) -> int:
        """Key heads of the device: at least one, repeated where there are fewer than devices."""
        return max(self.model.kv_heads // self.tensor, 1)

    @property
    def ffn(self) -> int:
        """Width of the device's part of a feed-forward block or expert."""
        return self.model.ffn if self.expert > 1 else self.model.ffn // self.tensor

    @property
    def experts(self) -> int:
        """Experts of the device."""
        return self.model.experts // self.expert

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one token in all layers, BF16."""
        return 2 * self.model.layers * self.kv_heads * self.model.head_dim * DType.BF16.size_bytes

    @property
    def weight_bytes(self) -> int:
        """Weights of the device."""
        model = self.model
        qkv = (self.heads + 2 * self.kv_heads) * model.head_dim * model.hidden
        attention = qkv + self.heads * model.head_dim * model.hidden
        matrices = model.ffn_matrices * self.ffn * model.hidden
        expert_count = max(self.experts, 1)
        embedding = model.vocab * model.hidden // self.tensor * (1 if model.tied_embeddings else 2)
        plain, experts = _bits(self.weights, in_experts=False), _bits(self.weights, in_experts=True)
        feed = matrices * expert_count * (experts if model.experts else plain)
        router = model.experts * model.hidden * DType.BF16.size_bytes * 8
        layers = model.layers * (attention * plain + feed + router)
        return round((layers + embedding * DType.BF16.size_bytes * 8) / 8)


def _bits(weights: WeightFormat, *, in_experts: bool) -> float:
    if weights is WeightFormat.W8A8:
        return 8.0
    if weights is WeightFormat.W4A16:
        return W4_BITS
    return MXFP4_BITS if weights is WeightFormat.MXFP4 and in_experts else 16.0


def layer_operators(shard: Shard, tokens: Int64Array) -> list[ForwardOperator]:
    """Returns what a layer runs before attention, then what it runs after, without attention itself.

    Args:
        shard: The device's part.
        tokens: int64, shape (rows,): tokens of an iteration.
    """
    model, size = shard.model, DType.BF16.size_bytes
    q_width, kv_width = shard.heads * model.head_dim, shard.kv_heads * model.head_dim
    operators = [_norm(shard, tokens), *_projection(shard, tokens, q_width + 2 * kv_width, model.hidden)]
    if model.qk_norm:
        rows = tokens * (shard.heads + shard.kv_heads)
        operators.append(_vector("RmsNorm", catalogue.norm(rows, model.head_dim)))
    if model.gated:
        rows = tokens * (shard.heads + shard.kv_heads)
        operators.append(_vector("RotaryMul", catalogue.rotary(rows, model.head_dim)))
    operators.append(_vector("ReshapeAndCache", catalogue.copy(tokens * 2 * kv_width)))
    operators += _projection(shard, tokens, model.hidden, q_width)
    whole = tokens * model.hidden * size
    if shard.tensor > 1:
        operators.append(_collective("hcom_allReduce_", CollectiveKind.ALL_REDUCE, whole))
    operators.append(_norm(shard, tokens))
    operators += _experts(shard, tokens) if model.experts else _feed_forward(shard, tokens)
    if shard.tensor > 1:
        operators.append(_collective("hcom_allReduce_", CollectiveKind.ALL_REDUCE, whole))
    return operators


def head_operators(shard: Shard, sequences: Int64Array) -> list[ForwardOperator]:
    """Returns the output projection, its gathering, and the choice of the next tokens, for so many sequences."""
    model = shard.model
    part = model.vocab // shard.tensor
    logits = matmul(sequences, part, model.hidden, DType.BF16, out_bytes_per_element=4)
    operators = [_norm(shard, sequences), ForwardOperator("MatMulV3", TaskKind.CUBE, logits)]
    if shard.tensor > 1:
        operators.append(_collective("hcom_allGather_", CollectiveKind.ALL_GATHER, sequences * model.vocab * 4))
    return [
        *operators,
        _vector("SoftmaxV2", catalogue.softmax(sequences, model.vocab)),
        _vector("ArgMaxV2", catalogue.vector_operator("reduce", sequences, model.vocab, DType.FP32, 4, 0)),
    ]


def embedding_operators(shard: Shard, tokens: Int64Array) -> list[ForwardOperator]:
    """Returns the look-up of the tokens."""
    return [_vector("GatherV2", catalogue.gather(tokens, shard.model.hidden))]


ATTENTION = "FusedInferAttentionScore"
"""The kernel of ``attention``."""


def attention(shard: Shard, window: int, sequences: ArrayLike, queries: ArrayLike, keys: ArrayLike) -> OperatorTable:
    """Returns fused attention of one layer over its cache of keys and values."""
    model = shard.model
    return catalogue.flash_attention(
        sequences, shard.heads, shard.kv_heads, queries, keys, model.head_dim, window=window
    )


def _feed_forward(shard: Shard, tokens: Int64Array) -> list[ForwardOperator]:
    model = shard.model
    inner = 2 * shard.ffn if model.gated else shard.ffn
    activation = catalogue.swiglu(tokens, shard.ffn) if model.gated else catalogue.gelu(tokens, shard.ffn)
    return [
        *_projection(shard, tokens, inner, model.hidden),
        _vector("SwiGlu" if model.gated else "Gelu", activation),
        *_projection(shard, tokens, model.hidden, shard.ffn),
    ]


def _experts(shard: Shard, tokens: Int64Array) -> list[ForwardOperator]:
    """Returns router and experts; tokens are taken to be spread evenly."""
    model, size = shard.model, DType.BF16.size_bytes
    rows = -(-tokens * model.top_k // shard.expert)
    inner = 2 * shard.ffn if model.gated else shard.ffn
    exchanged = tokens * model.top_k * model.hidden * size // max(shard.tensor, 1)
    operators = [
        ForwardOperator("MatMulV3", TaskKind.CUBE, matmul(tokens, model.experts, model.hidden)),
        _vector("MoeGatingTopKSoftmax", catalogue.top_k_routing(tokens, model.experts)),
        _vector("MoeInitRouting", catalogue.gather(rows, model.hidden)),
    ]
    if shard.expert > 1:
        operators.append(_collective("hcom_allToAll_", CollectiveKind.ALL_TO_ALL, exchanged, in_experts=True))
    operators += [
        _grouped(shard, rows, inner, model.hidden),
        _vector("SwiGlu" if model.gated else "Gelu", catalogue.swiglu(rows, shard.ffn)),
        _grouped(shard, rows, model.hidden, shard.ffn),
    ]
    if shard.expert > 1:
        operators.append(_collective("hcom_allToAll_", CollectiveKind.ALL_TO_ALL, exchanged, in_experts=True))
    return [*operators, _vector("MoeFinalizeRouting", catalogue.scatter_add(rows, model.hidden, DType.BF16))]


def _grouped(shard: Shard, rows: Int64Array, columns: int, summed: int) -> ForwardOperator:
    dtype = DType.INT8 if shard.weights is WeightFormat.W8A8 else DType.BF16
    table = grouped_matmul(shard.experts, rows, columns, summed, dtype)
    saved = _saved_bytes(shard.weights, columns * summed, in_experts=True)
    used = np.minimum(shard.experts, rows)
    return ForwardOperator("GroupedMatmul", TaskKind.CUBE, replace(table, read_bytes=table.read_bytes - used * saved))


def _projection(shard: Shard, tokens: Int64Array, out: int, summed: int) -> list[ForwardOperator]:
    """Returns x [tokens, summed] × W [summed, out] in the format of the weights."""
    if shard.weights is WeightFormat.W8A8:
        return [
            _vector("DynamicQuant", catalogue.cast(tokens * summed, DType.BF16, DType.INT8)),
            ForwardOperator(
                "QuantBatchMatmulV3",
                TaskKind.MIX,
                matmul(tokens, out, summed, DType.INT8, out_bytes_per_element=DType.BF16.size_bytes),
            ),
        ]
    table = matmul(tokens, out, summed)
    saved = _saved_bytes(shard.weights, out * summed, in_experts=False)
    name = "WeightQuantBatchMatmulV2" if saved else "MatMulV3"
    return [ForwardOperator(name, TaskKind.CUBE, replace(table, read_bytes=table.read_bytes - saved))]


def _saved_bytes(weights: WeightFormat, elements: int, *, in_experts: bool) -> int:
    """Returns by how much stored weights are smaller than BF16 where they are multiplied as BF16."""
    if weights is WeightFormat.W8A8:
        return 0
    return round(elements * (16.0 - _bits(weights, in_experts=in_experts)) / 8)


def _norm(shard: Shard, tokens: Int64Array) -> ForwardOperator:
    family, name = ("add_rms_norm", "AddRmsNorm") if shard.model.gated else ("layer_norm", "LayerNormV4")
    return _vector(name, catalogue.norm(tokens, shard.model.hidden, family=family))


def _vector(name: str, table: OperatorTable) -> ForwardOperator:
    return ForwardOperator(name, TaskKind.VECTOR, table)


def _collective(
    name: str, kind: CollectiveKind, payload_bytes: Int64Array, *, in_experts: bool = False
) -> ForwardOperator:
    return ForwardOperator(name, TaskKind.COLLECTIVE, None, kind, payload_bytes, in_experts)
