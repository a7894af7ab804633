"""What a rank really ran of its program, once memory had its say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.workloads.items import Item
from engine.workloads.templates import Template


@dataclass(frozen=True, slots=True)
class Stall:
    """Host time that memory costs in the middle of a block.

    Attributes:
        operator: Before which operator of the block.
        host_ns: Driver calls.
        synchronizes: Whether the host waits for the device first.
        calls: The driver calls it is made of: name and host time of each.
    """

    operator: int
    host_ns: int
    synchronizes: bool
    calls: tuple[tuple[str, int], ...] = ()


class Executed(NamedTuple):
    """A program item as it was really run.

    Attributes:
        item: What.
        template: Its priced block, None for items that are none.
        length: Index of the sequence length.
        stalls: What memory cost inside it.
        stop: Operators of the block that ran; −1 for all, fewer where an allocation failed.
        caught_ns: Host time of catching the failure after the item, −1 where none happened.
    """

    item: Item
    template: Template | None
    length: int
    stalls: Sequence[Stall]
    stop: int
    caught_ns: int
