"""Which requests of a step moved bytes between HBM and DDR, as rows of the driver's log."""

from dataclasses import replace

import numpy as np

from engine.runtime.allocators.interface import AllocatorRun, DriverAction, DriverLog, RequestKind, RequestLog


def with_migrations(run: AllocatorRun, log: RequestLog, address_of: dict[int, int]) -> AllocatorRun:
    """Returns a run with a MIGRATE row for every persistent block of ``log`` that left HBM or came back.

    Args:
        run: What the allocator did with ``log``.
        log: Requests of a step; those of persistent blocks are moves, with the size of what moves.
        address_of: Address of every persistent block in HBM, by id; brought up to date.
    """
    moved = np.flatnonzero(log.block[: run.served] < len(address_of))
    rows: list[tuple[int, int, int, int, int]] = []
    # Two rows per piece of state and step: some hundreds at most.
    for request in moved.tolist():
        block = int(log.block[request])
        if log.kind[request] == RequestKind.ALLOCATE:
            if run.address[request] < 0:
                continue
            address_of[block] = int(run.address[request])
        rows.append((request, int(DriverAction.MIGRATE), address_of[block], int(log.size_bytes[request]), -1))
    if not rows:
        return run
    names = tuple(DriverLog.__dataclass_fields__)
    added = dict(zip(names, np.array(rows, np.int64).T, strict=True))
    columns = {name: np.concatenate((getattr(run.driver, name), added[name])) for name in names}
    order = np.argsort(columns["request"], kind="stable")
    return replace(run, driver=DriverLog(**{name: values[order] for name, values in columns.items()}))
