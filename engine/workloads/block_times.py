"""A block as one task: how long it is on the device, what slows it, and when it ends behind transfers of others.

A chain of operators is linear in the (max, +) sense where nothing slows them: from host start h, earlier blocks done
at c and the queue of transfers free at t it ends at max(h + done, c + busy, t + behind). Transfers of the block slow
the operators beside them, which is counted here exactly; transfers of other parts of the program slow the block as a
whole, by the mean over its operators.
"""

from dataclasses import dataclass

import numba
import numpy as np

from engine.core.arrays import BoolArray, Float64Array, Int64Array
from engine.devices.spec import DeviceSpec
from engine.runtime.cost.parameters import load_parameters
from engine.runtime.scheduler import contention
from engine.workloads.templates import Template

CONTENTION = "transfer_contention_ratio"
"""Name of the constant in ``efficiency.json``, and of the key by which a scenario states its own."""
_FAR = np.int64(1) << 60


@dataclass(frozen=True, slots=True)
class Contention:
    """By how much transfers slow computing.

    Attributes:
        memory_bytes_per_s: What the device's memory gives at best.
        ratio: How much longer an operator takes beside a transfer that is bound by memory alone.
    """

    memory_bytes_per_s: float
    ratio: float

    @classmethod
    def of(cls, device: DeviceSpec) -> "Contention":
        """Returns the contention on a device: its streaming rate, and the scenario's constant or the shipped one."""
        rate = device.hbm_bytes_per_s * device.value("hbm_stream_ratio")
        stated = device.constants.get(CONTENTION)
        return cls(rate, load_parameters().shared_value(CONTENTION) if stated is None else stated.value)


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """What is needed to run operators of a block as one task.

    Attributes:
        lead_ns: Host time before the device's part can begin so as to be done in ``busy_ns``.
        rest_ns: Host time after that.
        busy_ns: Device time where neither the host nor earlier transfers are late.
        behind_ns: From the end of an earlier transfer in the queue of the block's own to the end of the block; 0 where
            it has none.
        exposed_ns: Transfers of the block beside which nothing is computed.
        slowdown_ratio: How much longer ``busy_ns`` becomes beside transfers of other parts of the program.
    """

    lead_ns: int
    rest_ns: int
    busy_ns: int
    behind_ns: int
    exposed_ns: int
    slowdown_ratio: float


def block_times(template: Template, column: int, start: int, stop: int, slowing: Contention) -> BlockTimes:
    """Returns the times of operators ``start`` to ``stop`` (not included) of a priced block.

    Args:
        template: The block.
        column: Index of the sequence length.
        start: First operator.
        stop: After the last one; at least one operator.
        slowing: By how much transfers slow computing.
    """
    host = template.host_ns[start:stop]
    device = np.ascontiguousarray(template.device_ns[start:stop, column])
    transfers, awaits = template.is_collective[start:stop], template.awaits[start:stop]
    ratio = contention(device, template.bytes[start:stop, column], slowing.memory_bytes_per_s, slowing.ratio)
    chain = (host, device, transfers, awaits, np.where(transfers, 0.0, ratio))
    busy, worked = chain_end(*chain, -_FAR, np.int64(0), np.int64(0), False)
    done, _ = chain_end(*chain, np.int64(0), -_FAR, -_FAR, False)
    behind = chain_end(*chain, -_FAR, -_FAR, np.int64(0), False)[0] if transfers.any() else 0
    done = max(done, busy)
    whole_host = int(host.sum())
    lead = min(int(done - busy), whole_host)
    # A block bound by the host has gaps between its operators in which it makes up for being slowed.
    if whole_host > busy:
        slowed = chain_end(*chain, np.int64(0), -_FAR, -_FAR, True)[0] - done
    else:
        slowed = chain_end(*chain, -_FAR, np.int64(0), np.int64(0), True)[0] - busy
    return BlockTimes(
        lead_ns=lead,
        rest_ns=whole_host - lead,
        busy_ns=int(busy),
        behind_ns=max(int(behind), 0),
        exposed_ns=max(int(busy - worked), 0),
        slowdown_ratio=max(float(slowed) / float(busy), 0.0) if busy else 0.0,
    )


@numba.njit(cache=True)
def chain_end(
    host_ns: Int64Array,
    device_ns: Int64Array,
    is_collective: BoolArray,
    awaits: Int64Array,
    slowdown_ratio: Float64Array,
    host_start_ns: np.int64,
    computing_free_ns: np.int64,
    transfers_free_ns: np.int64,
    always_slowed: bool,
) -> tuple[np.int64, np.int64]:
    """Returns when a chain's last operator ends, and for how long it computed, ns.

    Computing and transfers are two queues joined by their waits. An operator is slowed as long as a transfer lasts that
    was called before it; one called after it waits for it. ``always_slowed``: as if something was always transferred.
    """
    host = host_start_ns
    computing = computing_free_ns
    last = computing_free_ns
    before = computing_free_ns
    queue = transfers_free_ns
    worked = np.int64(0)
    for operator in range(len(host_ns)):
        host += host_ns[operator]
        if is_collective[operator]:
            start = max(host, max(computing, queue))
            before = last
            last = start + device_ns[operator]
            queue = last
        else:
            start = max(host, computing)
            if awaits[operator] == 0:
                start = max(start, last)
            elif awaits[operator] == 1:
                start = max(start, before)
            factor = 1.0 + slowdown_ratio[operator]
            # Transfers called so far follow one another from when their queue is free to the end of the last.
            alone = np.int64(0) if always_slowed else min(max(transfers_free_ns - start, 0), device_ns[operator])
            left = device_ns[operator] - alone
            taken = alone + np.int64(np.rint(left * factor))
            beside = max(last - start - alone, 0)
            if not always_slowed and taken - alone > beside:
                taken = alone + beside + np.int64(np.rint(left - beside / factor))
            computing = start + taken
            worked += taken
    return max(computing, last), worked
