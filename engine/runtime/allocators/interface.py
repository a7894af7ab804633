"""What an allocator policy must offer, and the log of what it did. Address-exact, deterministic, time-free.

A policy sees requests in host program order. What costs time (driver calls, device synchronisations) is reported as
driver events; the runtime turns them into host time and timeline rows. A block that another stream still uses is
freed in two requests, as in PyTorch's own log: ``FREE_REQUESTED`` when the program lets go of it, ``FREE`` when it may
be used again; where to put the second is up to the runtime, which knows the streams' clocks.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from engine.core.arrays import Int64Array

NO_ADDRESS = -1


class RequestKind(IntEnum):
    """What a program asks of its allocator."""

    ALLOCATE = 0
    FREE = 1
    """The block may be used again."""
    FREE_REQUESTED = 2
    """The program let go of the block; another stream still uses it until its ``FREE``."""
    EMPTY_CACHE = 3
    """Give every releasable byte back to the driver."""
    SYNCHRONIZE = 4
    """The program waited for the device: a moment at which pages may be released."""
    MEASURE = 5
    """No request: record what is stranded for a request of ``size_bytes``."""
    SKIP = 6
    """Nothing; keeps the indices of two logs equal."""


class DriverAction(IntEnum):
    """What an allocator asked of the driver, and what is logged beside it."""

    SEGMENT_ALLOCATE = 0
    SEGMENT_FREE = 1
    MAP = 2
    UNMAP = 3
    SYNCHRONIZE = 4
    """Waited for the whole device (before a retry)."""
    RETRY = 5
    """An allocation failed, the cache was released, and it was tried again."""
    OUT_OF_MEMORY = 6
    MIGRATE = 7
    """Bytes moved between HBM and DDR."""
    MEASURE = 8
    """No driver call: the answer to ``RequestKind.MEASURE``."""
    STITCH = 9
    """Physical pages of several free blocks mapped into one new address range."""
    COMPACT = 10
    """Live blocks of a segment moved inside HBM, which only a simulator can do; the size is what moved."""


@dataclass(frozen=True, slots=True, eq=False)
class RequestLog:
    """Requests in host program order. int64 columns, shape (n,).

    Attributes:
        kind: RequestKind.
        block: Caller's id of the block, 0 ≤ id; an id may be used again after its FREE. −1 where none is meant.
        size_bytes: As asked for, before any rounding (ALLOCATE, MEASURE).
        stream: Dense number of the stream that allocates, 0 ≤ number.
        tag: Lifetime class of the block (``engine.graph`` buffer tag); policies that do not separate ignore it.
    """

    kind: Int64Array
    block: Int64Array
    size_bytes: Int64Array
    stream: Int64Array
    tag: Int64Array

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class DriverLog:
    """Driver calls in order. int64 columns, shape (n,).

    Attributes:
        request: Index of the request during which it happened.
        action: DriverAction.
        address: Of the segment or page range, −1 where there is none.
        size_bytes: Of the segment or range; for OUT_OF_MEMORY and MEASURE the size asked for.
        stranded_bytes: For SEGMENT_ALLOCATE, MAP, OUT_OF_MEMORY and MEASURE: bytes that are free, in partly used
            segments, in holes smaller than the request, at that moment; −1 elsewhere.
    """

    request: Int64Array
    action: Int64Array
    address: Int64Array
    size_bytes: Int64Array
    stranded_bytes: Int64Array

    def __len__(self) -> int:
        return len(self.request)


@dataclass(frozen=True, slots=True, eq=False)
class AllocatorRun:
    """What a policy did with a log. int64 columns, shape (requests served,).

    Attributes:
        address: Of the block allocated, −1 for other requests and when out of memory.
        allocated_bytes: Sum of allocated blocks after the request.
        reserved_bytes: Sum of segments (or mapped pages) after the request.
        driver: Driver calls.
        served: Requests served; less than asked when an allocation failed and ``stop_when_out`` was set: the failing
            request is the last one served.
    """

    address: Int64Array
    allocated_bytes: Int64Array
    reserved_bytes: Int64Array
    driver: DriverLog
    served: int


@dataclass(frozen=True, slots=True)
class AllocatorState:
    """Totals and the largest hole after a request; the definitions of the snapshot's statistics."""

    allocated_bytes: int
    active_bytes: int
    reserved_bytes: int
    requested_bytes: int
    largest_free_bytes: int


class Allocator(Protocol):
    """One policy with its state."""

    @property
    def state(self) -> AllocatorState:
        """Totals now."""

    def run(self, requests: RequestLog, *, stop_when_out: bool = False) -> AllocatorRun:
        """Serves the requests; the state stays for the next call.

        An allocation that fails gets address −1 and its later frees are ignored; with ``stop_when_out`` serving ends
        there, so that a training loop's out-of-memory policy can decide what comes next.
        """
