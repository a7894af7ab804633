"""Operators of the vector units in the cann-bench table, as kernels."""

from collections.abc import Callable

from engine.devices.spec import DType
from engine.runtime.cost.catalogue import vector_operator
from engine.runtime.cost.operators import Law, operator_table
from engine.workloads.fidelity.operator_cases import Case, Kernels, elements_of, layout_change, rows_of


def unary(family: str) -> Callable[[Case], Kernels]:
    """Returns a function that counts one reading and one writing of every element."""

    def kernels(case: Case) -> Kernels:
        size = case.dtype.size_bytes
        return [vector_operator(family, 1, elements_of(case.shapes[0]), case.dtype, size, size)]

    return kernels


def softmax(case: Case) -> Kernels:
    """Returns a softmax: along the last axis, or across rows, which is another kernel."""
    shape, size = case.shapes[0], case.dtype.size_bytes
    axis = int(case.attributes["dim"]) % len(shape)
    rows = elements_of(shape) // shape[axis]
    family = "softmax" if axis == len(shape) - 1 else "softmax_strided"
    return [vector_operator(family, rows, shape[axis], case.dtype, size, size)]


def rms_norm(case: Case) -> Kernels:
    """Returns an RMSNorm over the last axis."""
    rows, width = rows_of(case.shapes[0])
    return [vector_operator("rms_norm", rows, width, case.dtype, case.size(0), case.size(0))]


