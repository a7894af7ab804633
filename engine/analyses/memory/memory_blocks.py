"""Blocks of the framework's allocator: which were alive at a moment, which were never freed, how long they lived."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.step_ranges import positions_in
from engine.core.arrays import BoolArray, Int64Array
from engine.trace.strings import ABSENT
from engine.trace.tables import AllocationTable
from engine.trace.trace import TimeRange, Trace

BEFORE_CAPTURE = "(allocated before the capture)"
UNNAMED_OPERATOR = "(no operator)"

_GRAPH_ENGINE_PREFIX = "cann::"
"""CANN's own allocator (component GE) writes into the same table as PyTorch's and is told apart by this prefix."""


@dataclass(frozen=True, slots=True)
class LiveAtPeak:
    """Blocks of one operator that were alive at the peak.

    Attributes:
        operator: Name, or ``"(allocated before the capture)"``.
        bytes: Their sum.
        count: Number of blocks; 0 where only the sum is known.
        allocations: Rows of the AllocationTable.
    """

    operator: str
    bytes: int
    count: int
    allocations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Leak:
    """Blocks of one operator that were allocated inside a step and never freed in the capture.

    Attributes:
        operator: Name.
        bytes: Their sum.
        count: Number of blocks.
        first_allocated_at_ns: When the first was allocated.
        step: The step of the first.
        step_count: In how many steps the operator left blocks behind: state that is created once does so in one,
            growth in every step.
    """

    operator: str
    bytes: int
    count: int
    first_allocated_at_ns: int
    step: int | None
    step_count: int = 1


@dataclass(frozen=True, slots=True)
class LifetimeBin:
    """Blocks that lived for ``low_ns`` ≤ lifetime < ``high_ns``."""

    low_ns: int
    high_ns: int
    count: int
    bytes: int


def blocks_of(trace: Trace, component: str, device: int) -> Int64Array:
    """Returns the rows (int64, by allocation) of the blocks that a component's curve on a device counts.

    The allocation table does not name the allocator; only CANN's blocks can be told from the framework's.
    """
    table = trace.memory.allocations
    mine = table.device == device if bool(np.any(table.device == device)) else np.full(len(table), device >= 0)
    if component in ("PTA", "GE"):
        mine &= _is_graph_engine(trace) == (component == "GE")
    return np.flatnonzero(mine)


def _is_graph_engine(trace: Trace) -> BoolArray:
    operator = trace.memory.allocations.operator
    distinct, inverse = np.unique(operator, return_inverse=True)
    marks = [trace.strings.text(index).startswith(_GRAPH_ENGINE_PREFIX) for index in distinct.tolist()]
    return np.array(marks, dtype=np.bool_)[inverse]


def alive_at(table: AllocationTable, rows: Int64Array, moment_ns: int) -> Int64Array:
    """Returns those of ``rows`` that were allocated at or before a moment and not freed until after it."""
    freed_ns = table.freed_at_ns[rows]
    born = table.allocated_at_ns[rows] <= moment_ns
    alive: Int64Array = rows[born & ((freed_ns == ABSENT) | (freed_ns > moment_ns))]
    return alive


def live_by_operator(trace: Trace, rows: Int64Array, total_bytes: int) -> tuple[LiveAtPeak, ...]:
    """Returns the blocks ``rows`` by operator, the largest first.

    What the recorded total holds beyond them was allocated before the capture; blocks whose birth is unknown count
    there too.
    """
    table = trace.memory.allocations
    known = rows[table.allocated_at_ns[rows] != ABSENT]
    found = [
        LiveAtPeak(operator, int(table.size_bytes[part].sum()), len(part), tuple(part.tolist()))
        for operator, part in _by_operator(trace, known)
    ]
    older = rows[table.allocated_at_ns[rows] == ABSENT]
    rest_bytes = total_bytes - sum(item.bytes for item in found)
    if rest_bytes > 0:
        found.append(LiveAtPeak(BEFORE_CAPTURE, rest_bytes, len(older), tuple(older.tolist())))
    return tuple(sorted(found, key=lambda item: (-item.bytes, item.operator)))


def leaks(
    trace: Trace, rows: Int64Array, step_ranges: tuple[TimeRange, ...], numbers: tuple[int | None, ...]
) -> tuple[Leak, ...]:
    """Returns what was allocated inside a step and never freed, by operator, the largest first.

    A block of the last recorded step may be freed in the next one, which the capture does not show: only blocks of
    steps that a further recorded step follows are counted, so a capture of one step has no leaks to show.
    """
    table = trace.memory.allocations
    unfreed = rows[(table.freed_at_ns[rows] == ABSENT) & (table.allocated_at_ns[rows] != ABSENT)]
    position = positions_in(step_ranges, table.allocated_at_ns[unfreed])
    counted = (position >= 0) & (position < len(step_ranges) - 1)
    step_of_row = np.full(len(table), ABSENT, dtype=np.int64)
    step_of_row[unfreed] = position
    found = []
    for operator, part in _by_operator(trace, unfreed[counted]):
        first = part[np.argmin(table.allocated_at_ns[part])]
        found.append(
            Leak(
                operator=operator,
                bytes=int(table.size_bytes[part].sum()),
                count=len(part),
                first_allocated_at_ns=int(table.allocated_at_ns[first]),
                step=numbers[int(step_of_row[first])],
                step_count=len(np.unique(step_of_row[part])),
            )
        )
    return tuple(sorted(found, key=lambda item: (-item.bytes, item.operator)))


def lifetimes(table: AllocationTable, rows: Int64Array) -> tuple[LifetimeBin, ...]:
    """Returns how long the blocks lived that were allocated and freed inside the capture, in powers of two of ns."""
    born_ns, freed_ns = table.allocated_at_ns[rows], table.freed_at_ns[rows]
    whole = (born_ns != ABSENT) & (freed_ns != ABSENT) & (freed_ns >= born_ns)
    lived_ns = np.maximum((freed_ns - born_ns)[whole], 1)
    # frexp is exact: lifetimes of a capture stay far below 2**53 ns.
    power = np.frexp(lived_ns.astype(np.float64))[1] - 1
    counts = np.bincount(power, minlength=1)
    sizes = np.bincount(power, weights=table.size_bytes[rows][whole].astype(np.float64), minlength=1)
    return tuple(
        LifetimeBin(1 << exponent, 2 << exponent, int(counts[exponent]), int(sizes[exponent]))
        for exponent in np.flatnonzero(counts).tolist()
    )


def _by_operator(trace: Trace, rows: Int64Array) -> list[tuple[str, Int64Array]]:
    """Returns (operator, its rows) for every operator among ``rows``."""
    operator = trace.memory.allocations.operator[rows]
    order = np.argsort(operator, kind="stable")
    distinct, first = np.unique(operator[order], return_index=True)
    parts = np.split(rows[order], first[1:])
    return [
        (trace.strings.text(index) or UNNAMED_OPERATOR, part)
        for index, part in zip(distinct.tolist(), parts, strict=False)
    ]
