"""A recorded memory log with changes: what an optimization makes of the blocks a capture lists."""

from dataclasses import dataclass

from engine.core.arrays import Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class AllocationEdit:
    """A rank's memory log rewritten; int64 columns by row of ``trace.memory.allocations``.

    Attributes:
        size_bytes: New sizes; 0 for a block that is no longer allocated.
        freed_at_ns: New times of release, ABSENT for never.
    """

    size_bytes: Int64Array
    freed_at_ns: Int64Array
