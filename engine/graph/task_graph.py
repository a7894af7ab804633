"""A run as tasks and what they wait for: what the runtime executes and optimizations rewrite.

Times are not part of it. Where a task runs (its resource), in what order resources take their tasks (program order),
what it needs first (predecessors) and with whom it must meet (rendezvous) decide when it runs.
"""

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from engine.core.arrays import AnyArray, Float64Array, Int32Array, Int64Array, UInt8Array, read_only
from engine.trace.strings import StringTable
from engine.trace.trace import ParallelGroup


class TaskKind(IntEnum):
    """What a task needs of the machine."""

    HOST = 0
    """Time of a host thread: framework call, dispatch, driver call, data loading."""
    CUBE = 1
    VECTOR = 2
    MIX = 3
    AI_CPU = 4
    COLLECTIVE = 5
    """One member's part of a collective: it ends when the transfer ends, which starts at the last arrival."""
    COPY = 6
    """Host↔device or HBM↔DDR over a copy engine."""
    SYNCHRONIZE = 7
    """The host waits for everything its predecessors name."""
    GAP = 8
    """Of recorded jobs only: a stream stands still before its next task, for the cause that is its name."""


class Stream(IntEnum):
    """Which queue of a rank a task is in. Further numbers are further streams of that rank."""

    HOST = 0
    COMPUTE = 1
    COMMUNICATION = 2
    POINT_TO_POINT = 3
    COPY = 4


class BufferTag(IntEnum):
    """Lifetime class of a buffer."""

    PERSISTENT = 0
    """Weights, gradients, optimizer state: as long as the job."""
    STEP = 1
    """Lives across layers inside a step: activations kept for the backward pass."""
    TEMPORARY = 2
    """Lives inside one operator or layer."""
    LONG_LIVED = 3
    """Born inside a step, dies many steps later: statistics, caches, communicators' buffers."""


@dataclass(frozen=True, slots=True, eq=False)
class BufferTable:
    """Device memory the tasks allocate and free, in host program order of the allocation. Columns of shape (n,).

    Attributes:
        size_bytes: int64, as requested.
        allocated_by: int32 host task that asks for it.
        freed_by: int32 host task that releases it, −1 while alive at the end.
        stream: int32 Stream it is used on.
        name: int32 string id of the tensor's class (``"activation"``, ``"weight"`` …).
        operator: int32 string id of the operator that asks.
        tag: uint8, BufferTag: what tiering and automatic memory management decide by.
    """

    size_bytes: Int64Array
    allocated_by: Int32Array
    freed_by: Int32Array
    stream: Int32Array
    name: Int32Array
    operator: Int32Array
    tag: UInt8Array

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, read_only(getattr(self, item.name)))

    def __len__(self) -> int:
        return len(self.size_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class TaskGraph:
    """Tasks of one or many ranks; arrays of shape (n,) unless said otherwise, in program order per (rank, stream).

    Attributes:
        name: int32 string id of the operator.
        kind: uint8 TaskKind.
        rank: int32.
        stream: int32 Stream number inside the rank; a stream runs its tasks one after another in the order given.
        duration_ns: int64 time on its resource once it may run; of a COLLECTIVE the transfer after the last arrival.
        predecessor_offsets: int64, shape (n + 1,): CSR row starts into ``predecessors``.
        predecessors: int32 task indices that must have ended. Stream order is implied and not listed.
        rendezvous: int32 id shared by the members of one collective instance, or −1.
        flops: float64 floating-point operations, 0 where none.
        bytes: float64 bytes moved (HBM for operators, payload for collectives).
        step: int32 training step or serving iteration, −1 outside.
        micro_batch: int32, −1 outside.
        layer: int32, −1 outside.
        phase: int32 string id (``"forward"``, ``"backward"``, ``"optimizer"`` …), −1 where unknown.
        shape: int32 string id of the operator's shapes as Ascend writes them, −1 where unknown.
        types: int32 string id of the element types of those inputs as Ascend writes them, −1 where unknown.
        group: int32 string id of the communication group (its ``ParallelGroup.id``), −1 for other tasks.
        origin_event: int32 event of the capture the task was made from, −1 in simulated jobs.
        inferred: uint8, 1 where a dependency of the task was inferred rather than recorded.
        buffers: Memory the tasks allocate and free.
        strings: Names.
        groups: Who is in each communication group; a rendezvous of a group of many ranks waits for all of them. A
            send and its receive name the group and are a rendezvous of two.
    """

    name: Int32Array
    kind: UInt8Array
    rank: Int32Array
    stream: Int32Array
    duration_ns: Int64Array
    predecessor_offsets: Int64Array
    predecessors: Int32Array
    rendezvous: Int32Array
    flops: Float64Array
    bytes: Float64Array
    step: Int32Array
    micro_batch: Int32Array
    layer: Int32Array
    phase: Int32Array
    shape: Int32Array
    types: Int32Array
    group: Int32Array
    origin_event: Int32Array
    inferred: UInt8Array
    buffers: BufferTable
    strings: StringTable
    groups: tuple[ParallelGroup, ...] = ()

    def __post_init__(self) -> None:
        for name, column in task_columns(self).items():
            object.__setattr__(self, name, read_only(column))
            if len(column) != len(self.name):
                message = f"column {name} has {len(column)} tasks, name has {len(self.name)}"
                raise ValueError(message)
        object.__setattr__(self, "predecessor_offsets", read_only(self.predecessor_offsets))
        object.__setattr__(self, "predecessors", read_only(self.predecessors))

    def __len__(self) -> int:
        return len(self.name)

    def predecessors_of(self, task: int) -> Int32Array:
        """Returns the tasks a task waits for, beside its stream's order."""
        return self.predecessors[self.predecessor_offsets[task] : self.predecessor_offsets[task + 1]]

    def operator(self, task: int) -> str:
        """Returns the name of a task's operator."""
        return self.strings.text(int(self.name[task]))


def task_columns(graph: TaskGraph) -> dict[str, AnyArray]:
    """Returns the columns with one entry per task, by field name."""
    edges = ("predecessor_offsets", "predecessors")
    values = {item.name: getattr(graph, item.name) for item in fields(graph) if item.name not in edges}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
