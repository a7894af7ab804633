"""Two tiers of memory: cold tensors wait in DDR while the forward and backward passes need the HBM.

A simulator's mechanism, made of what real runtimes have. ``layer_tiering`` moves weights and gradients, ``offloading``
activations. Here the optimizer's state, which nothing reads between two optimizer steps, is copied to the host's memory
over a copy stream early in a step and brought back before the optimizer runs, as swapping of optimizer states does. HBM
is given back once the copy has ended: computing waits for that. Copies run beside computing and do not slow it.
"""

from collections.abc import Sequence

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.errors import ScenarioError
from engine.core.number_format import format_bytes
from engine.core.units import MIB, NS_PER_S
from engine.devices.catalogue import topology_of
from engine.devices.spec import DeviceSpec
from engine.workloads.items import Item, ItemKind
from engine.workloads.scenario import OutOfMemoryPolicy, Scenario

PIECE_BYTES = 256 * MIB
"""Cold tensors move in pieces of at most this size (assumed: large enough that the latency of a copy is nothing)."""
EVICTED, FETCHED = "evict", "prefetch"
"""First words of the keys of AWAITs that end a copy out and a copy back."""


def moved_pieces(sizes: Int64Array) -> Int64Array:
    """Returns the sizes of the pieces in which tensors of ``sizes`` move, int64."""
    pieces: list[int] = []
    for size in sizes.tolist():
        whole, rest = divmod(size, PIECE_BYTES)
        pieces += [PIECE_BYTES] * whole + [rest] * (rest > 0)
    return np.array(pieces, np.int64)


def check_tiering(scenario: Scenario, cold_bytes: int) -> None:
    """Raises ScenarioError where ``cold_bytes`` of a rank cannot wait in its share of the host's memory.

    Args:
        scenario: The job.
        cold_bytes: Of what lives as long as the job.
    """
    if scenario.memory.on_out_of_memory is OutOfMemoryPolicy.SPLIT:
        raise ScenarioError('memory.tiering needs memory.on_out_of_memory = "abort": copies belong to the whole step')
    room = scenario.device.ddr_bytes
    if cold_bytes > room:
        message = f"memory.tiering puts {format_bytes(cold_bytes)} into DDR; device {scenario.device.id} has"
        raise ScenarioError(f"{message} {format_bytes(room)}: use more replicas or split the model further")


def tiered_items(items: Sequence[Item], first: int, pieces: Int64Array, distance: int) -> tuple[Item, ...]:
    """Returns a program whose cold tensors leave HBM at the start of the step and are back before the optimizer.

    Piece i of n is sent away before block 1 + i·distance/n and its HBM given back ``distance`` blocks later; it is
    fetched i·distance/n blocks after the one that lies ``distance`` blocks before the optimizer.

    Args:
        items: Program of a step.
        first: Block id of the first piece; the others follow.
        pieces: Sizes, int64, shape (pieces,).
        distance: Blocks ahead of the optimizer.

    Raises:
        ScenarioError: The step has too few blocks for that distance.
    """
    blocks = [at for at, item in enumerate(items) if item.kind is ItemKind.BLOCK and item.micro_batch >= 0]
    largest = (len(blocks) - 1) // 3
    if not 1 <= distance <= largest:
        message = f"memory.tiering.prefetch_distance is {distance}; a step of {len(blocks)} blocks allows 1"
        raise ScenarioError(f"{message} to {largest}")
    before: dict[int, list[Item]] = {}
    for number, size in enumerate(pieces.tolist()):
        block, shift = first + number, number * distance // len(pieces)
        key: tuple[int | str, ...] = (EVICTED, block)
        evict = Item(ItemKind.EVICT, slot=block, key=key, payload_bytes=size)
        before.setdefault(blocks[1 + shift], []).append(evict)
        ends = Item(ItemKind.AWAIT, slot=block, key=key, payload_bytes=size)
        before.setdefault(blocks[1 + shift + distance], []).append(ends)
        fetch = Item(ItemKind.PREFETCH, slot=block, key=(FETCHED, block), payload_bytes=size)
        before.setdefault(blocks[len(blocks) - distance + shift], []).append(fetch)
    tiered: list[Item] = []
    for at, item in enumerate(items):
        tiered += [*before.get(at, ()), item]
    return tuple(tiered)


def copy_ns(device: DeviceSpec, size_bytes: int) -> int:
    """Returns how long a copy between HBM and DDR takes: over the host link, or as fast as DDR is where that is slower.

    The link's rate, latency and efficiency and the rate of DDR are the device's constants with their provenance.
    """
    link = topology_of(device).host_link
    rate = min(link.pair_bytes_per_s * link.efficiency_ratio.value, device.ddr_bytes_per_s)
    return round(link.latency_ns.value + size_bytes / rate * NS_PER_S)
