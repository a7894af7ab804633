"""Which step a moment lies in."""

from typing import TYPE_CHECKING

import numpy as np

from engine.analyses.steps import Step
from engine.core.arrays import Int32Array, Int64Array
from engine.trace.strings import ABSENT
from engine.trace.trace import TimeRange

if TYPE_CHECKING:  # the communication analysis imports this module
    from engine.analyses.communication.collectives import Collective


def positions_in(ranges: tuple[TimeRange, ...], moment_ns: Int64Array) -> Int64Array:
    """Returns the position in ``ranges`` of the range each moment lies in, int64, −1 outside.

    Ranges may come in any order; where they overlap, the one that began last counts.
    """
    if not ranges:
        return np.full(len(moment_ns), ABSENT, dtype=np.int64)
    start_ns = np.array([item.start_ns for item in ranges], dtype=np.int64)
    end_ns = np.array([item.end_ns for item in ranges], dtype=np.int64)
    order = np.argsort(start_ns, kind="stable")
    begun = np.searchsorted(start_ns[order], moment_ns, side="right") - 1
    candidate = order[np.maximum(begun, 0)]
    return np.where((begun >= 0) & (moment_ns < end_ns[candidate]), candidate, ABSENT).astype(np.int64)


def positions_of_collectives(collectives: "tuple[Collective, ...]", steps: tuple[Step, ...]) -> Int64Array:
    """Returns the position in ``steps`` of the step each collective starts in, int64, −1 where it is in none.

    A collective outside all ranges belongs to the step whose number the capture gives it.
    """
    start_ns = np.array([item.start_ns for item in collectives], dtype=np.int64)
    number = np.array([ABSENT if item.step is None else item.step for item in collectives], dtype=np.int32)
    return positions_of_starts(start_ns, number, steps)


def positions_of_starts(start_ns: Int64Array, number: Int32Array, steps: tuple[Step, ...]) -> Int64Array:
    """Returns the positions in ``steps`` for starts (int64) with recorded step numbers (int32, −1 for none)."""
    position = positions_in(tuple(step.range for step in steps), start_ns)
    for index, step in enumerate(steps):
        if step.step is not None:
            position[(position == ABSENT) & (number == step.step)] = index
    return position
