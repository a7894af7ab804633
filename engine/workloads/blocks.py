"""Blocks: operators a rank runs in one go (a layer forward, the optimizer …) with the tensors they hold.

A block is built once per set of sequence lengths: every size and cost is an array over those lengths, so that a run of
thousands of steps with lengths of their own prices all of them together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from engine.core.arrays import Int64Array
from engine.devices.spec import DType
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import BufferTag, TaskKind
from engine.runtime.cost import OperatorTable

LAST = 0
"""The operator needs the result of the last collective before it: the usual case."""
ONE_BEFORE = 1
"""It needs the one before the last and runs beside the last."""
NONE_AWAITED = -1
"""It runs beside whatever is being transferred."""
NEXT = "+1"
"""Suffix of a tensor that belongs to the layer after the block's own."""


class GroupKind(IntEnum):
    """Which group of ranks a collective runs in."""

    TENSOR = 0
    DATA = 1
    """Replicas (and the ranks of one context group) that share weights."""
    CONTEXT = 2
    EXPERT = 3
    MODEL = 4
    """Tensor group times stages of one replica: norms and flags."""
    EMBEDDING = 5
    """First and last stage, which share the embedding's weights."""
    EXPERT_DATA = 6
    """Replicas that share experts."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveCall:
    """One member's call of a collective.

    Attributes:
        kind: What it does.
        group: In which group.
        payload_bytes: int64, shape (lengths,): bytes of the whole tensor (gathered, reduced or exchanged).
        beside_product: It stands before or after the product it feeds or ends, so the two can be one operator (MC2).
    """

    kind: CollectiveKind
    group: GroupKind
    payload_bytes: Int64Array
    beside_product: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """One operator of a block.

    Attributes:
        name: As Ascend's profiler names its kernel.
        kind: Resource it needs.
        table: Its cost columns, one row per length; None for a collective.
        collective: The call; None for computing.
        shape: Input shapes for the first length, as Ascend writes them.
        types: Element types of those inputs, as Ascend writes them.
        awaits: Which collective of the block must have ended first: ``LAST``, ``ONE_BEFORE`` or ``NONE_AWAITED``.
    """

    name: str
    kind: TaskKind
    table: OperatorTable | None
    collective: CollectiveCall | None
    shape: str = ""
    types: str = ""
    awaits: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class MemoryRequest:
    """What one operator asks of the allocator before it runs, or gives back after it was dispatched.

    Attributes:
        operator: Index in the block.
        allocates: True for an allocation, False for a free.
        tensor: Name; ``NEXT`` marks a tensor of the next layer.
        size_bytes: int64, shape (lengths,).
        tag: Lifetime class.
    """

    operator: int
    allocates: bool
    tensor: str
    size_bytes: Int64Array
    tag: BufferTag


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Operators in program order and their memory requests in host program order."""

    phase: str
    operators: tuple[Operator, ...]
    requests: tuple[MemoryRequest, ...]


