"""One rank's share of a step, operator by operator: the tasks a profiler would record, as columns."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Int64Array
from engine.graph.task_graph import Stream, TaskKind
from engine.trace.strings import ABSENT, StringInterner
from engine.workloads.blocks import NONE_AWAITED, ONE_BEFORE, GroupKind
from engine.workloads.templates import Template

_HOST_NAMES = {
    "MatMulV3": "aten::mm",
    "BatchMatMulV2": "aten::bmm",
    "FlashAttentionScore": "npu::npu_fusion_attention",
    "FlashAttentionScoreGrad": "npu::npu_fusion_attention_grad",
    "RmsNorm": "npu::npu_rms_norm",
    "RmsNormGrad": "npu::npu_rms_norm_backward",
    "RotaryPositionEmbedding": "npu::npu_rotary_mul",
    "RotaryPositionEmbeddingGrad": "npu::npu_rotary_mul_backward",
    "SwiGlu": "npu::npu_swiglu",
    "SwiGluGrad": "npu::npu_swiglu_backward",
    "GroupedMatmul": "npu::npu_grouped_matmul",
    "ApplyAdamWV2": "npu::npu_apply_adam_w",
    "SoftmaxV2": "aten::_softmax",
    "ScaledMaskedSoftmax": "npu::npu_scaled_masked_softmax",
    "Add": "aten::add",
    "Mul": "aten::mul",
    "Muls": "aten::mul",
    "Cast": "aten::to",
    "ConcatD": "aten::cat",
    "GatherV2": "aten::embedding",
}


@dataclass(frozen=True, slots=True, eq=False)
class BlockTasks:
    """The tasks of a block: for every operator one on the host, then one on the device. Shape (2 × operators,).

    Attributes:
        name: int32 string id.
        kind: TaskKind.
        stream: Stream.
        shape: int32 string id, −1 for none.
        types: int32 string id, −1 for none.
        group: GroupKind of collectives, −1 for others.
        awaits: int64, index inside the block of the task waited for beside the own host task; −1 for none inside.
        awaits_computing: int64, device tasks that wait for the last computing before the block.
        awaits_transfer: int64, device tasks that wait for the last transfer before it.
    """

    name: Int64Array
    kind: Int64Array
    stream: Int64Array
    shape: Int64Array
    types: Int64Array
    group: Int64Array
    awaits: Int64Array
    awaits_computing: Int64Array
    awaits_transfer: Int64Array


def block_tasks(template: Template, strings: StringInterner) -> BlockTasks:
    """Returns the tasks of a block with the waits between its operators, as ``chain_end`` has them."""
    operators = template.block.operators
    count = len(operators)
    device = 2 * np.arange(count) + 1
    name, kind, stream = (np.zeros(2 * count, np.int64) for _ in range(3))
    shape, types, group, awaits = (np.full(2 * count, ABSENT, np.int64) for _ in range(4))
    collective: BoolArray = template.is_collective
    name[device] = [strings.intern(item.name) for item in operators]
    name[device - 1] = [strings.intern(_HOST_NAMES.get(item.name, f"aclnn{item.name}")) for item in operators]
    kind[device] = [int(item.kind) for item in operators]
    kind[device - 1] = int(TaskKind.HOST)
    stream[device] = np.where(collective, int(Stream.COMMUNICATION), int(Stream.COMPUTE))
    shape[device] = [strings.intern(item.shape) if item.shape else ABSENT for item in operators]
    types[device] = [strings.intern(item.types) if item.types else ABSENT for item in operators]
    group[device] = [int(item.collective.group) if item.collective else ABSENT for item in operators]
    computing, transfers = ABSENT, [ABSENT, ABSENT]
    before_computing, before_transfer = [], []
    for index, item in enumerate(operators):
        task = 2 * index + 1
        if collective[index]:
            awaits[task] = computing
            if computing == ABSENT:
                before_computing.append(task)
            transfers = [transfers[1], task]
        else:
            if item.awaits != NONE_AWAITED:
                awaits[task] = transfers[0 if item.awaits == ONE_BEFORE else 1]
            if computing == ABSENT:
                before_transfer.append(task)
            computing = task
    return BlockTasks(
        name=name,
        kind=kind,
        stream=stream,
        shape=shape,
        types=types,
        group=group,
        awaits=awaits,
        awaits_computing=np.array(before_computing, np.int64),
        awaits_transfer=np.array(before_transfer, np.int64),
    )


@dataclass(eq=False)
class RankColumns:
    """Tasks of one rank so far, in batches.

    Attributes:
        count: Tasks.
        step: Step of the tasks that are added.
    """

    count: int = 0
    step: int = 0
    _batches: list[dict[str, Int64Array]] = field(default_factory=list)
    _before: list[Int64Array] = field(default_factory=list)
    _after: list[Int64Array] = field(default_factory=list)

    def add(self, size: int, **columns: AnyArray | int) -> int:
        """Adds ``size`` tasks and returns the index of the first; columns not given are absent (0 for amounts)."""
        first = self.count
        defaults = {"flops": 0, "bytes": 0, "duration_ns": 0, "step": self.step}
        self._batches.append(
            {
                name: np.broadcast_to(np.asarray(columns.get(name, defaults.get(name, ABSENT))), (size,))
                for name in TASK_COLUMNS
            }
        )
        self.count += size
        return first

    def wait(self, before: Int64Array | int, after: Int64Array | int) -> None:
        """Makes tasks ``after`` wait for tasks ``before``; −1 says nothing."""
        columns = (np.atleast_1d(np.asarray(value, np.int64)) for value in (before, after))
        pair = np.broadcast_arrays(*columns)
        known = pair[0] >= 0
        self._before.append(pair[0][known])
        self._after.append(pair[1][known])

    def columns(self) -> dict[str, Int64Array]:
        """Returns all tasks by column."""
        return {name: np.concatenate([batch[name] for batch in self._batches]) for name in TASK_COLUMNS}

    def edges(self) -> tuple[Int64Array, Int64Array]:
        """Returns what waits for what."""
        nothing = np.empty(0, np.int64)
        return np.concatenate([nothing, *self._before]), np.concatenate([nothing, *self._after])


TASK_COLUMNS = (
    "name", "kind", "stream", "duration_ns", "flops", "bytes", "step", "micro_batch", "layer", "phase", "shape",
    "types", "group", "meeting",
)  # fmt: skip


def group_columns(kinds: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Returns the tasks that are collectives of a kind of group, and which call of that kind each is."""
    tasks = np.flatnonzero(kinds >= 0)
    number = np.zeros(len(tasks), np.int64)
    for kind in GroupKind:
        own = kinds[tasks] == kind
        number[own] = np.arange(int(own.sum()))
    return tasks, number
