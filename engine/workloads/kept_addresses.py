"""Keeps everything an allocator is asked for a while, so that its address map can be drawn afterwards."""

from dataclasses import dataclass, field

import numpy as np

from engine.graph.task_graph import BufferTag
from engine.runtime.addresses.address_map import AddressMap, Basis
from engine.runtime.addresses.from_log import Pools, ServedLog, address_map
from engine.runtime.allocators.caching import BlockLayout, CachingAllocator
from engine.runtime.allocators.interface import Allocator
from engine.workloads.memory_plan import MemoryPlan


@dataclass(eq=False)
class KeptAddresses:
    """What an allocator held at a moment and did from then on.

    Attributes:
        allocator: The allocator.
        before: Its blocks at that moment.
        served: Its calls since.
    """

    allocator: CachingAllocator
    before: BlockLayout
    served: list[ServedLog] = field(default_factory=list)

    def address_map(self, plan: MemoryPlan) -> AddressMap:
        """Returns the map from that moment on; ``plan`` tells what the older blocks are."""
        block, long_lived = self.before.block, plan.persistent_count + plan.step_id_count
        tags = np.full(len(block), int(BufferTag.STEP), dtype=np.int64)
        tags[block < plan.persistent_count] = int(BufferTag.PERSISTENT)
        tags[block >= long_lived] = int(BufferTag.LONG_LIVED)
        pools = Pools(self.allocator.stream_count, self.allocator.class_of_tag)
        return address_map(
            self.before,
            self.served,
            self.allocator.settings,
            pools,
            basis=Basis.SIMULATED,
            policy="simulated",
            old_tags=tags,
        )


def kept_addresses(allocator: Allocator) -> KeptAddresses | None:
    """Returns what is to be kept from now on; None for policies without a store of blocks to show.

    A map has one address per block, so there is none where compaction moves live blocks.
    """
    if not isinstance(allocator, CachingAllocator) or allocator.settings.simulator_only_compaction:
        return None
    return KeptAddresses(allocator, allocator.layout())
