"""A snapshot's log as requests to an allocator, and what its driver answered."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array
from engine.formats.snapshots.allocator_snapshot import SnapshotAction, SnapshotLog
from engine.replay.snapshot_start import StartState
from engine.runtime.allocators.interface import RequestKind, RequestLog

_DRIVER_GIVES = (SnapshotAction.SEGMENT_ALLOC, SnapshotAction.SEGMENT_MAP)
_DRIVER_TAKES = (SnapshotAction.SEGMENT_FREE, SnapshotAction.SEGMENT_UNMAP)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRequests:
    """Requests and the recorded answers.

    Attributes:
        requests: In the log's order; a run of segment frees and unmaps is one EMPTY_CACHE.
        event: int64, per request: its (first) event in the log.
        address: int64, per request: what the recorded allocation returned, −1 for other requests.
        gives: int64, shape (calls, 3): (request, address, size) of segment allocations and mappings.
        takes: int64, shape (calls, 3): (request, address, size) of segment frees and unmappings.
        block_ids: Address → id of the blocks alive at the start.
        unknown_frees: Frees of addresses that nothing was allocated at; left out.
    """

    requests: RequestLog
    event: Int64Array
    address: Int64Array
    gives: Int64Array
    takes: Int64Array
    block_ids: dict[int, int]
    unknown_frees: int


def recorded_requests(log: SnapshotLog, start: StartState, streams: dict[int, int]) -> RecordedRequests:
    """Returns the log as requests. A plain loop: ids follow from the addresses in use at each moment.

    Args:
        log: Events of one device.
        start: What existed before them.
        streams: Stream pointer → dense number.
    """
    block_ids = {address: number for number, address in enumerate(sorted(start.live))}
    live = dict(block_ids)
    rows: list[tuple[int, int, int, int, int, int]] = []
    gives: list[tuple[int, int, int]] = []
    takes: list[tuple[int, int, int]] = []
    next_id, unknown, releasing = len(live), 0, False
    columns = (log.action.tolist(), log.address.tolist(), log.size_bytes.tolist(), log.stream.tolist())
    for event, (action, address, size, stream) in enumerate(zip(*columns, strict=True)):
        if action in _DRIVER_TAKES:
            if not releasing:
                rows.append((RequestKind.EMPTY_CACHE, -1, 0, 0, event, -1))
            takes.append((len(rows) - 1, address, size))
            releasing = True
            continue
        releasing = False
        if action == SnapshotAction.ALLOC:
            live[address] = next_id
            rows.append((RequestKind.ALLOCATE, next_id, size, streams[stream], event, address))
            next_id += 1
        elif action == SnapshotAction.FREE_REQUESTED and address in live:
            rows.append((RequestKind.FREE_REQUESTED, live[address], size, streams[stream], event, -1))
        elif action == SnapshotAction.FREE_COMPLETED and address in live:
            rows.append((RequestKind.FREE, live.pop(address), size, streams[stream], event, -1))
        elif action in _DRIVER_GIVES:
            gives.append((len(rows), address, size))  # the allocation that needed it comes next
        elif action in (SnapshotAction.FREE_REQUESTED, SnapshotAction.FREE_COMPLETED):
            unknown += 1
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    kind, block, size_bytes, stream_number, events, addresses = table.T.copy()
    requests = RequestLog(kind, block, size_bytes, stream_number, np.zeros(len(kind), dtype=np.int64))
    return RecordedRequests(
        requests=requests,
        event=events,
        address=addresses,
        gives=np.array(gives, dtype=np.int64).reshape(-1, 3),
        takes=np.array(takes, dtype=np.int64).reshape(-1, 3),
        block_ids=block_ids,
        unknown_frees=unknown,
    )


def seeding_requests(start: StartState, block_ids: dict[int, int]) -> RequestLog:
    """Returns allocations of the blocks alive at the start, by address, all on the first stream."""
    blocks = sorted(start.live.values(), key=lambda block: block.address)
    ids = np.array([block_ids[block.address] for block in blocks], dtype=np.int64)
    sizes = np.array([block.requested_bytes for block in blocks], dtype=np.int64)
    zeros = np.zeros(len(ids), dtype=np.int64)
    return RequestLog(np.full(len(ids), RequestKind.ALLOCATE, dtype=np.int64), ids, sizes, zeros, zeros)
