"""Named operators of a decoder's training step, with the bytes each one really touches.

Every function takes scalars or arrays (broadcast) and returns an ``OperatorTable``. "rows" are tokens of this device.
"""

import numpy as np
from numpy.typing import ArrayLike

from engine.devices.spec import DType
from engine.runtime.cost.operators import NO_WINDOW, Law, OperatorTable, operator_table

F32 = 4
"""Bytes of fp32 statistics and master weights."""


def vector_operator(
    family: str,
    rows: ArrayLike,
    row_length: ArrayLike,
    dtype: DType,
    read: float,
    write: float,
    *,
    cold: ArrayLike = False,
) -> OperatorTable:
    """Returns a vector operator whose inputs hold ``read`` and outputs ``write`` bytes per element of [rows, row]."""
    rows, row_length = np.asarray(rows, np.int64), np.asarray(row_length, np.int64)
    elements = rows * row_length
    return operator_table(
        family,
        Law.VECTOR,
        dtype,
        m=rows,
        n=row_length,
        read_bytes=np.rint(elements * read).astype(np.int64),
        write_bytes=np.rint(elements * write).astype(np.int64),
        cold=cold,
    )


def elementwise(
    elements: ArrayLike,
    dtype: DType = DType.BF16,
    *,
    inputs: int = 2,
    family: str = "elementwise",
    cold: ArrayLike = False,
) -> OperatorTable:
    """Returns an add, mul or the like of ``inputs`` tensors of one size; cold where it walks over flat gradients."""
    size = dtype.size_bytes
    return vector_operator(family, 1, elements, dtype, inputs * size, size, cold=cold)


def gradient_accumulation(elements: ArrayLike, gradient: DType = DType.BF16) -> OperatorTable:
    """Returns fp32 += gradient over a weight's accumulator, last touched a micro-batch ago."""
    return vector_operator("elementwise", 1, elements, DType.FP32, F32 + gradient.size_bytes, F32, cold=True)


def cast(elements: ArrayLike, source: DType, target: DType, *, cold: ArrayLike = False) -> OperatorTable:
    """Returns a change of type; cold where it copies master weights back."""
    return vector_operator("cast", 1, elements, DType.FP32, source.size_bytes, target.size_bytes, cold=cold)


def copy(elements: ArrayLike, dtype: DType = DType.BF16) -> OperatorTable:
    """Returns a copy inside the device's memory."""
    return vector_operator("copy", 1, elements, dtype, dtype.size_bytes, dtype.size_bytes)


def fill(elements: ArrayLike, dtype: DType = DType.BF16) -> OperatorTable:
    """Returns a tensor set to a constant: writes only."""
    return vector_operator("fill", 1, elements, dtype, 0, dtype.size_bytes)


def dropout(elements: ArrayLike, dtype: DType = DType.BF16) -> OperatorTable:
    """Returns a dropout with its mask of one bit per element."""
    return vector_operator("dropout", 1, elements, dtype, dtype.size_bytes + 1 / 8, dtype.size_bytes)


def norm(rows: ArrayLike, hidden: ArrayLike, dtype: DType = DType.BF16, *, family: str = "rms_norm") -> OperatorTable:
    """Returns an RMSNorm or layer norm (``family="layer_norm"``); ``add_`` before it also adds the residual stream.

    The addition costs the bytes of one tensor more read and one more written; its arithmetic hides behind the norm's
    (the same vector unit, one instruction against a dozen), so the norm's constants serve.
    """
    extra = dtype.size_bytes if family.startswith("add_") else 0
    plain = family.removeprefix("add_")
    return vector_operator(plain, rows, hidden, dtype, dtype.size_bytes + extra, dtype.size_bytes + extra)


def norm_grad(
    rows: ArrayLike, hidden: ArrayLike, dtype: DType = DType.BF16, *, family: str = "rms_norm_grad"
) -> OperatorTable:
    """Returns its derivative: reads the output's gradient and the input, writes the input's gradient."""
    return vector_operator(family, rows, hidden, dtype, 2 * dtype.size_bytes, dtype.size_bytes)


def swiglu(rows: ArrayLike, ffn: ArrayLike, dtype: DType = DType.BF16) -> OperatorTable:
    """Returns silu(gate) x up over [rows, 2 x ffn] to [rows, ffn]."""
    return vector_operator("swiglu", rows, ffn, dtype, 2 * dtype.size_bytes, dtype.size_bytes)


def swiglu_grad(rows: ArrayLike, ffn: ArrayLike, dtype: DType = DType.BF16) -> OperatorTable:
    """Returns its derivative: reads three tensors of [rows, ffn], writes two."""
    return vector_operator("swiglu_grad", rows, ffn, dtype, 3 * dtype.size_bytes, 2 * dtype.size_bytes)


