"""Matrix products whose collective follows at once with everything waiting for it: what MC2 operators overlap."""

import re
from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity, activities
from engine.analyses.fusion.kernel_sequence import KernelSequence
from engine.core.arrays import Int32Array, Int64Array
from engine.trace.trace import Trace

_CALLS = (
    ("all_reduce", re.compile(r"all_?reduce", re.IGNORECASE), "torch_npu.npu_mm_all_reduce_base"),
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE), "torch_npu.npu_mm_reduce_scatter_base"),
)
_GATHER = re.compile(r"all_?gather", re.IGNORECASE)
_TENSOR_PARALLEL = ("tensor_model_parallel_size", "tensor_parallel_size", "tp_size")
_AT_ONCE_NS = 50_000
"""The collective starts within this of the product's end, else something else came between."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinedProducts:
    """Products with their collectives.

    Attributes:
        call: The replacement of the most frequent kind.
        product: int32 event rows, shape (n,).
        collective: int32 event rows, shape (n,).
        product_ns: int64.
        collective_ns: int64.
        start_ns: int64, of the product.
        end_ns: int64, of the collective.
    """

    call: str
    product: Int32Array
    collective: Int32Array
    product_ns: Int64Array
    collective_ns: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array


def matmul_communication(trace: Trace, sequence: KernelSequence) -> JoinedProducts | None:
    """Returns the exposed pairs, None where there are none or the capture says that no tensor is split.

    Data-parallel gradient reductions also follow products, but the next kernel does not wait for them: only pairs
    after which no computing starts before the collective ends are taken. GPUs are left out: the calls are Ascend's.
    """
    sizes = trace.metadata.parallel_sizes
    if sequence.is_gpu or any(sizes.get(key) == 1 for key in _TENSOR_PARALLEL):
        return None
    rows = np.flatnonzero(activities(trace) == Activity.COMMUNICATION).astype(np.int32)
    if len(rows) == 0 or len(sequence) == 0:
        return None
    kind = _kinds(trace, rows)
    rows, kind = rows[kind >= 0], kind[kind >= 0]
    order = np.argsort(sequence.end_ns, kind="stable")
    ends = sequence.end_ns[order]
    starts = np.sort(sequence.start_ns)
    start_ns = trace.events.start_ns[rows]
    end_ns = start_ns + trace.events.duration_ns[rows]
    before = np.searchsorted(ends, start_ns, side="right") - 1
    previous = order[np.maximum(before, 0)]
    is_product = np.isin(sequence.word, [index for index, word in enumerate(sequence.words) if word == "matmul"])
    exposed = np.searchsorted(starts, end_ns) == np.searchsorted(starts, sequence.start_ns[previous], side="right")
    at_once = start_ns - sequence.end_ns[previous] <= _AT_ONCE_NS
    hit = (before >= 0) & is_product[previous] & exposed & at_once
    if not np.any(hit):
        return None
    most = int(np.bincount(kind[hit]).argmax())
    return JoinedProducts(
        call=_CALLS[most][2],
        product=sequence.event[previous[hit]],
        collective=rows[hit],
        product_ns=sequence.duration_ns[previous[hit]],
        collective_ns=trace.events.duration_ns[rows[hit]],
        start_ns=sequence.start_ns[previous[hit]],
        end_ns=end_ns[hit],
    )


def gathered_products(trace: Trace, sequence: KernelSequence) -> JoinedProducts | None:
    """Returns the pairs of an exposed gathering and the product right after it, None as ``matmul_communication``."""
    sizes = trace.metadata.parallel_sizes
    if sequence.is_gpu or any(sizes.get(key) == 1 for key in _TENSOR_PARALLEL):
        return None
    rows = np.flatnonzero(activities(trace) == Activity.COMMUNICATION).astype(np.int32)
    names, inverse = np.unique(trace.events.name[rows], return_inverse=True)
    gathers = [_GATHER.search(trace.strings.text(name)) is not None for name in names.tolist()]
    rows = rows[np.array(gathers, dtype=np.bool_)[inverse]] if len(rows) else rows
    if len(rows) == 0 or len(sequence) == 0:
        return None
    order = np.argsort(sequence.start_ns, kind="stable")
    starts = sequence.start_ns[order]
    ends = np.sort(sequence.end_ns)
    start_ns, end_ns = trace.events.start_ns[rows], trace.events.start_ns[rows] + trace.events.duration_ns[rows]
    after = np.searchsorted(starts, end_ns, side="left")
    following = order[np.minimum(after, len(order) - 1)]
    is_product = np.isin(sequence.word, [index for index, word in enumerate(sequence.words) if word == "matmul"])
    # Nothing computes while it lasts: as many kernels have ended by its start as have started by its end.
    exposed = np.searchsorted(ends, start_ns, side="right") == after
    at_once = sequence.start_ns[following] - end_ns <= _AT_ONCE_NS
    hit = (after < len(order)) & is_product[following] & exposed & at_once
    if not np.any(hit):
        return None
    product = following[hit]
    return JoinedProducts(
        call="torch_npu.npu_all_gather_base_mm",
        product=sequence.event[product],
        collective=rows[hit],
        product_ns=sequence.duration_ns[product],
        collective_ns=trace.events.duration_ns[rows[hit]],
        start_ns=start_ns[hit],
        end_ns=sequence.end_ns[product],
    )


def _kinds(trace: Trace, rows: Int32Array) -> Int64Array:
    """Returns the index into ``_CALLS`` of each collective, −1 for others; decided per distinct name."""
    names, inverse = np.unique(trace.events.name[rows], return_inverse=True)
    verdicts = []
    for name in names.tolist():
        text = trace.strings.text(name)
        verdicts.append(next((index for index, (_, shape, _) in enumerate(_CALLS) if shape.search(text)), -1))
    return np.array(verdicts, dtype=np.int64)[inverse]
