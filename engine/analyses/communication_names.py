"""Which names are communication: the one list that every source is judged by.

HTA's ``^nccl.*Kernel`` misses lower-case names, RCCL, DeepEP and everything of HCCL, and then divides by zero.
"""

import re

import numpy as np

from engine.analyses.name_search import names_holding
from engine.core.arrays import BoolArray
from engine.trace.strings import StringTable

_LIBRARIES = r"^hcom_|^hccl|\bnccl|\brccl|dpsk::ep\b|\bdeep_?ep(?:::|_)|cross_device_reduce"
"""HCCL, NCCL (``ncclKernel…`` and ``ncclDevKernel…``), RCCL, DeepEP, the custom all-reduce of serving engines."""

_HCCL_KERNELS = r"(?:aicpu|aiv)kernel$"
"""Collectives on AI CPUs or vector cores, e.g. ``allreduceAicpuKernel``; msprof leaves them out of Computing."""

_EXCHANGE = r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"
_MATMUL = r"mat_?mul"
_FUSED_WITH_MATMUL = rf"(?:{_EXCHANGE})\w*{_MATMUL}|{_MATMUL}\w*(?:{_EXCHANGE})|^all_?to_?allv"
_EXPERT_EXCHANGE = r"moe_?distribute_?(?:dispatch|combine)|distribute_?barrier"
_MC2 = rf"{_FUSED_WITH_MATMUL}|{_EXPERT_EXCHANGE}"
"""MC2 operators exchange data inside one task: MatmulAllReduce, AllGatherMatmul, MoeDistributeDispatch …"""

_COMMUNICATION = re.compile("|".join((_LIBRARIES, _HCCL_KERNELS, _MC2)), re.IGNORECASE)

_NEEDLES = (
    *("ccl", "hcom_", "dpsk::ep", "deep", "cross_device_reduce", "aicpukernel", "aivkernel"),
    *("reduce", "gather", "scatter", "all_to", "allto", "distribute"),
)
"""Every communication name holds one of these (lower case), so most names need no pattern at all."""

_GENERATED = re.compile(r"^triton_", re.IGNORECASE)
"""Compiler-made kernels are named after the operators around them (``triton_poi_fused_all_gather_matmul_0``) and only
compute."""


def is_communication_name(name: str) -> bool:
    """Returns whether a device task or operator of this name exchanges data with other ranks."""
    return _COMMUNICATION.search(name) is not None and _GENERATED.match(name) is None


def communication_names(strings: StringTable) -> BoolArray:
    """Returns which strings of a table are communication names, bool, shape (strings,).

    Only names that hold one of the needles are matched with the patterns.
    """
    answer = np.zeros(len(strings), dtype=np.bool_)
    candidates = names_holding(strings, _NEEDLES)
    answer[candidates] = [is_communication_name(strings[index]) for index in candidates.tolist()]
    return answer
