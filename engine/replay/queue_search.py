"""Finds tasks of a queue by time: one binary search for many questions, whatever queues they are about."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.core.arrays import AnyArray, Int64Array
from engine.replay.device_tasks import DeviceTasks


@dataclass(frozen=True, slots=True, eq=False)
class QueueTimes:
    """One time per task that never falls inside a queue, ready to be searched.

    Attributes:
        keys: int64, shape (tasks,), ascending: queue and time in one number.
        queue: int32, shape (tasks,).
        first_ns: Before the earliest time.
        reach_ns: More than all times span.
    """

    keys: Int64Array
    queue: AnyArray
    first_ns: int
    reach_ns: int

    @staticmethod
    def of(tasks: DeviceTasks, time_ns: Int64Array) -> "QueueTimes":
        """Returns the times (int64, shape (tasks,)) of tasks by queue; one that falls counts as the one before it."""
        # One ns before all times and one after them stand for whatever lies further out.
        first_ns = int(time_ns.min(initial=0)) - 1
        reach_ns = int(time_ns.max(initial=0)) - first_ns + 2
        # A queue's keys begin above those of the queue before it, so one running maximum serves all of them.
        keys = np.maximum.accumulate(tasks.queue.astype(np.int64) * reach_ns + time_ns - first_ns)
        return QueueTimes(keys, tasks.queue, first_ns, reach_ns)

    def last_before(self, queue: AnyArray, moment_ns: AnyArray, *, inclusive: bool = False) -> Int64Array:
        """Returns the last task of each queue whose time lies before each moment (or at it), −1 for none; int64."""
        place = self._search(queue, moment_ns, "right" if inclusive else "left") - 1
        return self._of_queue(place, queue)

    def first_from(self, queue: AnyArray, moment_ns: AnyArray) -> Int64Array:
        """Returns the first task of each queue whose time is not before each moment, −1 for none; int64."""
        return self._of_queue(self._search(queue, moment_ns, "left"), queue)

    def _search(self, queue: AnyArray, moment_ns: AnyArray, side: Literal["left", "right"]) -> Int64Array:
        inside = np.clip(np.asarray(moment_ns, dtype=np.int64) - self.first_ns, 0, self.reach_ns - 1)
        wanted = np.asarray(queue, dtype=np.int64) * self.reach_ns + inside
        return np.searchsorted(self.keys, wanted, side=side).astype(np.int64)

    def _of_queue(self, place: Int64Array, queue: AnyArray) -> Int64Array:
        exists = (place >= 0) & (place < len(self.keys))
        safe = np.where(exists, place, 0)
        return np.where(exists & (self.queue[safe] == queue), place, -1) if len(self.keys) else place * 0 - 1
