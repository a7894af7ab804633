"""Which tasks wait for themselves: what must not come out of joining tasks."""

import numba
import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.graph.builder import predecessor_rows


def on_circles(before: Int32Array, after: Int32Array, count: int) -> BoolArray:
    """Returns which of ``count`` nodes lie on a circle of dependencies or between two of them, bool, shape (count,).

    What is left when nodes without open predecessors, and those without open successors, are taken away until none is.

    Args:
        before: int32, shape (edges,): what must have ended.
        after: int32, shape (edges,): what waits.
        count: Number of nodes.
    """
    forwards, followers = predecessor_rows(after, before, count)
    backwards, predecessors = predecessor_rows(before, after, count)
    left = np.ones(count, dtype=np.bool_)
    _peel(np.diff(backwards), forwards, followers, left)
    if not np.any(left):
        return left
    also = np.ones(count, dtype=np.bool_)
    _peel(np.diff(forwards), backwards, predecessors, also)
    result: BoolArray = left & also
    return result


@numba.njit(cache=True)
def _peel(missing: Int64Array, offsets: Int64Array, followers: Int32Array, left: BoolArray) -> None:
    """Clears ``left`` of every node that can be reached by taking away nodes nothing is missing for.

    Args:
        missing: int64, shape (nodes,): what each node waits for; counted down.
        offsets: int64, shape (nodes + 1,): rows of ``followers``.
        followers: int32: nodes that wait for each node.
        left: bool, shape (nodes,).
    """
    stack = np.empty(len(missing), np.int64)
    size = 0
    for node in range(len(missing)):
        if missing[node] == 0:
            stack[size] = node
            size += 1
    while size > 0:
        size -= 1
        node = stack[size]
        left[node] = False
        for index in range(offsets[node], offsets[node + 1]):
            follower = followers[index]
            missing[follower] -= 1
            if missing[follower] == 0:
                stack[size] = follower
                size += 1
