"""The whole tensor a collective moves, from what a capture calls its bytes."""

import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Calls, call_names
from engine.optimizations.interface import CapturePlan

IN_PARTS = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER)
_WHOLE_FORMAT = "kineto"
_HALF_WORDS = ("half", "bf16", "bfloat16", "fp16", "float16")
FULL_BYTES, HALF_BYTES = 4, 2


def whole_bytes(plan: CapturePlan, calls: Calls) -> Float64Array:
    """Returns what each collective reduces, or ends with when it gathers, float64, shape (calls,); 0 where unknown.

    NCCL's arguments tell the larger side, which is all of it. HCCL's operator counts what one rank contributes to a
    gathering or keeps of a reduction: a p-th. Where a capture has no timeline the bytes are those that left the rank:
    (p − 1) ÷ p of it, twice that for an all-reduce.
    """
    size = plan.graph.bytes[calls.task].astype(np.float64)
    if len(calls) == 0:
        return size
    members = np.maximum(calls.members, 2).astype(np.float64)
    in_parts, reduces = np.isin(calls.kind, IN_PARTS), calls.kind == CollectiveKind.ALL_REDUCE
    ranks = plan.graph.rank[calls.task]
    # A loop over ranks.
    for entry in plan.capture.job.ranks:
        own = ranks == entry.rank
        if entry.trace.source.format == _WHOLE_FORMAT:
            continue
        if np.any(entry.trace.collectives.event >= 0):
            size[own & in_parts] *= members[own & in_parts]
        else:
            share = (members - 1) / members
            size[own & in_parts] /= share[own & in_parts]
            size[own & reduces] /= 2 * share[own & reduces]
    return size


def element_bytes(graph: TaskGraph, calls: Calls) -> Int64Array:
    """Returns the bytes of one gradient of each exchange, int64: fp32 unless the kernel's name says a half type."""
    half = [any(word in name.casefold() for word in _HALF_WORDS) for name in call_names(graph, calls)]
    return np.where(half, HALF_BYTES, FULL_BYTES).astype(np.int64)