def gelu(rows: ArrayLike, ffn: ArrayLike, dtype: DType = DType.BF16) -> OperatorTable:
    """Returns a GELU."""
    return vector_operator("gelu", rows, ffn, dtype, dtype.size_bytes, dtype.size_bytes)


def gelu_grad(rows: ArrayLike, ffn: ArrayLike, dtype: DType = DType.BF16) -> OperatorTable:
    """Returns its derivative."""
    return vector_operator("gelu_grad", rows, ffn, dtype, 2 * dtype.size_bytes, dtype.size_bytes)


def rotary(rows: ArrayLike, width: ArrayLike, dtype: DType = DType.BF16, *, grad: bool = False) -> OperatorTable:
    """Returns a rotary embedding of ``rows`` (tokens x heads) of ``width`` (size of a head); tables stay in cache."""
    family = "rotary_grad" if grad else "rotary"
    return vector_operator(family, rows, width, dtype, dtype.size_bytes, dtype.size_bytes)


def softmax(rows: ArrayLike, row_length: ArrayLike, dtype: DType = DType.FP32, *, grad: bool = False) -> OperatorTable:
    """Returns a softmax over the last axis, or its derivative (reads two tensors)."""
    size = dtype.size_bytes
    return vector_operator("softmax_grad" if grad else "softmax", rows, row_length, dtype, size * (1 + grad), size)


def cross_entropy(tokens: ArrayLike, vocabulary: ArrayLike, *, grad: bool = False) -> OperatorTable:
    """Returns the fused loss over fp32 logits, or its derivative; unfused losses are built from their parts."""
    family = "cross_entropy_grad" if grad else "cross_entropy"
    return vector_operator(family, tokens, vocabulary, DType.FP32, F32, F32 if grad else 0)


def gather(rows: ArrayLike, row_length: ArrayLike, dtype: DType = DType.BF16) -> OperatorTable:
    """Returns rows picked by index: embeddings, tokens sent to experts."""
    return vector_operator("gather", rows, row_length, dtype, dtype.size_bytes, dtype.size_bytes)


def scatter_add(rows: ArrayLike, row_length: ArrayLike, dtype: DType = DType.FP32) -> OperatorTable:
    """Returns rows added by index: the embedding's gradient, results of experts. Reads what it adds to."""
    return vector_operator("scatter", rows, row_length, dtype, 2 * dtype.size_bytes, dtype.size_bytes)


def top_k_routing(tokens: ArrayLike, experts: ArrayLike, dtype: DType = DType.FP32) -> OperatorTable:
    """Returns softmax and choice of the best experts for every token."""
    return vector_operator("top_k_routing", tokens, experts, dtype, dtype.size_bytes, dtype.size_bytes)


def adamw(elements: ArrayLike, *, gradient_bytes: int = F32) -> OperatorTable:
    """Returns one fused AdamW over fp32 master weights: reads weight, gradient, two moments; writes three of them."""
    return vector_operator("adamw", 1, elements, DType.FP32, 3 * F32 + gradient_bytes, 3 * F32, cold=True)


def square_sum(elements: ArrayLike, dtype: DType = DType.FP32) -> OperatorTable:
    """Returns the norm of a tensor's gradient, for clipping: reads only."""
    return vector_operator("reduce", 1, elements, dtype, dtype.size_bytes, 0, cold=True)


def flash_attention(
    batch: ArrayLike,
    heads: ArrayLike,
    kv_heads: ArrayLike,
    queries: ArrayLike,
    keys: ArrayLike,
    head_size: ArrayLike,
    dtype: DType = DType.BF16,
    *,
    causal: ArrayLike = True,
    window: ArrayLike = NO_WINDOW,
    grad: bool = False,
) -> OperatorTable:
    """Returns fused attention over ``batch`` sequences, or its derivative.

    Forward reads queries, keys, values and writes the result; backward reads those, the result and its gradient and
    writes three gradients.
    """
    batch, heads, kv_heads, queries, keys, head_size = (
        np.asarray(value, np.int64) for value in (batch, heads, kv_heads, queries, keys, head_size)
    )
    outer = batch * heads * queries * head_size * dtype.size_bytes
    inner = batch * kv_heads * keys * head_size * dtype.size_bytes
    return operator_table(
        "flash_attention_grad" if grad else "flash_attention",
        Law.ATTENTION,
        dtype,
        batch=batch,
        m=queries,
        n=keys,
        k=head_size,
        heads=heads,
        kv_heads=kv_heads,
        window=window,
        causal=causal,
        read_bytes=(3 * outer if grad else outer) + 2 * inner,
        write_bytes=outer + (2 * inner if grad else 0),
    )
