"""Operators of the cann-bench table as the kernels a device runs for them.

One function per operator turns shapes, types and attributes of a row into kernels; the table's own notes name the
kernels where there is more than one. ``Case`` is what such a function gets.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from engine.devices.catalogue import topology_of
from engine.devices.spec import DeviceSpec, DType
from engine.devices.topology import Reach
from engine.runtime.cost.catalogue import flash_attention, vector_operator
from engine.runtime.cost.operators import Law, OperatorTable, matmul, operator_table

Shape = list[int]

DTYPES = {
    "float32": DType.FP32,
    "float16": DType.FP16,
    "bfloat16": DType.BF16,
    "int8": DType.INT8,
    "int32": DType.INT32,
    "int64": DType.INT64,
    "bool": DType.BOOL,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table.

    Attributes:
        shapes: Shape per input; None for an input left out; a list of shapes for a list of tensors.
        dtypes: Type per input.
        attributes: As in the file.
        device: Where it ran.
        kernels: Names of the kernels the file lists, with counts.
    """

    shapes: Sequence[Any]
    dtypes: Sequence[DType | None]
    attributes: Mapping[str, Any]
    device: DeviceSpec
    kernels: Mapping[str, int]

    @property
    def dtype(self) -> DType:
        """Type of the first input."""
        return self.dtypes[0] or DType.FP32

    def size(self, index: int) -> int:
        """Bytes of one element of an input."""
        dtype = self.dtypes[min(index, len(self.dtypes) - 1)]
        return (dtype or DType.FP32).size_bytes


Kernels = list[OperatorTable]


def _elements(shape: Sequence[int]) -> int:
    return int(prod(shape))


def _rows(shape: Sequence[int]) -> tuple[int, int]:
    return _elements(shape[:-1]), int(shape[-1])


def _input_bytes(case: Case) -> int:
    total = 0
    for index, shape in enumerate(case.shapes):
        if shape is not None:
            shapes = shape if shape and isinstance(shape[0], list) else [shape]
            total += sum(_elements(one) for one in shapes) * case.size(index)
    return total


def _unary(family: str) -> Callable[[Case], Kernels]:
    def kernels(case: Case) -> Kernels:
        size = case.dtype.size_bytes
        return [vector_operator(family, 1, _elements(case.shapes[0]), case.dtype, size, size)]

    return kernels


def _softmax(case: Case) -> Kernels:
    shape, size = case.shapes[0], case.dtype.size_bytes
    axis = int(case.attributes["dim"]) % len(shape)
    rows = _elements(shape) // shape[axis]
    family = "softmax" if axis == len(shape) - 1 else "softmax_strided"
    return [vector_operator(family, rows, shape[axis], case.dtype, size, size)]


def _rms_norm(case: Case) -> Kernels:
    rows, width = _rows(case.shapes[0])
    return [vector_operator("rms_norm", rows, width, case.dtype, case.size(0), case.size(0))]


