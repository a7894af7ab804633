"""Signal-to-quantization-noise of a tensor: what rounding to so many bits leaves of it."""

from enum import StrEnum

import numpy as np

from engine.core.arrays import Float32Array
from engine.workloads.quantization.weights import ModelReadError, WeightTensor

GROUP_SIZE = 128
"""Elements that share a scale under GROUP: the usual group of AWQ and GPTQ."""
_CHUNK_ELEMENTS = 1 << 24
"""Rows looked at together: bounds the memory beside the tensor itself."""


class Granularity(StrEnum):
    """What shares one scale."""

    TENSOR = "tensor"
    CHANNEL = "channel"
    """Each output channel has its own."""
    GROUP = "group"
    """Each run of 128 elements of an output channel has its own."""


def channels(tensor: WeightTensor) -> Float32Array:
    """Returns a tensor as [output channels, everything else], float32.

    Raises:
        ModelReadError: It cannot be read, or holds infinities or NaN.
    """
    values = tensor.load()
    if not np.isfinite(values).all():
        raise ModelReadError(f"tensor {tensor.name} holds infinities or NaN: it cannot be quantized")
    moved = np.moveaxis(values, tensor.output_axis, 0)
    return np.ascontiguousarray(moved.reshape(moved.shape[0], -1))


def sqnr_db(rows: Float32Array, bits: int, granularity: Granularity) -> float:
    """Returns 10·log₁₀(Σw² ÷ Σ(w − q)²) in dB for symmetric uniform quantization; infinity where nothing is lost.

    q = round(w ÷ s) · s with s = max|w| ÷ (2^(bits−1) − 1) over everything that shares a scale: no value is clipped.

    Args:
        rows: Weights by output channel, shape (channels, elements).
        bits: Of a quantized weight.
        granularity: What shares a scale.
    """
    steps = float(2 ** (bits - 1) - 1)
    peak = float(np.abs(rows).max(initial=0.0))
    signal = noise = 0.0
    per_chunk = max(_CHUNK_ELEMENTS // max(rows.shape[1], 1), 1)
    for start in range(0, len(rows), per_chunk):
        part = rows[start : start + per_chunk].astype(np.float64)
        scale = _scale(part, granularity, peak) / steps
        with np.errstate(divide="ignore", invalid="ignore"):
            rounded = np.where(scale > 0, np.rint(part / scale) * scale, 0.0)
        signal += float(np.sum(part**2))
        noise += float(np.sum((part - rounded) ** 2))
    return float(10.0 * np.log10(signal / noise)) if noise > 0 else float("inf")


def _scale(
    part: np.ndarray[tuple[int, ...], np.dtype[np.float64]], granularity: Granularity, peak: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Returns the largest magnitude of what shares a scale, broadcast to the elements."""
    if granularity is Granularity.TENSOR:
        return np.full_like(part, peak)
    if granularity is Granularity.CHANNEL:
        return np.broadcast_to(np.abs(part).max(axis=1, keepdims=True), part.shape)
    starts = np.arange(0, part.shape[1], GROUP_SIZE)
    peaks = np.maximum.reduceat(np.abs(part), starts, axis=1)
    return np.repeat(peaks, np.diff(np.append(starts, part.shape[1])), axis=1)
