"""What the shapes of a recorded kernel say of its work: operations of the matrix units and bytes of device memory."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.distinct_rows import distinct_rows
from engine.core.arrays import Float64Array, Int32Array
from engine.trace.trace import Trace
from engine.workloads.calibration.kernel_shapes import kernel_operator
from engine.workloads.calibration.kernel_texts import kernel_shapes

_UNKNOWN = "N/A"


@dataclass(frozen=True, slots=True, eq=False)
class TaskWork:
    """Work of tasks. float64 columns, shape (tasks,); 0 where the capture has no shapes.

    Attributes:
        flops: Operations of the matrix units: of products, convolutions and attention, 0 for all others.
        bytes: Inputs and outputs, each once.
    """

    flops: Float64Array
    bytes: Float64Array


def task_work(trace: Trace, kernel: Int32Array) -> TaskWork:
    """Returns the work of tasks; each distinct row of texts is read once.

    Args:
        trace: The rank.
        kernel: int32, shape (tasks,): row of the trace's kernel table, −1 for none.
    """
    flops, size_bytes = (np.zeros(len(kernel), dtype=np.float64) for _ in range(2))
    known = np.flatnonzero(kernel >= 0)
    if len(known) == 0 or not np.any(trace.kernels.input_shapes >= 0):
        return TaskWork(flops, size_bytes)
    table = trace.kernels
    columns = (table.op_type, table.input_shapes, table.input_types, table.output_shapes, table.output_types)
    first, group = distinct_rows([column[kernel[known]] for column in columns])
    work = np.zeros((len(first), 2), dtype=np.float64)
    # One turn per distinct kind of kernel, of which a capture has hundreds.
    for place, row in enumerate(kernel[known[first]].tolist()):
        work[place] = _work(*(trace.strings.text(int(column[row])) or _UNKNOWN for column in columns))
    flops[known], size_bytes[known] = work[group].T
    return TaskWork(flops, size_bytes)


def _work(op_type: str, input_shapes: str, input_types: str, output_shapes: str, output_types: str) -> tuple[int, int]:
    """Returns operations and bytes; types nobody described move what their shapes say and compute nothing known.

    Half of what a kernel moves is no measure of it: where only inputs are described, bytes are unknown (0), unless the
    operator itself tells what it writes.
    """
    if input_shapes == _UNKNOWN:
        return 0, 0
    parsed = kernel_shapes(op_type, input_shapes, input_types, output_shapes, output_types)
    if parsed is None:
        return 0, 0
    operator = kernel_operator(parsed)
    if operator is None:
        return 0, parsed.read_bytes + parsed.write_bytes if parsed.output_types else 0
    flops, written = int(operator.flop.sum()), int(operator.write_bytes.sum())
    return flops, written + int(operator.read_bytes.sum()) if parsed.output_types or written else 0
