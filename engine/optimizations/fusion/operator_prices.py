"""The fused operator that replaces a chain, read from the shapes of the chain's kernels, and its price on a device.

Prices come from ``engine.runtime.cost``, whose constants are fitted to measured kernels. Where a capture names no
element types, activations are taken as BF16.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from engine.devices.spec import DeviceSpec, DType
from engine.optimizations.fusion.kernel_shapes import KernelShape, product_size
from engine.runtime.cost import OperatorTable, catalogue, matmul, operator_durations

_FLOATS = (DType.FP32, DType.FP16, DType.BF16)

Chain: TypeAlias = Sequence[KernelShape]
OperatorReader: TypeAlias = Callable[[Chain], tuple[OperatorTable, ...]]
"""Returns the operators that replace a chain, () where its shapes do not say."""

ASSUMED_DTYPE = DType.BF16
"""Of activations in captures without types: what large models are trained in."""


def price_ns(read: OperatorReader, chain: Chain, device: DeviceSpec) -> float | None:
    """Returns what the operators that replace a chain take on a device, None where its shapes do not say."""
    tables = read(chain)
    return float(sum(int(operator_durations(device, table).sum()) for table in tables)) if tables else None


def ratio(read: OperatorReader, instead_of: OperatorReader, chain: Chain, device: DeviceSpec) -> float | None:
    """Returns price of the operators of ``read`` ÷ those of ``instead_of``, None where shapes do not say.

    What the model gets wrong of a kernel it gets wrong of both, so a measured time of the latter times this is better
    than a price.
    """
    after, before = price_ns(read, chain, device), price_ns(instead_of, chain, device)
    return after / before if after is not None and before else None


def rms_norm(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns the norm over the rows its mean is taken of."""
    item = _first(chain, "mean")
    return () if item is None else (catalogue.norm(item.rows, item.columns, _dtype(chain)),)


