"""The kernels of a capture that can be priced, one entry per distinct work."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.runtime.cost.operators import OperatorTable, concatenate
from engine.trace.trace import Trace
from engine.workloads.calibration.kernel_shapes import kernel_operator
from engine.workloads.calibration.kernel_texts import kernel_shapes

COMMUNICATION = "hcom"
"""What names of collectives begin with: priced by links, not here."""


@dataclass(frozen=True, slots=True)
class CaptureKernels:
    """Distinct kernels of a capture.

    Attributes:
        operators: One row per distinct type and shapes.
        labels: The same for people: type and input shapes.
        count: int64, shape (n,): how often each ran.
        median_ns: float64, shape (n,): its median duration.
        total_ns: float64, shape (n,): all of its runs together.
        core_counts: int64, shape (n,): cores used, -1 where the capture does not say.
        unpriced: Kernel types left out, with how many runs; communication apart.
        unpriced_ns: Their time.
        communication_count: Collectives, left to links.
    """

    operators: OperatorTable
    labels: tuple[str, ...]
    count: Int64Array
    median_ns: Float64Array
    total_ns: Float64Array
    core_counts: Int64Array
    unpriced: Mapping[str, int]
    unpriced_ns: int
    communication_count: int

    def __len__(self) -> int:
        return len(self.labels)


def capture_kernels(trace: Trace) -> CaptureKernels:
    """Returns the distinct kernels of one rank. A Python loop over distinct texts, not over events.

    Kernels without duration or shapes, and types nobody described, are counted in ``unpriced``.
    """
    kernels = trace.kernels
    columns = (
        kernels.op_type,
        kernels.input_shapes,
        kernels.input_types,
        kernels.output_shapes,
        kernels.output_types,
        kernels.block_count,
    )
    keys, group = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    duration_ns = trace.events.duration_ns[kernels.event]
    by_key: dict[int, list[int]] = defaultdict(list)
    for place, key in enumerate(group.tolist()):
        by_key[key].append(place)
    found: list[tuple[OperatorTable, str, Int64Array, int]] = []
    unpriced: Counter[str] = Counter()
    unpriced_ns = communication = 0
    for key, rows in by_key.items():
        op_type, *texts = (trace.strings[code] if code >= 0 else "N/A" for code in keys[key, :5].tolist())
        durations = duration_ns[rows]
        if op_type.startswith(COMMUNICATION):
            communication += len(rows)
            continue
        parsed = kernel_shapes(op_type, *texts)
        operator = kernel_operator(parsed) if parsed is not None else None
        if operator is None or not durations.any():
            unpriced[op_type] += len(rows)
            unpriced_ns += int(durations.sum())
            continue
        found.append((operator, f"{op_type} {texts[0]}", durations, int(keys[key, 5])))
    return CaptureKernels(
        operators=concatenate([operator for operator, *_ in found]),
        labels=tuple(label for _, label, *_ in found),
        count=np.array([len(durations) for *_, durations, _ in found], np.int64),
        median_ns=np.array([np.median(durations) for *_, durations, _ in found], np.float64),
        total_ns=np.array([durations.sum() for *_, durations, _ in found], np.float64),
        core_counts=np.array([cores for *_, cores in found], np.int64),
        unpriced=dict(unpriced),
        unpriced_ns=unpriced_ns,
        communication_count=communication,
    )
