"""Operators of the matrix units in the cann-bench table, as kernels."""

from itertools import pairwise

from engine.devices.catalogue import topology_of
from engine.devices.spec import DType
from engine.runtime.cost.catalogue import flash_attention, vector_operator
from engine.runtime.cost.operators import Law, OperatorTable, matmul, operator_table
from engine.workloads.fidelity.operator_cases import Case, Kernels, elements_of, layout_change


def _groups(case: Case) -> tuple[int, int, int]:
    """Returns groups that got rows, rows in all, and the mean of a group rounded up."""
    ends = [0, *case.attributes["group_list"]]
    sizes = [after - before for before, after in pairwise(ends) if after > before]
    used, total = max(len(sizes), 1), sum(sizes)
    return used, total, -(-total // used)


def grouped_matmul(case: Case) -> Kernels:
    """Returns one product per expert that got rows; an expert has the mean number of rows."""
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


def grouped_matmul_swiglu_quant(case: Case) -> Kernels:
    """Returns the int8 products of the experts, after their weights were rewritten into the blocked layout."""
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
    return [layout_change(elements_of(case.shapes[1]), DType.INT8), product]


def quant_matmul(case: Case) -> Kernels:
    """Returns an int8 product with results of 16 bits; scales and bias are too small to count."""
    shape, weights = case.shapes[0], case.shapes[1]
    batch = elements_of(shape[:-2])
    return [
        matmul(
            shape[-2],
            weights[-1],
            shape[-1],
            DType.INT8,
            batch=batch,
            out_bytes_per_element=2,
            family="quant_matmul",
        )
    ]


def attention(case: Case) -> Kernels:
    """Returns fused attention over [batch, sequence, heads, head size]."""
    batch, queries, heads, head_size = case.shapes[0]
    _, keys, kv_heads, _ = case.shapes[1]
    causal = bool(case.attributes["is_causal"])
    return [flash_attention(batch, heads, kv_heads, queries, keys, head_size, case.dtype, causal=causal)]


def sparse_attention(case: Case) -> Kernels:
    """Returns attention of all heads of a query over the keys chosen for it, which it gathers itself."""
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
            read_bytes=elements_of(query) * size + batch * queries * chosen * head_size * size,
            write_bytes=elements_of(query) * size,
        )
    ]
    moved = elements_of(query) + elements_of(key)
    if case.kernels.get("Transpose"):
        kernels.append(vector_operator("transpose", 1, 2 * elements_of(query), case.dtype, size, size))
    if case.kernels.get("Slice"):
        kernels.append(vector_operator("slice", 1, moved, case.dtype, size, size))
    return kernels


def plain_matmul(case: Case) -> Kernels:
    """Returns [m, k] x [k, n], the second operand transposed where only that fits or the row says so."""
    *outer, m, k = case.shapes[0]
    second = case.shapes[1]
    transposed = bool(case.attributes.get("is_trans_b")) or second[-2] != k
    n = second[-2] if transposed else second[-1]
    return [matmul(m, n, k, case.dtype, batch=elements_of(outer), out_bytes_per_element=case.size(0))]


def matmul_reduce_scatter(case: Case) -> Kernels:
    """Returns a product that scatters its sums while it computes, on the links of its neighbours."""
    m, n, _ = _product(case)
    return [_fused_collective(case, m, n, moved_bytes=2 * m * n)]


def matmul_all_reduce(case: Case) -> Kernels:
    """Returns a product whose result is summed over its neighbours: scattered, then gathered."""
    m, n, _ = _product(case)
    return [_fused_collective(case, m, n, moved_bytes=2 * 2 * m * n)]


def all_gather_matmul(case: Case) -> Kernels:
    """Returns a product over rows that are gathered from its neighbours while it computes."""
    m, n, k = _product(case)
    rows = m * int(case.attributes["world_size"])
    return [_fused_collective(case, rows, n, moved_bytes=rows * k * case.size(0))]


def _product(case: Case) -> tuple[int, int, int]:
    """Returns rows, columns and summed dimension of the first two inputs."""
    m, k = case.shapes[0]
    return m, case.shapes[1][0] if case.attributes["is_trans_b"] else case.shapes[1][1], k


def _fused_collective(case: Case, m: int, n: int, *, moved_bytes: float) -> OperatorTable:
    """Prices the transfer on the links that ``world_size`` neighbours have; a rank keeps its own share."""
    ranks = int(case.attributes["world_size"])
    link = topology_of(case.device).link_for(range(ranks))
    rate = link.group_bytes_per_s(ranks) * link.efficiency_ratio.value
    transfer_ns = round(moved_bytes * (ranks - 1) / ranks / rate * 1e9)
    family = "quant_matmul_reduce_scatter" if case.dtype is DType.INT8 else "matmul_reduce_scatter"
    k = case.shapes[0][1]
    return matmul(m, n, k, case.dtype, out_bytes_per_element=2, family=family, transfer_ns=transfer_ns)


def conv(case: Case) -> Kernels:
    """Returns an implicit product of output pixels and channels, summed over the filter, and its layout changes."""
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
    pixels = inputs[0] * elements_of(outputs)
    depth = elements_of(filters[1:])
    m, n, k = (filters[0], depth, pixels) if backward else (pixels, filters[0], depth)
    size = case.size(0)
    output = elements_of(filters) if backward else pixels * filters[0]
    moved = elements_of(inputs) + (pixels * filters[0])
    return [
        vector_operator("layout_change", 1, moved, case.dtype, size, size),
        operator_table(
            "conv_backprop_filter" if backward else "conv",
            Law.MATMUL,
            case.dtype,
            m=m,
            n=n,
            k=k,
            read_bytes=(elements_of(inputs) + elements_of(second)) * size,
            write_bytes=output * (4 if backward else size),
        ),
    ]
