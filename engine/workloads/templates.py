"""Blocks with their prices: what each operator takes of the host and of the device, for every sequence length."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Float64Array, Int64Array
from engine.devices.spec import DeviceSpec
from engine.graph.task_graph import TaskKind
from engine.runtime.collectives import Network, collective_durations
from engine.runtime.cost import concatenate, host_durations, operator_durations
from engine.workloads.blocks import Block, GroupKind
from engine.workloads.layout import Place, group_ranks
from engine.workloads.scenario import Parallelism


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """What prices depend on besides the operators.

    Attributes:
        device: Where they run.
        network: Links.
        parallel: Layout.
        tensor_transfer_ratio: Share of a tensor group's transfer that still takes time beside its product: 1 unless the
            two are fused (MC2).
        replays_graphs: Whether the host releases all operators of a block with one launch.
    """

    device: DeviceSpec
    network: Network
    parallel: Parallelism
    tensor_transfer_ratio: float = 1.0
    replays_graphs: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A priced block. Arrays have one row per operator, and one column per sequence length where they depend on it.

    Attributes:
        block: Names, tensors and requests.
        host_ns: int64, shape (operators,).
        device_ns: int64, shape (operators, lengths): computing, or the transfer of a collective.
        is_collective: bool, shape (operators,).
        awaits: int64, shape (operators,).
        flops: float64, shape (operators, lengths).
        bytes: float64, shape (operators, lengths).
    """

    block: Block
    host_ns: Int64Array
    device_ns: Int64Array
    is_collective: BoolArray
    awaits: Int64Array
    flops: Float64Array
    bytes: Float64Array


def priced(block: Block, machine: Machine, length_count: int) -> Template:
    """Returns a block with its prices."""
    operators = block.operators
    shape = (len(operators), length_count)
    device_ns, flops, moved = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
    host_ns = np.full(len(operators), round(machine.device.host_dispatch_ns), np.int64)
    computing = [index for index, item in enumerate(operators) if item.table is not None]
    tables = [item.table for item in operators if item.table is not None]
    if tables:
        table = concatenate(tables)
        device_ns[computing] = operator_durations(machine.device, table).reshape(-1, length_count)
        flops[computing] = table.flop.reshape(-1, length_count)
        moved[computing] = (table.read_bytes + table.write_bytes).reshape(-1, length_count)
        host_ns[computing] = host_durations(machine.device, table).reshape(-1, length_count)[:, 0]
    for index, item in enumerate(operators):
        if item.collective is not None:
            call = item.collective
            ranks = group_ranks(call.group, Place(0, 0, 0, 0), machine.parallel)
            transfer_ns = collective_durations(call.kind, call.payload_bytes, ranks, machine.network)
            fused = call.group is GroupKind.TENSOR and call.beside_product
            ratio = machine.tensor_transfer_ratio if fused else 1.0
            device_ns[index] = np.rint(transfer_ns * ratio).astype(np.int64)
            moved[index] = call.payload_bytes
    if machine.replays_graphs:
        host_ns[:] = 0
        host_ns[:1] = round(machine.device.host_dispatch_ns)
    is_collective = np.array([item.kind is TaskKind.COLLECTIVE for item in operators], np.bool_)
    awaits = np.array([item.awaits for item in operators], np.int64)
    return Template(
        block=block,
        host_ns=host_ns,
        device_ns=device_ns,
        is_collective=is_collective,
        awaits=awaits,
        flops=flops,
        bytes=moved,
    )
