"""Causes of idle stretches, and their collection gap by gap."""

from enum import StrEnum

import numpy as np

from engine.core.arrays import BoolArray, Int32Array
from engine.trace.strings import ABSENT


class IdleCause(StrEnum):
    """Why the device had nothing to do."""

    COMPILATION = "compilation"
    DATA_LOADING = "data_loading"
    GARBAGE_COLLECTION = "garbage_collection"
    ALLOCATOR = "allocator"
    HOST_SYNCHRONIZATION = "host_synchronization"
    DEQUEUE_SLOW = "dequeue_slow"
    HOST_SLOW = "host_slow"
    OTHER_STREAM = "other_stream"
    DEVICE_SCHEDULING = "device_scheduling"
    """The next task was queued and its stream free: the device's own start of tasks, which collecting hardware counters
    (``l2_cache``) lengthens."""
    UNKNOWN = "unknown"


_CAUSES = tuple(IdleCause)


class IdleVerdicts:
    """One cause and one piece of evidence per gap; the first decision stands.

    Args:
        count: Number of gaps.
    """

    def __init__(self, count: int) -> None:
        self._cause = np.full(count, _CAUSES.index(IdleCause.UNKNOWN), dtype=np.int8)
        self._decided = np.zeros(count, dtype=np.bool_)
        self.evidence = np.full(count, ABSENT, dtype=np.int32)

    def decide(self, applies: BoolArray, evidence: Int32Array, cause: IdleCause) -> None:
        """Gives ``cause`` to the still undecided gaps where it applies.

        Args:
            applies: bool, shape (count,).
            evidence: int32, shape (count,): event row, or −1.
            cause: The cause.
        """
        new = applies & ~self._decided
        self._cause[new] = _CAUSES.index(cause)
        self.evidence[new] = evidence[new]
        self._decided |= new

    def causes(self) -> list[IdleCause]:
        """Returns the cause of every gap, in order."""
        return [_CAUSES[index] for index in self._cause.tolist()]
