"""One step as a task graph in which every block is three tasks: begin on the host, run on the device, end on the host.

A block is a chain of operators, and a chain is linear in the (max, +) sense (``block_times``), so these three tasks end
exactly when the operators themselves would as long as no transfer outside the block runs beside it; one that does slows
the block by the mean over its operators. That is what makes thousands of steps and hundreds of ranks cheap; where
kernel rows are wanted, the same programs are written operator by operator.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.runtime.collectives import collective_durations, point_to_point_durations
from engine.workloads.block_times import BlockTimes, Contention, block_times
from engine.workloads.blocks import GroupKind, hcom_name
from engine.workloads.executed import Executed
from engine.workloads.items import Item, ItemKind
from engine.workloads.layout import Place, group_name, group_ranks, rank_of
from engine.workloads.templates import Machine, Template
from engine.workloads.tiering import copy_ns

NONE = -1
_COLUMNS = ("name", "kind", "rank", "stream", "duration_ns", "rendezvous", "bytes", "micro_batch", "layer")
RECEIVE_FORWARD, SEND_BACKWARD, RECEIVE_BACKWARD, DATA, BEHIND = 5, 6, 7, 8, 9
"""Streams beside the named ones: one for every direction between stages, as HCCL has, and one for the replicas. What a
block ends behind, where it shares its queue of transfers, is in a queue that no device has."""
STREAM_OF = {
    (ItemKind.SEND, "x"): int(Stream.POINT_TO_POINT),
    (ItemKind.RECEIVE, "x"): RECEIVE_FORWARD,
    (ItemKind.SEND, "g"): SEND_BACKWARD,
    (ItemKind.RECEIVE, "g"): RECEIVE_BACKWARD,
}


@dataclass(frozen=True, slots=True)
class RankClass:
    """Ranks that do the same at the same times: those of one stage and (where lengths differ) one replica."""

    stage: int
    replica: int


@dataclass(eq=False)
class StepGraphWriter:
    """Writes the tasks of all rank classes of one step.

    Attributes:
        machine: What prices depend on.
        transfer_bytes: int64, shape (lengths,): an activation between stages.
        slowing: By how much transfers slow computing; None for the device's.
        exposed_ns: Task of a block → its time in transfers beside which nothing is computed.
    """

    machine: Machine
    transfer_bytes: Int64Array
    slowing: Contention | None = None
    exposed_ns: dict[int, int] = field(default_factory=dict)
    _slowed: dict[int, float] = field(default_factory=dict)
    _times: dict[tuple[int, int], BlockTimes] = field(default_factory=dict)
    _columns: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _COLUMNS})
    _before: list[int] = field(default_factory=list)
    _after: list[int] = field(default_factory=list)
    _meetings: dict[tuple[int | str, ...], int] = field(default_factory=dict)
    _prices: dict[tuple[object, ...], int] = field(default_factory=dict)
    _builder: GraphBuilder = field(default_factory=GraphBuilder)

    @property
    def contention(self) -> Contention:
        """By how much transfers slow computing."""
        if self.slowing is None:
            self.slowing = Contention.of(self.machine.device)
        return self.slowing

    def add_class(self, rank: int, ranks: RankClass, executed: Sequence[Executed]) -> None:
        """Adds the tasks of one class of ranks, which is number ``rank`` of the graph."""
        writer = _ClassWriter(self, rank, ranks)
        for part in executed:
            if part.template is not None:
                writer.block(part, part.template)
            else:
                writer.other(part.item, part.length)

    def graph(self) -> TaskGraph:
        """Returns the graph."""
        columns = {name: np.array(values) for name, values in self._columns.items()}
        count = len(columns["name"])
        if count:
            self._builder.add_tasks(count, **columns)
            self._builder.add_edges(np.array(self._before, np.int32), np.array(self._after, np.int32))
        return self._builder.build()

    def slowdown_ratio(self) -> Float64Array:
        """Returns how much longer each task takes beside a transfer of its rank, float64, shape (tasks,)."""
        ratios = np.zeros(len(self._columns["name"]))
        ratios[list(self._slowed)] = list(self._slowed.values())
        return ratios

    def times(self, template: Template, column: int) -> BlockTimes:
        """Returns the times of a whole block."""
        key = (id(template), column)
        if key not in self._times:
            self._times[key] = block_times(template, column, 0, len(template.host_ns), self.contention)
        return self._times[key]

    def add_block(self, name: str, rank: int, times: BlockTimes, before: Sequence[int], **where: int) -> int:
        """Adds the device's part of a block and returns its index."""
        task = self.add(name, TaskKind.MIX, rank, Stream.COMPUTE, times.busy_ns, before, **where)
        self.exposed_ns[task] = times.exposed_ns
        self._slowed[task] = times.slowdown_ratio
        return task

    def add(
        self, name: str, kind: TaskKind, rank: int, stream: int, duration_ns: int, before: Sequence[int], **more: int
    ) -> int:
        """Adds a task that waits for ``before`` and returns its index."""
        columns = self._columns
        index = len(columns["name"])
        columns["name"].append(self._builder.strings.intern(name))
        columns["kind"].append(int(kind))
        columns["rank"].append(rank)
        columns["stream"].append(stream)
        columns["duration_ns"].append(duration_ns)
        for column in ("rendezvous", "bytes", "micro_batch", "layer"):
            columns[column].append(more.get(column, 0 if column == "bytes" else NONE))
        for task in before:
            if task >= 0:
                self._before.append(task)
                self._after.append(index)
        return index

    def meeting(self, key: tuple[int | str, ...]) -> int:
        """Returns the rendezvous id of a key."""
        return self._meetings.setdefault(key, len(self._meetings))

    def exchange_ns(self, item: Item, ranks: RankClass) -> int:
        """Returns how long an exchange over replicas takes."""
        key = (item.collective, item.group, item.payload_bytes, ranks.stage)
        if key not in self._prices:
            members = group_ranks(item.group, Place(0, 0, 0, ranks.stage), self.machine.parallel)
            payload = np.array([item.payload_bytes])
            self._prices[key] = int(collective_durations(item.collective, payload, members, self.machine.network)[0])
        return self._prices[key]

    def copy_ns(self, size_bytes: int) -> int:
        """Returns how long a copy between HBM and DDR takes."""
        key = ("copy", size_bytes)
        if key not in self._prices:
            self._prices[key] = copy_ns(self.machine.device, size_bytes)
        return self._prices[key]

    def transfer_ns(self, stage: int, other: int, length: int) -> int:
        """Returns how long an activation takes from one stage to another."""
        key = ("transfer", stage, other, length)
        if key not in self._prices:
            parallel = self.machine.parallel
            ends = [rank_of(Place(0, 0, 0, number % parallel.pipeline), parallel) for number in (stage, other)]
            size = self.transfer_bytes[length : length + 1]
            self._prices[key] = int(point_to_point_durations(size, ends, self.machine.network)[0])
        return self._prices[key]


