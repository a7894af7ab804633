"""Activations wait in the host's memory between a layer's forward and backward pass.

After a layer's forward pass what it keeps is copied out over the copy stream; its HBM is given back ``distance`` blocks
later (computing waits for the copy's end where it is late). ``distance`` blocks before its backward pass the HBM is
taken again and the copy back begins; the backward pass waits for it. Layers whose backward pass comes too soon for both
keep theirs: the last ones before the turn. One stream copies both ways in program order. Copies do not slow computing.
"""

from collections.abc import Callable, Sequence

from engine.core.errors import ScenarioError
from engine.core.number_format import format_bytes
from engine.workloads.items import Item, ItemKind
from engine.workloads.scenario import LengthDistribution, OutOfMemoryPolicy, Scenario
from engine.workloads.scenario_keys import Table

OFFLOAD = "memory.offload"
OUT, BACK = "offload", "onload"
"""First words of the keys of the two copies of a layer's activations."""
_USUAL_DISTANCE = 2


def offload_distance(scenario: Scenario) -> int:
    """Returns how many blocks ahead activations are fetched, 0 where they stay. Raises ScenarioError."""
    tiering = scenario.memory.tiering
    source = _source(scenario)
    if tiering is not None and scenario.memory.is_cold("activations"):
        if scenario.enabled(OFFLOAD):
            raise ScenarioError(f"memory.tiering names activations, which {OFFLOAD} moves already; keep one of the two")
        distance = tiering.prefetch_distance
    elif scenario.enabled(OFFLOAD):
        table = Table(f"optimizations.{OFFLOAD}", scenario.optimizations[OFFLOAD])
        distance = table.integer("prefetch_distance", _USUAL_DISTANCE)
        table.finish()
    else:
        return 0
    if scenario.batch.lengths.distribution is not LengthDistribution.FIXED:
        raise ScenarioError(f"{source} needs one batch.sequence_length for all: copies are planned for the whole run")
    if scenario.memory.on_out_of_memory is OutOfMemoryPolicy.SPLIT:
        raise ScenarioError(f'{source} needs memory.on_out_of_memory = "abort": copies belong to the whole step')
    return distance


def offloaded_items(items: Sequence[Item], kept_bytes: Callable[[Item], int], distance: int) -> tuple[Item, ...]:
    """Returns a program whose layers' activations wait in DDR.

    Args:
        items: Program of a step.
        kept_bytes: What the layer of a forward block keeps.
        distance: Blocks the copies are given.
    """
    blocks = [at for at, item in enumerate(items) if item.kind is ItemKind.BLOCK]
    number = {at: place for place, at in enumerate(blocks)}
    turn = {
        (item.micro_batch, item.slot): at
        for at, item in enumerate(items)
        if item.kind is ItemKind.BLOCK and item.block.startswith("layer.backward")
    }
    before: dict[int, list[Item]] = {}
    for at in blocks:
        item = items[at]
        if not item.block.startswith("layer.forward"):
            continue
        back = turn[item.micro_batch, item.slot]
        freed, fetched = number[at] + 1 + distance, number[back] - distance
        if freed > fetched:
            continue
        moved = item._replace(payload_bytes=kept_bytes(item))
        where = (item.micro_batch, item.slot)
        going, coming = (OUT, *where), (BACK, *where)
        before.setdefault(blocks[number[at] + 1], []).append(moved._replace(kind=ItemKind.EVICT, key=going))
        before.setdefault(blocks[freed], []).append(moved._replace(kind=ItemKind.AWAIT, key=going))
        before.setdefault(blocks[fetched], []).append(moved._replace(kind=ItemKind.PREFETCH, key=coming))
        before.setdefault(back, []).append(moved._replace(kind=ItemKind.AWAIT, key=coming))
    planned: list[Item] = []
    for at, item in enumerate(items):
        planned += [*before.get(at, ()), item]
    return tuple(planned)


def _source(scenario: Scenario) -> str:
    """Returns what of a scenario asks for it."""
    return OFFLOAD if scenario.enabled(OFFLOAD) else "memory.tiering of activations"


def check_offload(scenario: Scenario, programs: Sequence[Sequence[Item]], held_bytes: Sequence[int]) -> None:
    """Raises ScenarioError where what waits in DDR at once exceeds a device's share of it, or no stage moves anything.

    Args:
        scenario: The job.
        programs: Of every stage, with their copies.
        held_bytes: Of every stage: what else waits in DDR.
    """
    source = _source(scenario)
    waiting = [_most_waiting(items) for items in programs]
    most = max(moved + held for moved, held in zip(waiting, held_bytes, strict=True))
    room = scenario.device.ddr_bytes
    if not any(waiting):
        message = "no layer's backward pass is far enough from its forward pass; lower prefetch_distance"
        raise ScenarioError(f"{source}: {message}")
    if most > room:
        message = f"puts {format_bytes(most)} into DDR; device {scenario.device.id} has {format_bytes(room)}"
        raise ScenarioError(f"{source} {message}: split the model over more devices or recompute")


def _most_waiting(items: Sequence[Item]) -> int:
    held, most = 0, 0
    for item in items:
        if is_offload(item):
            held += item.payload_bytes * (item.kind is ItemKind.EVICT)
            held -= item.payload_bytes * (item.kind is ItemKind.AWAIT and item.key[0] == BACK)
            most = max(most, held)
    return most


def is_offload(item: Item) -> bool:
    """Returns whether an item is about activations that wait in DDR."""
    return item.key[:1] in ((OUT,), (BACK,))
