"""What a rank's program is made of: blocks, transfers between stages, exchanges, waits and copies."""

from enum import IntEnum
from typing import NamedTuple

from engine.graph.collective_kinds import CollectiveKind
from engine.workloads.blocks import GroupKind


class ItemKind(IntEnum):
    """What a program does next."""

    BLOCK = 0
    RECEIVE = 1
    SEND = 2
    EXCHANGE = 3
    """A collective over replicas beside computing."""
    AWAIT = 4
    """Computing waits for all exchanges so far (or for the one of this layer)."""
    SYNCHRONIZE = 5
    """The host waits for the device."""
    EVICT = 6
    """A copy from HBM to DDR begins; the AWAIT of its key gives the HBM back."""
    PREFETCH = 7
    """A copy from DDR into newly allocated HBM begins."""
    DROP = 8
    """HBM is given back without a copy: DDR holds the same, or nothing needs it any more."""
    TAKE = 9
    """HBM is taken without a copy: what comes next overwrites it."""


class Item(NamedTuple):
    """One thing a rank does.

    Attributes:
        kind: What.
        block: Name of the block (BLOCK).
        micro_batch: −1 outside.
        slot: Where the layer's tensors are kept: chunk × (layers per chunk + 2) + layer inside the chunk. Of copies and
            their AWAIT: the block id of what moves.
        layer: Layer of the model, −1 outside.
        key: Identity of the transfer, the same for all members; the slot an AWAIT is about (() for all).
        payload_bytes: Of an EXCHANGE or a copy.
        collective: Of an EXCHANGE.
        group: Of an EXCHANGE.
        shares_queue: An EXCHANGE stands in the queue of the layers' own transfers.
        early: A RECEIVE is posted as soon as the host comes to it, beside computing; else once the device is there.
    """

    kind: ItemKind
    block: str = ""
    micro_batch: int = -1
    slot: int = 0
    layer: int = -1
    key: tuple[int | str, ...] = ()
    payload_bytes: int = 0
    collective: CollectiveKind = CollectiveKind.UNKNOWN
    group: GroupKind = GroupKind.DATA
    shares_queue: bool = False
    early: bool = False