def group_norm(case: Case) -> Kernels:
    """Returns a group norm: a row is one group of one sample."""
    shape, size = case.shapes[0], case.dtype.size_bytes
    rows = shape[0] * int(case.attributes["num_groups"])
    return [vector_operator("group_norm", rows, elements_of(shape) // rows, case.dtype, size, size)]


def dynamic_quant(case: Case) -> Kernels:
    """Returns the quantisation of every row to int8."""
    rows, width = rows_of(case.shapes[0])
    return [vector_operator("dynamic_quant", rows, width, case.dtype, case.size(0), 1)]


def add_rms_norm_quant(case: Case) -> Kernels:
    """Returns the fused residual addition, norm and quantisation: two tensors in, the sum and int8 out."""
    rows, width = rows_of(case.shapes[0])
    size = case.size(0)
    return [vector_operator("add_rms_norm_dynamic_quant", rows, width, case.dtype, 2 * size, size + 1)]


def dequant_swiglu_quant(case: Case) -> Kernels:
    """Returns the fused activation of rows that hold gate and up side by side; int8 out, half as wide."""
    rows, width = rows_of(case.shapes[0])
    return [vector_operator("dequant_swiglu_quant", rows, width, case.dtype, case.size(0), 0.5)]


def addcdiv(case: Case) -> Kernels:
    """Returns x1 + x2 / x3 over lists of tensors, in one kernel."""
    elements = sum(elements_of(shape) for shape in case.shapes[0])
    size = case.dtype.size_bytes
    return [vector_operator("foreach_addcdiv", 1, elements, case.dtype, 3 * size, size)]


def transpose(case: Case) -> Kernels:
    """Returns a permutation of axes."""
    size = case.dtype.size_bytes
    return [vector_operator("transpose", 1, elements_of(case.shapes[0]), case.dtype, size, size)]


def mean(case: Case) -> Kernels:
    """Returns a mean over everything but samples and channels: reads only."""
    shape = case.shapes[0]
    return [vector_operator("reduce", 1, elements_of(shape), case.dtype, case.dtype.size_bytes, 0)]


def roi_align(case: Case) -> Kernels:
    """Returns the sampling of boxes, four readings a point, after the image was rewritten into the blocked layout."""
    boxes = case.shapes[1][0]
    bins = int(case.attributes["outputHeight"]) * int(case.attributes["outputWidth"])
    channels = case.shapes[0][1]
    layout = [layout_change(elements_of(case.shapes[0]), case.dtype)]
    return [*layout, vector_operator("roi_align", boxes, bins * channels, case.dtype, 4 * case.size(0), case.size(0))]


def scatter(case: Case) -> Kernels:
    """Returns two copies: the table has no kernel for it, the reduction ran elsewhere."""
    return [vector_operator("copy", 1, elements_of(case.shapes[0]), case.dtype, case.size(0), case.size(0))]


def top_k_routing(case: Case) -> Kernels:
    """Returns the softmax and choice of a router's experts."""
    rows, width = rows_of(case.shapes[0])
    return [vector_operator("top_k_routing", rows, width, case.dtype, case.size(0), case.size(0))]


def multi_add_rms_norm_quant(case: Case) -> Kernels:
    """Returns the kernels the table's note lists: additions, a norm, one or two quantisations."""
    rows, width = rows_of(case.shapes[1])
    size = case.size(0)
    adds, quants = case.kernels.get("Add", 1), case.kernels.get("DynamicQuant", 1)
    add = vector_operator("elementwise", 1, rows * width, case.dtype, 2 * size, size)
    norm = vector_operator("rms_norm", rows, width, case.dtype, size, size)
    quant = vector_operator("dynamic_quant", rows, width, case.dtype, size, 1)
    return [*[add] * adds, norm, *[quant] * quants]


def aggregate_hidden(case: Case) -> Kernels:
    """Returns the derivative of a short filter along the sequence: two tensors in, one out."""
    rows, width = elements_of(case.shapes[0][:2]), case.shapes[0][2]
    size = case.size(0)
    return [vector_operator("aggregate_hidden_grad", rows, width, case.dtype, 2 * size, size)]


def hyper_connection(case: Case) -> Kernels:
    """Returns the mixing of parallel residual streams: reads them and the new output, writes them."""
    *outer, streams, width = case.shapes[0]
    size = case.size(0)
    rows = elements_of(outer)
    return [vector_operator("hyper_connection", rows, streams * width, case.dtype, size * (1 + 1 / streams), size)]


def moe_init_routing(case: Case) -> Kernels:
    """Returns the sorting of chosen experts and the copying of every token to those on this device.

    Choices are taken to be spread evenly, so experts outside of ``active_expert_range`` get their share of them.
    """
    tokens, width = case.shapes[0]
    choices = tokens * case.shapes[1][1]
    first, end = case.attributes["active_expert_range"]
    here = choices * (end - first) // int(case.attributes["expert_num"])
    active = int(case.attributes["active_num"])
    copies = min(active, here) if active > 0 else here
    size = case.size(0)
    quantised = int(case.attributes["quant_mode"]) >= 0
    family, out = ("moe_permute_quant", 1) if quantised else ("moe_permute", size)
    return [
        vector_operator("moe_sort", 1, choices, DType.INT32, 4, 4),
        vector_operator(family, copies, width, case.dtype, size, out),
    ]


def attention_update(case: Case) -> Kernels:
    """Returns the merging of partial attention results: reads all parts, writes one."""
    parts = len(case.shapes[1])
    rows, width = case.shapes[1][0]
    size = case.size(1)
    return [vector_operator("attention_update", rows, parts * width, DType.FP16, size, size / parts)]


def clipped_swiglu(case: Case) -> Kernels:
    """Returns the activation of gate and up, which lie side by side or interleaved."""
    elements = elements_of(case.shapes[0])
    size = case.dtype.size_bytes
    return [vector_operator("clipped_swiglu", 1, elements, case.dtype, size, size / 2)]


def scatter_pa_kv_cache(case: Case) -> Kernels:
    """Returns keys and values written in pieces of 32 bytes: the cache's layout is blocks of 16 columns."""
    moved = (elements_of(case.shapes[0]) + elements_of(case.shapes[3])) * case.size(0)
    piece = 32
    pieces = -(-moved // piece)
    return [
        operator_table(
            "scatter_pa_kv_cache", Law.VECTOR, DType.INT8, m=pieces, n=piece, read_bytes=moved, write_bytes=moved
        )
    ]


def sample(case: Case) -> Kernels:
    """Returns sampling from the best tokens: reads logits and random numbers of the whole vocabulary."""
    rows, width = case.shapes[0]
    return [vector_operator("top_k_top_p_sample", rows, width, case.dtype, case.size(0) + 4, 4)]
