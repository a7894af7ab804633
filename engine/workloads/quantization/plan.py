"""Bits per layer that keep a bound on the noise, and which layers are sensitive."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.errors import EngineError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.workloads.quantization.sqnr import Granularity, channels, sqnr_db
from engine.workloads.quantization.weights import WeightTensor


@dataclass(frozen=True, slots=True)
class LayerQuality:
    """One tensor.

    Attributes:
        name: Of the tensor.
        shape: Of the tensor.
        stored_bits: Bits of an element in the file.
        sqnr_db: Bits → signal-to-quantization-noise in dB.
        planned_bits: Fewest bits that keep the bound; ``stored_bits`` where none do: the layer stays as it is.
    """

    name: str
    shape: tuple[int, ...]
    stored_bits: int
    sqnr_db: dict[int, float]
    planned_bits: int

    @property
    def is_sensitive(self) -> bool:
        """Whether no number of bits keeps the bound, so that the layer stays in floating point."""
        return self.planned_bits == self.stored_bits


@dataclass(frozen=True, slots=True)
class QuantizationPlan:
    """A model's layers under a bound.

    Attributes:
        layers: The most sensitive first: least SQNR at the fewest bits.
        bound_db: The bound.
        granularity: What shares a scale.
        stored_bytes: Of the layers in the file.
        planned_bytes: Under the plan, scales not counted.
    """

    layers: tuple[LayerQuality, ...]
    bound_db: float
    granularity: Granularity
    stored_bytes: int
    planned_bytes: int


def quantization_plan(
    weights: Sequence[WeightTensor],
    bits: Sequence[int],
    granularity: Granularity,
    bound_db: float,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> QuantizationPlan:
    """Returns the plan: for each layer the fewest of ``bits`` whose SQNR is at least ``bound_db``.

    Tensors are read one at a time.

    Raises:
        EngineError: There is nothing to quantize, or a number of bits outside 2 to 16.
        ModelReadError: A tensor cannot be read.
        OperationCancelled: Cancelled.
    """
    if not weights:
        raise EngineError("the model holds no floating-point matrices: there is nothing to quantize")
    if not bits or any(not 2 <= item <= 16 for item in bits):
        raise EngineError(f"bits {list(bits)}: name numbers from 2 to 16, for example 4,8")
    layers = []
    for number, tensor in enumerate(weights):
        cancel.check()
        progress(number / len(weights), tensor.name)
        rows = channels(tensor)
        quality = {count: sqnr_db(rows, count, granularity) for count in sorted(bits)}
        kept = (count for count in sorted(bits) if quality[count] >= bound_db and count < tensor.stored_bits)
        planned = next(kept, tensor.stored_bits)
        layers.append(LayerQuality(tensor.name, tensor.shape, tensor.stored_bits, quality, planned))
    by_name = {tensor.name: tensor.element_count for tensor in weights}
    fewest = min(bits)
    return QuantizationPlan(
        layers=tuple(sorted(layers, key=lambda layer: layer.sqnr_db[fewest])),
        bound_db=bound_db,
        granularity=granularity,
        stored_bytes=sum(by_name[layer.name] * layer.stored_bits for layer in layers) // 8,
        planned_bytes=sum(by_name[layer.name] * layer.planned_bits for layer in layers) // 8,
    )