@dataclass(eq=False)
class BlockBuilder:
    """Collects the operators of one block.

    A tensor is freed right after its last use, as reference counts do it, unless it is kept for another block.

    Attributes:
        phase: ``"forward"``, ``"backward"``, ``"optimizer"`` …
        length_count: How many sequence lengths the columns have.
    """

    phase: str
    length_count: int
    _operators: list[Operator] = field(default_factory=list)
    _born: dict[str, tuple[int, Int64Array]] = field(default_factory=dict)
    _last_use: dict[str, int] = field(default_factory=dict)
    _kept: set[str] = field(default_factory=set)
    _released: set[str] = field(default_factory=set)

    def sizes(self, value: Int64Array | float) -> Int64Array:
        """Returns bytes as an int64 column over lengths."""
        return np.broadcast_to(np.rint(np.asarray(value, np.float64)).astype(np.int64), (self.length_count,))

    def compute(
        self,
        name: str,
        kind: TaskKind,
        table: OperatorTable,
        reads: Sequence[str] = (),
        writes: Mapping[str, Int64Array | float] | None = None,
        *,
        shape: str = "",
        types: Sequence[DType] = (),
        awaits: int = LAST,
    ) -> None:
        """Adds an operator that reads and writes tensors by name; ``writes`` gives their bytes.

        ``types`` are those of the inputs in ``shape``; where none are given all are what the table says.
        """
        listed = types_text(types or [DType(table.dtype[0])] * (shape.count(";") + 1)) if shape else ""
        operator = Operator(name, kind, self._per_length(table), None, shape, listed, awaits)
        self._add(operator, reads, writes or {})

    def collective(
        self,
        kind: CollectiveKind,
        group: GroupKind,
        payload_bytes: Int64Array | float,
        reads: Sequence[str] = (),
        writes: Mapping[str, Int64Array | float] | None = None,
        *,
        beside_product: bool = True,
    ) -> None:
        """Adds a collective; operators after it wait for it unless their ``awaits`` says otherwise."""
        call = CollectiveCall(kind, group, self.sizes(payload_bytes), beside_product)
        self._add(Operator(hcom_name(kind), TaskKind.COLLECTIVE, None, call), reads, writes or {})

    def keep(self, *tensors: str) -> None:
        """Keeps tensors beyond the end of the block."""
        self._kept.update(tensors)

    def release(self, *tensors: str) -> None:
        """Frees tensors of earlier blocks after their last use here."""
        self._released.update(tensors)

    def writes(self, tensor: str) -> bool:
        """Returns whether an operator of this block writes the tensor."""
        return tensor in self._born

    def rename(self, tensor: str, name: str) -> None:
        """Gives a tensor of this block another name."""
        self._born[name] = self._born.pop(tensor)
        self._last_use[name] = self._last_use.pop(tensor)

    def include(self, other: "BlockBuilder", rename: Mapping[str, str], alive: Sequence[str]) -> None:
        """Adds the operators of another builder; its tensors named ``alive`` may be read by what follows."""
        shift = len(self._operators)
        self._operators += other._operators  # noqa: SLF001 - same class
        for tensor, (operator, size) in other._born.items():  # noqa: SLF001
            name = rename.get(tensor, tensor)
            self._born[name] = (operator + shift, size)
            self._last_use[name] = other._last_use[tensor] + shift  # noqa: SLF001
        missing = [tensor for tensor in alive if tensor not in self._born]
        if missing:
            message = f"included operators write no {', '.join(missing)}"
            raise ValueError(message)

    def finish(self) -> Block:
        """Returns the block."""
        last = len(self._operators) - 1
        requests: list[tuple[int, int, MemoryRequest]] = []
        for tensor, (operator, size) in self._born.items():
            tag = BufferTag.STEP if tensor in self._kept else BufferTag.TEMPORARY
            requests.append((operator, 0, MemoryRequest(operator, True, tensor, size, tag)))
            if tensor not in self._kept:
                end = self._last_use[tensor]
                requests.append((end, 1, MemoryRequest(end, False, tensor, size, tag)))
        for tensor in sorted(self._released):
            end = self._last_use.get(tensor, last)
            size = self.sizes(0)
            requests.append((end, 1, MemoryRequest(end, False, tensor, size, BufferTag.STEP)))
        requests.sort(key=lambda item: item[:2])
        return Block(self.phase, tuple(self._operators), tuple(request for _, _, request in requests))

    def _per_length(self, table: OperatorTable) -> OperatorTable:
        """Returns a table of one row repeated for every length."""
        return table if len(table) == self.length_count else table.select(np.zeros(self.length_count, np.int64))

    def _add(self, operator: Operator, reads: Sequence[str], writes: Mapping[str, Int64Array | float]) -> None:
        index = len(self._operators)
        self._operators.append(operator)
        for tensor in reads:
            self._last_use[tensor] = index
        for tensor, size in writes.items():
            if tensor in self._born:
                message = f"tensor {tensor} is written twice in one block"
                raise ValueError(message)
            self._born[tensor] = (index, self.sizes(size))
            self._last_use[tensor] = index


_HCOM_NAMES = {
    CollectiveKind.ALL_REDUCE: "allReduce",
    CollectiveKind.ALL_GATHER: "allGather",
    CollectiveKind.REDUCE_SCATTER: "reduceScatter",
    CollectiveKind.ALL_TO_ALL: "alltoall",
    CollectiveKind.BROADCAST: "broadcast",
}


def hcom_name(kind: CollectiveKind) -> str:
    """Returns a collective's name as HCCL begins it: ``"hcom_allReduce_"``."""
    return f"hcom_{_HCOM_NAMES[kind]}_"


def shape_text(*shapes: Sequence[int]) -> str:
    """Returns input shapes as kernel_details.csv writes them: ``"4096,2880;2880,640"``."""
    return ";".join(",".join(str(int(size)) for size in shape) for shape in shapes)


_TYPE_WORDS = {
    DType.FP32: "FLOAT",
    DType.FP16: "FLOAT16",
    DType.BF16: "DT_BF16",
    DType.INT8: "INT8",
    DType.INT32: "INT32",
    DType.INT64: "INT64",
    DType.FP8: "FLOAT8_E4M3FN",
    DType.BOOL: "BOOL",
}
"""Spellings of kernel_details.csv; that of FP8 is CANN's name of the type (no capture of ours holds one)."""


def types_text(types: Sequence[DType]) -> str:
    """Returns element types as kernel_details.csv writes them: ``"FLOAT;DT_BF16"``."""
    return ";".join(_TYPE_WORDS[item] for item in types)