class _ClassWriter:
    """Writes one class; remembers what the next task has to wait for."""

    def __init__(self, graph: StepGraphWriter, rank: int, ranks: RankClass) -> None:
        self._graph = graph
        self._rank = rank
        self._ranks = ranks
        self._host_ns = round(graph.machine.device.host_dispatch_ns)
        self._device: tuple[int, ...] = ()
        self._queued = NONE
        self._pending: list[int] = []
        self._exchanges: dict[tuple[int | str, ...], list[int]] = {}

    def block(self, part: Executed, template: Template) -> None:
        """Adds a block, cut where memory stalls it and ended where an allocation failed for good."""
        column = min(part.length, template.device_ns.shape[1] - 1)
        if not part.stalls and part.stop < 0:
            self._chain(part.item, template.block.phase, self._graph.times(template, column))
            return
        position = 0
        for stall in part.stalls:
            self._part(part.item, template, column, position, stall.operator)
            position = stall.operator
            self._wait_and_pay(stall.host_ns if stall.synchronizes else 0, 0 if stall.synchronizes else stall.host_ns)
        self._part(part.item, template, column, position, part.stop if part.stop >= 0 else len(template.host_ns))
        if part.caught_ns >= 0:
            self._wait_and_pay(part.caught_ns, 0)

    def _wait_and_pay(self, after_ns: int, at_once_ns: int) -> None:
        if after_ns:
            self.synchronize()
        self._graph.add("memory", TaskKind.HOST, self._rank, Stream.HOST, after_ns + at_once_ns, ())

    def _part(self, item: Item, template: Template, column: int, start: int, stop: int) -> None:
        if start < stop:
            times = block_times(template, column, start, stop, self._graph.contention)
            self._chain(item, template.block.phase, times)

    def _chain(self, item: Item, name: str, times: BlockTimes) -> None:
        graph, where = self._graph, {"micro_batch": item.micro_batch, "layer": item.layer}
        begin = graph.add("dispatch", TaskKind.HOST, self._rank, Stream.HOST, times.lead_ns, (), **where)
        before = (begin, *self._device, *self._pending)
        self._pending = []
        device = graph.add_block(name, self._rank, times, before, **where)
        self._device = (device,)
        if self._queued >= 0 and times.behind_ns:
            late = graph.add(name, TaskKind.MIX, self._rank, BEHIND, times.behind_ns, (self._queued,), **where)
            self._device = (device, late)
            self._queued = NONE
        graph.add("dispatch", TaskKind.HOST, self._rank, Stream.HOST, times.rest_ns, (), **where)

    def other(self, item: Item, length: int) -> None:
        """Adds what is no block."""
        if item.kind in (ItemKind.SEND, ItemKind.RECEIVE):
            self._transfer(item, length)
        elif item.kind is ItemKind.EXCHANGE:
            self._exchange(item)
        elif item.kind in (ItemKind.EVICT, ItemKind.PREFETCH):
            self._copy(item)
        elif item.kind is ItemKind.AWAIT:
            if item.key:
                self._pending += self._exchanges.pop(item.key, [])
            else:
                self._pending += [task for tasks in self._exchanges.values() for task in tasks]
                self._exchanges.clear()
        elif item.kind is ItemKind.SYNCHRONIZE:
            self._pending += [task for tasks in self._exchanges.values() for task in tasks]
            self._exchanges.clear()
            self.synchronize()

    def synchronize(self) -> None:
        """Makes the host wait for the device and for all transfers."""
        before = (*self._device, *self._pending)
        self._graph.add("aclrtSynchronizeDevice", TaskKind.SYNCHRONIZE, self._rank, Stream.HOST, 0, before)

    def _transfer(self, item: Item, length: int) -> None:
        graph, stage = self._graph, self._ranks.stage
        sends = item.kind is ItemKind.SEND
        towards = 1 if (item.block == "x") is sends else -1
        begin = graph.add("dispatch", TaskKind.HOST, self._rank, Stream.HOST, self._host_ns, ())
        task = graph.add(
            "hcom_send_" if sends else "hcom_receive_",
            TaskKind.COLLECTIVE,
            self._rank,
            STREAM_OF[item.kind, item.block],
            graph.transfer_ns(stage, stage + towards, length),
            (begin,) if item.early else (begin, *self._device),
            rendezvous=graph.meeting((self._ranks.replica, *item.key)),
            bytes=int(graph.transfer_bytes[length]),
            micro_batch=item.micro_batch,
        )
        if not sends:
            # Megatron-LM waits for the device after a receive, so the host cannot run ahead of it.
            self._pending.append(task)
            self.synchronize()

    def _copy(self, item: Item) -> None:
        """Adds a copy between HBM and DDR; one into HBM waits for what used those bytes before.

        An activation's way out waits for what computes it.
        """
        graph = self._graph
        begin = graph.add("dispatch", TaskKind.HOST, self._rank, Stream.HOST, self._host_ns, ())
        computed = item.kind is ItemKind.PREFETCH or item.micro_batch >= 0
        before = (begin, *self._device) if computed else (begin,)
        duration_ns = graph.copy_ns(item.payload_bytes)
        size = item.payload_bytes
        task = graph.add("copy", TaskKind.COPY, self._rank, Stream.COPY, duration_ns, before, bytes=size)
        self._exchanges.setdefault(item.key, []).append(task)

    def _exchange(self, item: Item) -> None:
        graph = self._graph
        begin = graph.add("dispatch", TaskKind.HOST, self._rank, Stream.HOST, self._host_ns, ())
        within = () if item.group is GroupKind.DATA else (self._ranks.replica,)
        shared = item.group in (GroupKind.MODEL, GroupKind.EMBEDDING)
        task = graph.add(
            hcom_name(item.collective),
            TaskKind.COLLECTIVE,
            self._rank,
            DATA,
            graph.exchange_ns(item, self._ranks),
            (begin, *self._device),
            rendezvous=graph.meeting((group_name(item.group), *(within if shared else ()), *item.key)),
            bytes=item.payload_bytes,
        )
        if item.shares_queue:
            self._queued = task
        # ("reduce", stage, expert, slot): an AWAIT names the slot.
        self._exchanges.setdefault(item.key[3:], []).append(task)