def rms_norm_grad(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns its derivative over the rows its sum is taken of."""
    item = _first(chain, "sum")
    return () if item is None else (catalogue.norm_grad(item.rows, item.columns, _dtype(chain)),)


def swiglu(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns the activation over what is cut in two, or over the gate."""
    whole, gate = _first(chain, "slice"), _first(chain, "silu", "sigmoid")
    if whole is not None:
        return (catalogue.swiglu(whole.rows, whole.columns // 2, _dtype(chain)),)
    return () if gate is None else (catalogue.swiglu(gate.rows, gate.columns, _dtype(chain)),)


def swiglu_grad(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns its derivative over what is put together, or over the gate."""
    whole, gate = _first(chain, "cat"), _first(chain, "silu_grad")
    if whole is not None:
        width = whole.columns if len(whole.inputs) > 1 else whole.columns // 2
        return (catalogue.swiglu_grad(whole.rows, width, _dtype(chain)),)
    return () if gate is None else (catalogue.swiglu_grad(gate.rows, gate.columns, _dtype(chain)),)


def rope(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns the rotation of the heads its additions write."""
    item = _first(chain, "add")
    return () if item is None else (catalogue.rotary(item.rows, item.columns, _dtype(chain)),)


def rope_grad(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns its derivative."""
    item = _first(chain, "add")
    return () if item is None else (catalogue.rotary(item.rows, item.columns, _dtype(chain), grad=True),)


def scaled_masked_softmax(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns the softmax over the rows of scores, in their own type."""
    item = _first(chain, "softmax")
    return () if item is None else (catalogue.softmax(item.rows, item.columns, _narrowest(chain)),)


def scaled_masked_softmax_grad(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns its derivative; where only the number of scores is known, what moving the same bytes costs."""
    item = _first(chain, "softmax_grad", "cast", "mask")
    if item is not None:
        return (catalogue.softmax(item.rows, item.columns, _narrowest(chain), grad=True),)
    elements = max((item.elements for item in chain), default=0)
    return (catalogue.elementwise(elements, _narrowest(chain), inputs=2),) if elements else ()


def cross_entropy(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns the loss over tokens × vocabulary, its derivative, or both where the chain is both."""
    words = [item.word for item in chain]
    item = _first(chain, "cast", "max", "log_softmax", "nll_grad", "scatter", "log_softmax_grad")
    if item is None:
        return ()
    backward = any(word in ("nll_grad", "scatter", "log_softmax_grad") for word in words) and "exp" not in words
    tables = [] if backward else [catalogue.cross_entropy(item.rows, item.columns)]
    if backward or words[-2:] == ["mul", "cast"]:
        tables.append(catalogue.cross_entropy(item.rows, item.columns, grad=True))
    return tuple(tables)


def attention(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns the attention whose products the chain has: the one that sums over the head says queries and keys.

    Causal where scores are masked and as many keys as queries are looked at: so decoders are trained. Masked scores of
    several times more keys are those of a context rank, whose queries lie spread over the sequence: on average they see
    half of the keys.
    """
    products = [size for item in chain if item.is_batched and (size := product_size(item)) is not None]
    if not products:
        return ()
    batch, queries, head, keys = min(products, key=lambda size: size[2])
    words = [item.word for item in chain]
    masked = any(word in ("mask", "add") for word in words)
    causal = masked and queries == keys
    if masked and queries > 1 and keys > queries and keys % queries == 0:
        keys //= 2
    grad = "softmax_grad" in words
    table = catalogue.flash_attention(
        1, batch, batch, queries, keys, head, _product_dtype(chain), causal=causal, grad=grad
    )
    return (table,)


def adamw(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns one update of all tensors."""
    return _batched(chain, lambda elements: catalogue.adamw(elements))


def square_sum(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns one norm of all gradients."""
    return _batched(chain, lambda elements: catalogue.square_sum(elements))


def scaling(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns one scaling of all gradients."""
    return _batched(chain, lambda elements: catalogue.elementwise(elements, DType.FP32, inputs=1, cold=True))


def one_by_one(read: OperatorReader) -> OperatorReader:
    """Returns the reader of the same operators called for every kernel by itself."""

    def single(chain: Chain) -> tuple[OperatorTable, ...]:
        return tuple(table for item in chain for table in read((item,)))

    return single


def weight_product(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns the product of a weight's gradient as it is."""
    size = product_size(chain[0])
    if size is None:
        return ()
    batch, rows, summed, columns = size
    return (matmul(rows, columns, summed, _product_dtype(chain), batch=batch),)


def accumulating_product(chain: Chain) -> tuple[OperatorTable, ...]:
    """Returns the product that adds to its FP32 result: it also reads what it adds to."""
    size = product_size(chain[0])
    if size is None:
        return ()
    batch, rows, summed, columns = size
    table = matmul(rows, columns, summed, _product_dtype(chain), batch=batch, out_bytes_per_element=catalogue.F32)
    return (replace(table, read_bytes=table.read_bytes + batch * rows * columns * catalogue.F32),)


READERS: Mapping[str, OperatorReader] = {
    "attention": attention,
    "cross_entropy": cross_entropy,
    "rms_norm": rms_norm,
    "rms_norm_grad": rms_norm_grad,
    "rope": rope,
    "rope_grad": rope_grad,
    "scaled_masked_softmax": scaled_masked_softmax,
    "scaled_masked_softmax_grad": scaled_masked_softmax_grad,
    "swiglu": swiglu,
    "swiglu_grad": swiglu_grad,
}
"""By pattern of ``engine.analyses.fusion``; the others are priced by their traffic alone."""
RELATIVE_READERS: Mapping[str, tuple[OperatorReader, OperatorReader]] = {
    "gradient_accumulation": (accumulating_product, weight_product),
    "gradient_norm": (square_sum, one_by_one(square_sum)),
    "foreach_scale": (scaling, one_by_one(scaling)),
    "optimizer": (adamw, one_by_one(adamw)),
}
"""Operators, and the recorded kernels whose measured time their ratio is taken of: a product in front, or all."""


def _first(chain: Chain, *words: str) -> KernelShape | None:
    """Returns the first kernel of these words, in the order of the words, whose first input has rows."""
    return next((item for word in words for item in chain if item.word == word and item.is_matrix), None)


def _dtype(chain: Chain) -> DType:
    return next((item.dtype for item in chain if item.dtype is not None), ASSUMED_DTYPE)


def _narrowest(chain: Chain) -> DType:
    """Returns the float of fewest bytes: what goes into and comes out of a chain that computes wide in between."""
    known = [item.dtype for item in chain if item.dtype in _FLOATS]
    return min(known, key=lambda dtype: dtype.size_bytes, default=ASSUMED_DTYPE)


def _product_dtype(chain: Chain) -> DType:
    return next((item.dtype for item in chain if item.word in ("bmm", "matmul") and item.dtype), ASSUMED_DTYPE)


def _batched(chain: Chain, table: Callable[[int], OperatorTable]) -> tuple[OperatorTable, ...]:
    sizes = [item.elements for item in chain if item.word in ("adamw", "norm", "mul")]
    return (table(sum(sizes)),) if sizes and all(sizes) else ()