def _group_norm(case: Case) -> Kernels:
    shape, size = case.shapes[0], case.dtype.size_bytes
    rows = shape[0] * int(case.attributes["num_groups"])
    return [vector_operator("group_norm", rows, _elements(shape) // rows, case.dtype, size, size)]


def _dynamic_quant(case: Case) -> Kernels:
    rows, width = _rows(case.shapes[0])
    return [vector_operator("dynamic_quant", rows, width, case.dtype, case.size(0), 1)]


def _add_rms_norm_quant(case: Case) -> Kernels:
    rows, width = _rows(case.shapes[0])
    size = case.size(0)
    return [vector_operator("add_rms_norm_dynamic_quant", rows, width, case.dtype, 2 * size, size + 1)]


def _dequant_swiglu_quant(case: Case) -> Kernels:
    rows, width = _rows(case.shapes[0])
    return [vector_operator("dequant_swiglu_quant", rows, width, case.dtype, case.size(0), 0.5)]


def _addcdiv(case: Case) -> Kernels:
    elements = sum(_elements(shape) for shape in case.shapes[0])
    size = case.dtype.size_bytes
    return [vector_operator("foreach_addcdiv", 1, elements, case.dtype, 3 * size, size)]


def _transpose(case: Case) -> Kernels:
    size = case.dtype.size_bytes
    return [vector_operator("transpose", 1, _elements(case.shapes[0]), case.dtype, size, size)]


def _mean(case: Case) -> Kernels:
    shape = case.shapes[0]
    return [vector_operator("reduce", 1, _elements(shape), case.dtype, case.dtype.size_bytes, 0)]


def _roi_align(case: Case) -> Kernels:
    boxes = case.shapes[1][0]
    bins = int(case.attributes["outputHeight"]) * int(case.attributes["outputWidth"])
    channels = case.shapes[0][1]
    layout = [_layout_change(_elements(case.shapes[0]), case.dtype)]
    return [*layout, vector_operator("roi_align", boxes, bins * channels, case.dtype, 4 * case.size(0), case.size(0))]


def _scatter(case: Case) -> Kernels:
    """The table has no kernel for it: two copies, the reduction ran elsewhere."""
    return [vector_operator("copy", 1, _elements(case.shapes[0]), case.dtype, case.size(0), case.size(0))]


def _top_k_routing(case: Case) -> Kernels:
    rows, width = _rows(case.shapes[0])
    return [vector_operator("top_k_routing", rows, width, case.dtype, case.size(0), case.size(0))]


def _layout_change(elements: int, dtype: DType) -> OperatorTable:
    return vector_operator("layout_change", 1, elements, dtype, dtype.size_bytes, dtype.size_bytes)


def _groups(case: Case) -> tuple[int, int, int]:
    """Returns groups that got rows, rows in all, and the mean of a group rounded up."""
    ends = [0, *case.attributes["group_list"]]
    sizes = [after - before for before, after in pairwise(ends) if after > before]
    used, total = max(len(sizes), 1), sum(sizes)
    return used, total, -(-total // used)


def _grouped_matmul(case: Case) -> Kernels:
    used, total, mean = _groups(case)
    k = int(case.shapes[0][1])
    n = int(next(extent for extent in case.shapes[1][1:] if extent != k or case.shapes[1][1] == case.shapes[1][2]))
    size = case.size(0)
    return [
        operator_table(
            "grouped_matmul",
            Law.MATMUL,
            case.dtype,
            m=mean,
            n=n,
            k=k,
            batch=used,
            read_bytes=(total * k + used * n * k) * size,
            write_bytes=total * n * size,
        )
    ]


def _grouped_matmul_swiglu_quant(case: Case) -> Kernels:
    used, total, mean = _groups(case)
    k, n = (int(extent) for extent in case.shapes[1][1:])
    product = operator_table(
        "grouped_matmul_swiglu_quant",
        Law.MATMUL,
        case.dtype,
        m=mean,
        n=n,
        k=k,
        batch=used,
        read_bytes=total * k + used * n * k,
        write_bytes=total * n // 2,
    )
    return [_layout_change(_elements(case.shapes[1]), DType.INT8), product]


def _quant_matmul(case: Case) -> Kernels:
    shape, weights = case.shapes[0], case.shapes[1]
    batch = _elements(shape[:-2])
    return [
        matmul(shape[-2], weights[-1], shape[-1], DType.INT8, batch=batch, out_bytes_per_element=2, family=family)
        for family in ("quant_matmul",)
    ]


def _attention(case: Case) -> Kernels:
    batch, queries, heads, head_size = case.shapes[0]
    _, keys, kv_heads, _ = case.shapes[1]
    causal = bool(case.attributes["is_causal"])
    return [flash_attention(batch, heads, kv_heads, queries, keys, head_size, case.dtype, causal=causal)]


def _sparse_attention(case: Case) -> Kernels:
    query, key = case.shapes[0], case.shapes[1]
    heads_first = case.attributes["inputLayout"] == "BNSD"
    batch, queries, heads, head_size = (query[0], query[2], query[1], query[3]) if heads_first else query
    chosen = case.shapes[3][-1]
    size = case.size(0)
    kernels = [
        operator_table(
            "sparse_attention",
            Law.ATTENTION,
            case.dtype,
            batch=batch * queries,
            m=heads,
            n=chosen,
            k=head_size,
            read_bytes=_elements(query) * size + batch * queries * chosen * head_size * size,
            write_bytes=_elements(query) * size,
        )
    ]
    moved = _elements(query) + _elements(key)
    if case.kernels.get("Transpose"):
        kernels.append(vector_operator("transpose", 1, 2 * _elements(query), case.dtype, size, size))
    if case.kernels.get("Slice"):
        kernels.append(vector_operator("slice", 1, moved, case.dtype, size, size))
    return kernels


def _matmul_reduce_scatter(case: Case) -> Kernels:
    m, k = case.shapes[0]
    n = case.shapes[1][0] if case.attributes["is_trans_b"] else case.shapes[1][1]
    ranks = int(case.attributes["world_size"])
    link = topology_of(case.device).link(Reach.NODE)
    sent_bytes = 2 * m * n * (ranks - 1) / ranks
    rate = link.group_bytes_per_s(ranks) * link.efficiency_ratio.value if link else float("nan")
    int8 = case.dtype is DType.INT8
    family = "quant_matmul_reduce_scatter" if int8 else "matmul_reduce_scatter"
    transfer_ns = round(sent_bytes / rate * 1e9)
    return [matmul(m, n, k, case.dtype, out_bytes_per_element=2, family=family, transfer_ns=transfer_ns)]


def _conv(case: Case) -> Kernels:
    """An implicit product: pixels of the output x output channels, summed over the filter; plus layout changes."""
    inputs, second = case.shapes[0], case.shapes[1]
    backward = "filter_size" in case.attributes
    filters = case.attributes["filter_size"] if backward else second
    strides, pads, dilations = (case.attributes[name] for name in ("strides", "pads", "dilations"))
    space = inputs[2:]
    per_axis = len(pads) // len(space)
    outputs = [
        (extent + pads[axis * per_axis] * 2 - dilations[axis] * (filters[2 + axis] - 1) - 1) // strides[axis] + 1
        for axis, extent in enumerate(space)
    ]
    pixels = inputs[0] * _elements(outputs)
    depth = _elements(filters[1:])
    m, n, k = (filters[0], depth, pixels) if backward else (pixels, filters[0], depth)
    size = case.size(0)
    output = _elements(filters) if backward else pixels * filters[0]
    moved = _elements(inputs) + (pixels * filters[0])
    return [
        vector_operator("layout_change", 1, moved, case.dtype, size, size),
        operator_table(
            "conv_backprop_filter" if backward else "conv",
            Law.MATMUL,
            case.dtype,
            m=m,
            n=n,
            k=k,
            read_bytes=(_elements(inputs) + _elements(second)) * size,
            write_bytes=output * (4 if backward else size),
        ),
    ]


def _multi_add_rms_norm_quant(case: Case) -> Kernels:
    rows, width = _rows(case.shapes[1])
    size = case.size(0)
    adds, quants = case.kernels.get("Add", 1), case.kernels.get("DynamicQuant", 1)
    add = vector_operator("elementwise", 1, rows * width, case.dtype, 2 * size, size)
    norm = vector_operator("rms_norm", rows, width, case.dtype, size, size)
    quant = vector_operator("dynamic_quant", rows, width, case.dtype, size, 1)
    return [*[add] * adds, norm, *[quant] * quants]


def _aggregate_hidden(case: Case) -> Kernels:
    rows, width = _elements(case.shapes[0][:2]), case.shapes[0][2]
    size = case.size(0)
    return [vector_operator("aggregate_hidden_grad", rows, width, case.dtype, 2 * size, size)]


def _hyper_connection(case: Case) -> Kernels:
    *outer, streams, width = case.shapes[0]
    size = case.size(0)
    rows = _elements(outer)
    return [vector_operator("hyper_connection", rows, streams * width, case.dtype, size * (1 + 1 / streams), size)]


def _moe_init_routing(case: Case) -> Kernels:
    tokens, width = case.shapes[0]
    chosen = case.shapes[1][1]
    active = int(case.attributes["active_num"])
    copies = tokens * chosen if active <= 0 else min(active, tokens * chosen)
    size = case.size(0)
    quantised = int(case.attributes["quant_mode"]) >= 0
    out = 1 if quantised else size
    return [
        vector_operator("moe_sort", 1, tokens * chosen, DType.INT32, 4, 4),
        vector_operator("moe_permute", copies, width, case.dtype, size, out),
    ]


def _attention_update(case: Case) -> Kernels:
    parts = len(case.shapes[1])
    rows, width = case.shapes[1][0]
    size = case.size(1)
    return [vector_operator("attention_update", rows, parts * width, DType.FP16, size, size / parts)]


def _clipped_swiglu(case: Case) -> Kernels:
    elements = _elements(case.shapes[0])
    size = case.dtype.size_bytes
    return [vector_operator("clipped_swiglu", 1, elements, case.dtype, size, size / 2)]


def _scatter_pa_kv_cache(case: Case) -> Kernels:
    """Keys and values are written in pieces of 32 bytes: the cache's layout is blocks of 16 columns."""
    moved = (_elements(case.shapes[0]) + _elements(case.shapes[3])) * case.size(0)
    piece = 32
    pieces = -(-moved // piece)
    return [
        operator_table(
            "scatter_pa_kv_cache", Law.VECTOR, DType.INT8, m=pieces, n=piece, read_bytes=moved, write_bytes=moved
        )
    ]


def _sample(case: Case) -> Kernels:
    rows, width = case.shapes[0]
    return [vector_operator("top_k_top_p_sample", rows, width, case.dtype, case.size(0) + 4, 4)]


KERNELS: Mapping[str, Callable[[Case], Kernels]] = {
    "adaptive_avg_pool_3d": _mean,
    "add_rms_norm_dynamic_quant": _add_rms_norm_quant,
    "ai_infra_aggregate_hidden_grad": _aggregate_hidden,
    "ai_infra_manifold_constrained_hyper_connection_post": _hyper_connection,
    "ai_infra_moe_init_routing_v3": _moe_init_routing,
    "attention_update": _attention_update,
    "clipped_swiglu": _clipped_swiglu,
    "conv_2d": _conv,
    "conv_3d_backprop_filter": _conv,
    "dequant_swiglu_quant": _dequant_swiglu_quant,
    "dynamic_quant": _dynamic_quant,
    "flash_attention": _attention,
    "foreach_addcdiv_scalar": _addcdiv,
    "gelu": _unary("gelu"),
    "group_norm": _group_norm,
    "grouped_matmul": _grouped_matmul,
    "grouped_matmul_swiglu_quant": _grouped_matmul_swiglu_quant,
    "matmul_reduce_scatter": _matmul_reduce_scatter,
    "matmul_reduce_scatter_v2": _matmul_reduce_scatter,
    "mha": _attention,
    "mish": _unary("mish"),
    "moe_gating_top_k_softmax": _top_k_routing,
    "multi_add_rms_norm_dynamic_quant": _multi_add_rms_norm_quant,
    "quant_matmul": _quant_matmul,
    "rms_norm": _rms_norm,
    "roi_align": _roi_align,
    "scatter": _scatter,
    "scatter_pa_kv_cache": _scatter_pa_kv_cache,
    "softmax": _softmax,
    "sparse_flash_attention": _sparse_attention,
    "top_k_top_p_sample_v2": _sample,
    "transpose": _transpose,
}


def case_kernels(operator: str, case: Case) -> tuple[OperatorTable, ...]:
    """Returns the kernels of a row; an operator nobody described is priced by its bytes, as one vector kernel."""
    describe = KERNELS.get(operator)
    if describe is not None:
        return tuple(describe(case))
    moved = _input_bytes(case)
    elements = np.int64(max(moved // case.size(0), 1))
    return (vector_operator("default", 1, elements, case.dtype, moved / elements, case.size(0)),)
