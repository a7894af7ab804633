"""Which element types the kernels of a capture compute in."""

from enum import IntEnum

import numpy as np

from engine.core.arrays import UInt8Array
from engine.optimizations.interface import CapturePlan


class ElementType(IntEnum):
    """What a kernel's first input is made of."""

    UNKNOWN = 0
    FULL = 1
    """fp32."""
    HALF = 2
    """fp16 or bf16."""
    OTHER = 3


_WORDS = {
    "FLOAT": ElementType.FULL,
    "FLOAT32": ElementType.FULL,
    "FLOAT16": ElementType.HALF,
    "BF16": ElementType.HALF,
    "BFLOAT16": ElementType.HALF,
}


def element_types(plan: CapturePlan) -> UInt8Array:
    """Returns the type of each task's first input, uint8 ElementType, shape (tasks,); UNKNOWN where no table tells."""
    graph = plan.graph
    found = np.zeros(len(graph), dtype=np.uint8)
    # A loop over ranks; each distinct text is read once.
    for entry in plan.capture.job.ranks:
        trace = entry.trace
        if len(trace.kernels) == 0:
            continue
        rows = np.flatnonzero((graph.rank == entry.rank) & (graph.origin_event >= 0))
        kernel = trace.kernel_row_of_event[graph.origin_event[rows]]
        rows, kernel = rows[kernel >= 0], kernel[kernel >= 0]
        texts, inverse = np.unique(trace.kernels.input_types[kernel], return_inverse=True)
        codes = np.array([_code(trace.strings.text(int(item))) for item in texts], dtype=np.uint8)
        found[rows] = codes[inverse] if len(rows) else found[rows]
    return found


def _code(text: str) -> ElementType:
    word = text.replace('"', "").split(";")[0].strip().upper().removeprefix("DT_")
    if word in ("", "N/A"):
        return ElementType.UNKNOWN
    return _WORDS.get(word, ElementType.OTHER)
