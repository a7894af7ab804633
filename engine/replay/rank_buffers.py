"""The memory log of one rank as buffers of its host tasks."""

from collections.abc import Callable

import numpy as np

from engine.analyses.memory import main_blocks, main_curve
from engine.core.arrays import Int32Array, Int64Array
from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import BufferTag, Stream
from engine.replay.dispatch import Dispatch
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

_CLASS = "recorded"
"""A memory log does not say what a tensor is for."""


def add_buffers(
    builder: GraphBuilder,
    trace: Trace,
    dispatch: Dispatch,
    phase: Int32Array,
    first_host: int,
    texts: Callable[[Int32Array], Int32Array],
) -> None:
    """Adds the blocks of the framework's allocator on the device it used most, in the order of the log.

    A block belongs to the host task that was running, on its way to its launch, when it was asked for or let go. A
    block that was never let go is persistent; one let go in another phase of the step than it was asked for in (an
    activation kept for the backward pass) lives for the step; all others are temporary.

    Args:
        builder: Receives them.
        trace: The rank.
        dispatch: Its host.
        phase: int32, shape (host tasks,): string id of each one's phase.
        first_host: Index in the graph of the rank's first host task.
        texts: Gives the builder's ids of the trace's strings.
    """
    table = trace.memory.allocations
    if len(table) == 0 or len(dispatch) == 0:
        return
    rows, _ = main_blocks(trace, main_curve(trace))
    born = _host_tasks(dispatch, table.allocated_at_ns[rows])
    born = np.where(table.allocated_at_ns[rows] < 0, 0, born)
    gone = np.where(table.freed_at_ns[rows] < 0, ABSENT, _host_tasks(dispatch, table.freed_at_ns[rows]))
    lasting = (gone < 0) | (table.allocated_at_ns[rows] < 0)
    tag = np.where(phase[born] != phase[gone], BufferTag.STEP, BufferTag.TEMPORARY)
    builder.add_buffers(
        len(rows),
        size_bytes=table.size_bytes[rows],
        allocated_by=first_host + born,
        freed_by=np.where(gone >= 0, first_host + gone, ABSENT),
        stream=Stream.COMPUTE,
        name=builder.strings.intern(_CLASS),
        operator=texts(table.operator[rows]),
        tag=np.where(lasting, BufferTag.PERSISTENT, tag),
    )


def _host_tasks(dispatch: Dispatch, moment_ns: Int64Array) -> Int64Array:
    """Returns the host task that was running at each moment of the host's clock; the last one after the end."""
    place = np.searchsorted(dispatch.end_ns, moment_ns + dispatch.shift_ns, side="left")
    return np.minimum(place, len(dispatch) - 1)
