"""One step operator by operator, for all ranks: what the recorder makes traces of.

The same programs and prices as ``step_graph``, with nothing put together: a step takes exactly as long.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import AnyArray, Float64Array, Int64Array
from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.runtime.scheduler import memory_contention
from engine.trace.strings import ABSENT
from engine.workloads.blocks import hcom_name
from engine.workloads.executed import Executed, Stall
from engine.workloads.items import Item, ItemKind
from engine.workloads.operator_tasks import BlockTasks, RankColumns, block_tasks
from engine.workloads.scenario import Parallelism
from engine.workloads.step_graph import DATA, STREAM_OF, RankClass, StepGraphWriter
from engine.workloads.step_ranks import STAGES, Groups, add_rank
from engine.workloads.templates import Template

_FORWARD, _BACKWARD = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class StepDetail:
    """A step operator by operator.

    Attributes:
        graph: All ranks.
        slowdown_ratio: How much longer each task takes beside a transfer of its rank, float64, shape (tasks,).
        first_task: By rank, its first task; all of a rank follow one another in the order of its class.
        host_task: By class, for each executed item, the host task of each of its operators, from the rank's first.
    """

    graph: TaskGraph
    slowdown_ratio: Float64Array
    first_task: dict[int, int]
    host_task: tuple[tuple[Int64Array, ...], ...]


class _RankWriter:
    """Writes the tasks of one class of ranks."""

    def __init__(self, step: StepGraphWriter, builder: GraphBuilder, ranks: RankClass) -> None:
        self.columns = RankColumns()
        self.host_task: list[Int64Array] = []
        self._last: list[int] = []
        self._step = step
        self._builder = builder
        self._ranks = ranks
        self._blocks: dict[int, BlockTasks] = {}
        self._computing = ABSENT
        self._transfer = ABSENT
        self._pending: list[int] = []
        self._exchanges: dict[tuple[int | str, ...], list[int]] = {}
        self._host_ns = round(step.machine.device.host_dispatch_ns)

    def write(self, executed: Sequence[Executed]) -> None:
        for part in executed:
            first = np.array([self.columns.count])
            if part.template is not None:
                first = self._block(part, part.template)
            elif part.item.kind in (ItemKind.SEND, ItemKind.RECEIVE):
                self._between_stages(part.item, part.length)
            elif part.item.kind is ItemKind.EXCHANGE:
                self._exchange(part.item)
            elif part.item.kind in (ItemKind.EVICT, ItemKind.PREFETCH):
                self._copy(part.item)
            elif part.item.kind in (ItemKind.AWAIT, ItemKind.SYNCHRONIZE):
                self._await(part.item)
            self.host_task.append(first)

    def _block(self, part: Executed, template: Template) -> Int64Array:
        """Adds a block and returns the host task of each of its operators."""
        tasks = self._blocks.get(id(template))
        if tasks is None:
            tasks = self._blocks[id(template)] = block_tasks(template, self._builder.strings)
        count = len(template.host_ns) if part.stop < 0 else part.stop
        column = min(part.length, template.device_ns.shape[1] - 1)
        size = 2 * count
        duration, flops, moved = np.zeros(size, np.int64), np.zeros(size), np.zeros(size)
        duration[0::2], duration[1::2] = template.host_ns[:count], template.device_ns[:count, column]
        flops[1::2], moved[1::2] = template.flops[:count, column], template.bytes[:count, column]
        places = self._insert(part, tasks, {"duration_ns": duration, "flops": flops, "bytes": moved}, template)
        awaits = tasks.awaits[:size]
        inside = np.flatnonzero(awaits >= 0)
        self.columns.wait(places[awaits[inside]], places[inside])
        device = np.arange(1, size, 2)
        self.columns.wait(places[device - 1], places[device])
        for known, waiting in ((self._computing, tasks.awaits_computing), (self._transfer, tasks.awaits_transfer)):
            self.columns.wait(known, places[waiting[waiting < size]])
        leads = np.concatenate((tasks.awaits_computing, tasks.awaits_transfer))
        for pending in self._pending:
            self.columns.wait(pending, places[leads[leads < size]])
        self._pending = []
        ran = np.arange(size)
        computing = ran[(tasks.stream[:size] == Stream.COMPUTE) & (ran % 2 == 1)]
        transfers = ran[tasks.group[:size] >= 0]
        self._computing = int(places[computing[-1]]) if len(computing) else self._computing
        self._transfer = int(places[transfers[-1]]) if len(transfers) else self._transfer
        if part.caught_ns >= 0:
            self._pay(Stall(count, part.caught_ns, True, (("OutOfMemoryError", part.caught_ns),)))
        return places[0::2] if size else np.array([self.columns.count])

    def _insert(
        self,
        part: Executed,
        tasks: BlockTasks,
        amounts: dict[str, AnyArray],
        template: Template,
    ) -> Int64Array:
        """Adds the tasks of a block with its stalls between them; returns the index of each."""
        size = len(amounts["duration_ns"])
        places = np.empty(size, np.int64)
        position = 0
        cuts = [(2 * stall.operator, stall) for stall in part.stalls if 2 * stall.operator <= size]
        for stop, stall in [*cuts, (size, None)]:
            if stop > position:
                chosen = slice(position, stop)
                first = self.columns.add(
                    stop - position,
                    name=tasks.name[chosen],
                    kind=tasks.kind[chosen],
                    stream=tasks.stream[chosen],
                    **{name: values[chosen] for name, values in amounts.items()},
                    micro_batch=part.item.micro_batch,
                    layer=part.item.layer,
                    phase=self._builder.strings.intern(template.block.phase),
                    shape=tasks.shape[chosen],
                    types=tasks.types[chosen],
                    group=tasks.group[chosen],
                )
                places[chosen] = np.arange(first, first + stop - position)
                self._note(tasks, places, position, stop)
                position = stop
            if stall is not None:
                self._pay(stall)
        return places

    def _note(self, tasks: BlockTasks, places: Int64Array, start: int, stop: int) -> None:
        """Remembers the last tasks on the device, which a stall waits for."""
        odd = np.arange(start, stop)
        computing = odd[(tasks.stream[start:stop] == Stream.COMPUTE) & (odd % 2 == 1)]
        transfers = odd[tasks.group[start:stop] >= 0]
        self._last = [int(places[group[-1]]) for group in (computing, transfers) if len(group)]

    def _pay(self, stall: Stall) -> None:
        """Adds the driver calls of a stall after waiting for the device."""
        name = self._builder.strings.intern("aclrtSynchronizeDevice")
        wait = self.columns.add(1, name=name, kind=int(TaskKind.SYNCHRONIZE), stream=int(Stream.HOST))
        for task in (*self._last, self._computing, self._transfer, *self._pending):
            self.columns.wait(task, wait)
        for call, cost in stall.calls:
            if cost:
                known = self._builder.strings.intern(call)
                self.columns.add(1, name=known, kind=int(TaskKind.HOST), stream=int(Stream.HOST), duration_ns=cost)

    def _dispatch(self, name: str) -> int:
        known = self._builder.strings.intern(name)
        return self.columns.add(
            1, name=known, kind=int(TaskKind.HOST), stream=int(Stream.HOST), duration_ns=self._host_ns
        )

    def _between_stages(self, item: Item, length: int) -> None:
        sends = item.kind is ItemKind.SEND
        stage = self._ranks.stage
        towards = 1 if (item.block == "x") is sends else -1
        begin = self._dispatch("c10d::send" if sends else "c10d::recv_")
        direction = _FORWARD if item.key[0] == "f" else _BACKWARD
        task = self.columns.add(
            1,
            name=self._builder.strings.intern("hcom_send_" if sends else "hcom_receive_"),
            kind=int(TaskKind.COLLECTIVE),
            stream=STREAM_OF[item.kind, item.block],
            duration_ns=self._step.transfer_ns(stage, stage + towards, length),
            bytes=int(self._step.transfer_bytes[length]),
            micro_batch=item.micro_batch,
            group=STAGES,
            meeting=(int(item.key[1]) * (1 << 12) + int(item.key[2])) * 2 + direction,
        )
        self.columns.wait(begin, task)
        if not item.early:
            self.columns.wait(np.array([self._computing, self._transfer]), task)
        if not sends:
            self._pending.append(task)
            self._synchronize()

    def _exchange(self, item: Item) -> None:
        begin = self._dispatch("c10d::_" + item.collective.name.lower() + "_base_")
        task = self.columns.add(
            1,
            name=self._builder.strings.intern(hcom_name(item.collective)),
            kind=int(TaskKind.COLLECTIVE),
            stream=int(Stream.COMMUNICATION) if item.shares_queue else DATA,
            duration_ns=self._step.exchange_ns(item, self._ranks),
            bytes=item.payload_bytes,
            group=int(item.group),
        )
        self.columns.wait(np.array([begin, self._computing, self._transfer]), task)
        self._exchanges.setdefault(item.key[3:], []).append(task)

    def _copy(self, item: Item) -> None:
        """Adds a copy between HBM and DDR; one into HBM waits for what used those bytes before.

        An activation's way out waits for what computes it.
        """
        computed = item.kind is ItemKind.PREFETCH or item.micro_batch >= 0
        begin = self._dispatch("aten::copy_")
        task = self.columns.add(
            1,
            name=self._builder.strings.intern("MEMCPY_ASYNC"),
            kind=int(TaskKind.COPY),
            stream=int(Stream.COPY),
            duration_ns=self._step.copy_ns(item.payload_bytes),
            bytes=item.payload_bytes,
        )
        self.columns.wait(begin, task)
        if computed:
            self.columns.wait(np.array([self._computing, self._transfer]), task)
        self._exchanges.setdefault(item.key, []).append(task)

    def _await(self, item: Item) -> None:
        if item.kind is ItemKind.AWAIT and item.key:
            self._pending += self._exchanges.pop(item.key, [])
            return
        self._pending += [task for tasks in self._exchanges.values() for task in tasks]
        self._exchanges.clear()
        if item.kind is ItemKind.SYNCHRONIZE:
            self._synchronize()

    def _synchronize(self) -> None:
        name = self._builder.strings.intern("aclrtSynchronizeDevice")
        task = self.columns.add(1, name=name, kind=int(TaskKind.SYNCHRONIZE), stream=int(Stream.HOST))
        self.columns.wait(np.array([self._computing, self._transfer, *self._pending]), task)


def step_detail(
    steps: Sequence[int],
    parallel: Parallelism,
    writer: StepGraphWriter,
    classes: Sequence[tuple[RankClass, tuple[int, ...]]],
    executed: Sequence[Sequence[Sequence[Executed]]],
) -> StepDetail:
    """Returns steps operator by operator, one after another.

    Args:
        steps: Their numbers.
        parallel: Layout.
        writer: Prices of transfers.
        classes: Classes of ranks with the ranks they stand for.
        executed: What was run, by step and class.
    """
    builder = GraphBuilder()
    groups = Groups(parallel, builder)
    first_task: dict[int, int] = {}
    host_tasks: list[tuple[Int64Array, ...]] = []
    pending: dict[int, tuple[dict[str, Int64Array], tuple[Int64Array, Int64Array]]] = {}
    for number, (ranks, members) in enumerate(classes):
        rows = _RankWriter(writer, builder, ranks)
        for step, by_class in zip(steps, executed, strict=True):
            rows.columns.step = step
            rows.write(by_class[number])
        host_tasks.append(tuple(rows.host_task))
        for rank in members:
            pending[rank] = (rows.columns.columns(), rows.columns.edges())
    for rank in sorted(pending):
        columns, (before, after) = pending[rank]
        first = add_rank(builder, groups, rank, columns)
        builder.add_edges(before + first, after + first)
        first_task[rank] = first
    graph = builder.build()
    slowed = memory_contention(graph, writer.contention.memory_bytes_per_s, writer.contention.ratio)
    return StepDetail(graph, slowed, first_task, tuple(host_tasks))
