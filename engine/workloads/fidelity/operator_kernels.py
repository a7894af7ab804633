"""Operators of the cann-bench table as the kernels a device runs for them.

One function per operator turns shapes, types and attributes of a row into kernels; the table's own notes name the
kernels where there is more than one.
"""

from collections.abc import Callable, Mapping

import numpy as np

import engine.workloads.fidelity.cube_kernels as cube
import engine.workloads.fidelity.vector_kernels as vector
from engine.runtime.cost.catalogue import vector_operator
from engine.runtime.cost.operators import OperatorTable
from engine.workloads.fidelity.operator_cases import Case, Kernels, input_bytes

KERNELS: Mapping[str, Callable[[Case], Kernels]] = {
    "adaptive_avg_pool_3d": vector.mean,
    "add_rms_norm_dynamic_quant": vector.add_rms_norm_quant,
    "ai_infra_aggregate_hidden_grad": vector.aggregate_hidden,
    "ai_infra_manifold_constrained_hyper_connection_post": vector.hyper_connection,
    "ai_infra_moe_init_routing_v3": vector.moe_init_routing,
    "attention_update": vector.attention_update,
    "clipped_swiglu": vector.clipped_swiglu,
    "conv_2d": cube.conv,
    "conv_3d_backprop_filter": cube.conv,
    "dequant_swiglu_quant": vector.dequant_swiglu_quant,
    "dynamic_quant": vector.dynamic_quant,
    "flash_attention": cube.attention,
    "foreach_addcdiv_scalar": vector.addcdiv,
    "all_gather_matmul": cube.all_gather_matmul,
    "gelu": vector.unary("gelu"),
    "gqa": cube.attention,
    "matmul_all_reduce": cube.matmul_all_reduce,
    **dict.fromkeys(("gemm", "matmul", "mat_mul"), cube.plain_matmul),
    **dict.fromkeys(("exp", "sigmoid", "silu", "relu", "tanh", "abs", "sqrt"), vector.unary("elementwise")),
    "group_norm": vector.group_norm,
    "grouped_matmul": cube.grouped_matmul,
    "grouped_matmul_swiglu_quant": cube.grouped_matmul_swiglu_quant,
    "matmul_reduce_scatter": cube.matmul_reduce_scatter,
    "matmul_reduce_scatter_v2": cube.matmul_reduce_scatter,
    "mha": cube.attention,
    "mish": vector.unary("mish"),
    "moe_gating_top_k_softmax": vector.top_k_routing,
    "multi_add_rms_norm_dynamic_quant": vector.multi_add_rms_norm_quant,
    "quant_matmul": cube.quant_matmul,
    "rms_norm": vector.rms_norm,
    "roi_align": vector.roi_align,
    "scatter": vector.scatter,
    "scatter_pa_kv_cache": vector.scatter_pa_kv_cache,
    "softmax": vector.softmax,
    "sparse_flash_attention": cube.sparse_attention,
    "top_k_top_p_sample_v2": vector.sample,
    "transpose": vector.transpose,
}


def case_kernels(operator: str, case: Case) -> tuple[tuple[OperatorTable, ...], bool]:
    """Returns the kernels of a row, and whether it is only priced by its bytes, as one vector kernel.

    That is the case for an operator nobody described, and for arguments that its description does not fit.
    Raises TypeError or ValueError where the shapes are no shapes.
    """
    describe = KERNELS.get(operator)
    if describe is not None:
        try:
            return tuple(describe(case)), False
        except (KeyError, IndexError, ValueError, TypeError, ZeroDivisionError):
            return (_by_bytes(case),), True
    return (_by_bytes(case),), True


def _by_bytes(case: Case) -> OperatorTable:
    moved = input_bytes(case)
    elements = max(moved // case.size(0), 1)
    return vector_operator("default", 1, np.int64(elements), case.dtype, moved / elements, case.size(0))
