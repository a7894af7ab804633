"""The address map of a capture: what it carries, or what serving its log again gives."""

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.replay.capture_policy import capture_policy
from engine.replay.capture_requests import CaptureRequests, capture_requests
from engine.runtime.addresses.address_map import AddressMap, Basis
from engine.runtime.addresses.from_log import Pools, ServedLog, address_map
from engine.runtime.addresses.table import ADDRESS_TABLE, address_map_of
from engine.runtime.allocators.caching import CachingAllocator
from engine.trace.trace import Origin, Trace

SEED_BLOCKS = 8
"""In how many equal blocks what was alive before the capture is laid out: its layout is not recorded."""


def capture_addresses(trace: Trace, *, cancel: CancelToken = NEVER_CANCELLED) -> AddressMap:
    """Returns where the blocks of a capture lay.

    A simulated capture carries its map. Of a recorded one the log is served again by the policy it names, so its
    addresses are a reconstruction.

    Raises:
        MissingDataError: The capture lists no blocks.
        OperationCancelled: Cancelled.
    """
    policy = capture_policy(trace)
    table = trace.tables.get(ADDRESS_TABLE)
    if table is not None:
        basis = Basis.SIMULATED if trace.origin is Origin.SIMULATED else Basis.MEASURED
        carried = address_map_of(table, basis, policy.title)
        if carried is not None:
            return carried
    log = capture_requests(trace, policy.settings.pad_bytes, SEED_BLOCKS)
    cancel.check()
    allocator = CachingAllocator(policy.settings, stream_count=log.stream_count)
    allocator.run(log.seed)
    before = allocator.layout()
    served = ServedLog(log.requests, allocator.run(log.requests))
    cancel.check()
    labels, label_of_block = _labels(trace, log)
    return address_map(
        before,
        [served],
        policy.settings,
        Pools(log.stream_count, allocator.class_of_tag),
        basis=Basis.RECONSTRUCTED,
        policy=policy.title,
        labels=labels,
        label_of_block=label_of_block,
    )


def _labels(trace: Trace, log: CaptureRequests) -> tuple[tuple[str, ...], Int64Array]:
    """Returns the operators' names and, per block id, which one allocated it."""
    rows = log.allocation_of_block
    operators = np.where(rows >= 0, trace.memory.allocations.operator[rows], -1)
    known, place = np.unique(operators, return_inverse=True)
    first_known = int(np.searchsorted(known, 0))
    names = tuple(trace.strings.texts(known[first_known:]))
    return names, (place - first_known).astype(np.int64).clip(min=-1)
