"""Groups of device tasks that become one task each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array


@dataclass(frozen=True, slots=True, eq=False)
class TaskGroups:
    """Groups of device tasks that become one task each; columns of shape (groups,) unless said otherwise.

    Attributes:
        offsets: int64, shape (groups + 1,): where each group's tasks start in ``tasks``.
        tasks: int32, shape (tasks in groups,): device tasks in program order; a task is in one group at most.
        kernel: Name of each fused kernel.
        kind: uint8 TaskKind.
        duration_ns: int64, of the fused kernel.
        bytes: float64 that it moves.
        keeps_results: bool: whether what the members allocate stays (a batched call works in place).
    """

    offsets: Int64Array
    tasks: Int32Array
    kernel: tuple[str, ...]
    kind: UInt8Array
    duration_ns: Int64Array
    bytes: Float64Array
    keeps_results: BoolArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def group_of_task(self) -> Int64Array:
        """int64, shape (tasks in groups,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))

    @property
    def intermediate(self) -> Int32Array:
        """Members, int32, whose results nobody needs once they are fused: all but the last of a group."""
        inner = ~self.keeps_results[self.group_of_task]
        inner[self.offsets[1:] - 1] = False
        return self.tasks[inner]

    def select(self, chosen: BoolArray) -> "TaskGroups":
        """Returns the chosen groups; ``chosen`` is bool, shape (groups,)."""
        lengths = np.diff(self.offsets)[chosen]
        return replace(
            self,
            offsets=np.concatenate(([0], np.cumsum(lengths))),
            tasks=self.tasks[chosen[self.group_of_task]],
            kernel=tuple(name for name, kept in zip(self.kernel, chosen.tolist(), strict=True) if kept),
            kind=self.kind[chosen],
            duration_ns=self.duration_ns[chosen],
            bytes=self.bytes[chosen],
            keeps_results=self.keeps_results[chosen],
        )


def joined_groups(parts: Sequence[TaskGroups]) -> TaskGroups:
    """Returns the groups of all parts, in order; at least one part is needed."""
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return TaskGroups(
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        tasks=np.concatenate([part.tasks for part in parts]),
        kernel=tuple(name for part in parts for name in part.kernel),
        kind=np.concatenate([part.kind for part in parts]),
        duration_ns=np.concatenate([part.duration_ns for part in parts]),
        bytes=np.concatenate([part.bytes for part in parts]),
        keeps_results=np.concatenate([part.keeps_results for part in parts]),
    )
