"""Element types a training job computes in: mixed precision, and products in eight bits.

Mixed precision keeps fp32 master weights beside weights and activations of two bytes. Quantised training leaves those
as they are and quantises what a product multiplies, right before it: a kernel each for the input, the weight (again for
every micro-batch, nothing is kept) and the gradient, priced as the measured ``dynamic_quant``; the products run as the
measured ``quant_matmul`` on the matrix unit's int8 rate. One quantised copy serves all products of a tensor, as scales
per tensor allow, and is what the backward pass keeps instead of the wide one where nothing else reads that. What it
does to accuracy cannot be computed from shapes.
"""

from dataclasses import dataclass, replace

from engine.core.errors import ScenarioError
from engine.devices.spec import DType
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_keys import Table, nearest

MIXED, QUANTIZED = "precision.mixed", "precision.quantized_training"
_MIXED_DTYPES = {"bf16": DType.BF16, "fp16": DType.FP16}
USUALLY_KEPT = "embedding,head,norm,router"
"""Layers usual recipes leave wide: what is most sensitive and takes little of the time."""
PRODUCT_PARTS = ("attention", "feed_forward", "experts", "head")
"""Parts of a model whose products can be narrow; attention itself (scores, softmax, values) never is."""
_NEVER_NARROW = ("embedding", "norm", "router")
"""Parts without products, and the router's tiny one: they stay wide whether they are named or not."""
BITS = 8


@dataclass(frozen=True, slots=True)
class NarrowProducts:
    """Which products are computed in fewer bits.

    Attributes:
        dtype: Of their operands; None where none is narrow.
        wide: Parts of the model that stay as they are.
    """

    dtype: DType | None = None
    wide: frozenset[str] = frozenset()

    def of(self, part: str) -> DType | None:
        """Returns the type of a part's operands, None where they stay wide."""
        return None if part in self.wide else self.dtype


def mixed_dtype(scenario: Scenario) -> DType:
    """Returns the type of weights and activations. Raises ScenarioError."""
    if not scenario.enabled(MIXED):
        return scenario.model.dtype
    table = Table(f"optimizations.{MIXED}", scenario.optimizations[MIXED])
    name = table.word("dtype", _MIXED_DTYPES, "bf16")
    table.finish()
    if not scenario.device.supports(_MIXED_DTYPES[name]):
        raise ScenarioError(f'{MIXED}: dtype = "{name}" is not multiplied by device {scenario.device.id}; use "fp16"')
    return _MIXED_DTYPES[name]


def with_mixed_precision(scenario: Scenario) -> Scenario:
    """Returns the scenario with the type its mixed precision asks for. Raises ScenarioError."""
    return replace(scenario, model=replace(scenario.model, dtype=mixed_dtype(scenario)))


def narrow_products(scenario: Scenario) -> NarrowProducts:
    """Returns which products of a scenario are quantised. Raises ScenarioError."""
    if not scenario.enabled(QUANTIZED):
        return NarrowProducts()
    table = Table(f"optimizations.{QUANTIZED}", scenario.optimizations[QUANTIZED])
    bits, kept = table.integer("bits", BITS), table.text("keep", USUALLY_KEPT)
    table.finish()
    if bits != BITS:
        raise table.wrong("bits", f"is {bits}; products of {BITS} bits are what matrix units train with")
    names = frozenset(name.strip() for name in kept.split(",") if name.strip())
    known = (*PRODUCT_PARTS, *_NEVER_NARROW)
    for name in sorted(names):
        if name not in known:
            raise table.wrong("keep", f"names {name!r}; {nearest(name, known)}")
    dtype = next((dtype for dtype in (DType.FP8, DType.INT8) if scenario.device.supports(dtype)), None)
    if dtype is None:
        raise ScenarioError(f"{QUANTIZED}: device {scenario.device.id} multiplies no eight-bit type")
    return NarrowProducts(dtype, names)
