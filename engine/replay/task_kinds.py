"""What a recorded device task needs of the machine: from its core type, its category, or its name."""

import re

import numpy as np

from engine.analyses.activity import Activity
from engine.core.arrays import Int32Array, UInt8Array
from engine.graph.task_graph import TaskKind
from engine.replay.device_tasks import DeviceTasks
from engine.trace.trace import Trace

_CORES = {
    "ai_core": TaskKind.CUBE,
    "kernel_aicore": TaskKind.CUBE,
    "ai_vector_core": TaskKind.VECTOR,
    "kernel_aivec": TaskKind.VECTOR,
    "mix_aic": TaskKind.MIX,
    "mix_aiv": TaskKind.MIX,
    "kernel_mix_aic": TaskKind.MIX,
    "kernel_mix_aiv": TaskKind.MIX,
    "ai_cpu": TaskKind.AI_CPU,
    "kernel_aicpu": TaskKind.AI_CPU,
}
_ATTENTION = re.compile(r"flash|fmha|attention", re.IGNORECASE)
_MATRIX = re.compile(
    r"gemm|matmul|batchmm|conv(?!ert)|cutlass|cublas|xmma|implicit|winograd|cudnn.*(?:dgrad|wgrad)|Cijk_|splitkreduce",
    re.IGNORECASE,
)
"""cuBLAS, cuDNN, CUTLASS, rocBLAS (``Cijk_``), CANN."""


def task_kinds(trace: Trace, tasks: DeviceTasks, kinds: UInt8Array) -> UInt8Array:
    """Returns the TaskKind of each task, uint8; each distinct pair of core and name is read once.

    Args:
        trace: The rank.
        tasks: Its device tasks.
        kinds: ``activities(trace)``.
    """
    result = np.full(len(tasks), TaskKind.COLLECTIVE, dtype=np.uint8)
    rows = np.flatnonzero(tasks.collective < 0)
    events = tasks.event[rows]
    pairs, inverse = np.unique(
        np.stack((_cores(trace, events), trace.events.name[events])), axis=1, return_inverse=True
    )
    read = [_kind(trace.strings.text(core), trace.strings.text(name)) for core, name in pairs.T.tolist()]
    if len(rows):
        result[rows] = np.array(read, dtype=np.uint8)[inverse.ravel()]
    copies = rows[kinds[events] == Activity.MEMORY]
    result[copies] = TaskKind.COPY
    return result


def _cores(trace: Trace, events: Int32Array) -> Int32Array:
    """Returns the string id of each task's core: of the kernel table, else of the timeline's category."""
    rows = trace.kernel_row_of_event[events]
    told = np.append(trace.kernels.core_type, np.int32(-1))[rows]
    cores: Int32Array = np.where(told >= 0, told, trace.events.category[events])
    return cores


def _kind(core: str, name: str) -> TaskKind:
    known = _CORES.get(core.strip().casefold())
    if known is not None:
        return known
    if _ATTENTION.search(name):
        return TaskKind.MIX
    return TaskKind.CUBE if _MATRIX.search(name) else TaskKind.VECTOR
