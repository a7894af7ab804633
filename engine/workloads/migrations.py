"""Which requests of a step moved bytes between HBM and DDR, as rows of the driver's log."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import BoolArray
from engine.runtime.allocators.interface import AllocatorRun, DriverAction, DriverLog, RequestKind, RequestLog


def with_migrations(run: AllocatorRun, log: RequestLog, moves: BoolArray, address_of: dict[int, int]) -> AllocatorRun:
    """Returns a run with a MIGRATE row for every block of ``log`` that left HBM or came back.

    Args:
        run: What the allocator did with ``log``.
        log: Requests of a step; moves carry the size of what moves.
        moves: bool, shape (requests,): which of them are moves.
        address_of: Address of every persistent block in HBM, by id; brought up to date with every block that moves.
    """
    moves = moves[: run.served]
    if not moves.any():
        return run
    blocks = log.block[: run.served]
    followed = np.isin(blocks, blocks[moves])
    rows: list[tuple[int, int, int, int, int]] = []
    # The requests of what moves alone: some thousands at most.
    for request in np.flatnonzero(followed).tolist():
        block = int(log.block[request])
        if log.kind[request] == RequestKind.ALLOCATE:
            if run.address[request] < 0:
                continue
            address_of[block] = int(run.address[request])
        if not moves[request]:
            continue
        rows.append((request, int(DriverAction.MIGRATE), address_of[block], int(log.size_bytes[request]), -1))
    names = tuple(DriverLog.__dataclass_fields__)
    added = dict(zip(names, np.array(rows, np.int64).T, strict=True))
    columns = {name: np.concatenate((getattr(run.driver, name), added[name])) for name in names}
    order = np.argsort(columns["request"], kind="stable")
    return replace(run, driver=DriverLog(**{name: values[order] for name, values in columns.items()}))
