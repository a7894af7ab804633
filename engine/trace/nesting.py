"""Depth and parent of slices: which slice contains which, and on which row each is drawn."""

import numba
import numpy as np

from engine.core.arrays import Int32Array, Int64Array

# With more open rows than this the remaining slices share the last row: deeper stacks are unreadable and would make
# the search for a free row quadratic (speedscope#386 died of an 11 MB file of very deep calls).
MAX_ROWS = 4096


def nest(
    track: Int32Array, start_ns: Int64Array, duration_ns: Int64Array, slack_ns: int = 0
) -> tuple[Int32Array, Int32Array]:
    """Returns ``(depth, parent)``, int32 shape (n,), for events sorted by (track, start, −duration).

    A slice's parent is the innermost slice of its track that contains it; one that merely overlaps another gets a
    free row and keeps its times (perfetto#4280 drops it, catapult stretches it).

    Args:
        track: int32, shape (n,).
        start_ns: int64, shape (n,).
        duration_ns: int64, shape (n,).
        slack_ns: By how much a child may end after its parent because the file rounds its times.
    """
    depth, parent = _nest(track, start_ns, duration_ns, slack_ns, MAX_ROWS)
    return depth, parent


def nesting_order(track: Int32Array, start_ns: Int64Array, duration_ns: Int64Array) -> Int64Array | None:
    """Returns the stable order by (track, start, −duration), int64, or None where the slices already stand in it."""
    if _in_order(track, start_ns, duration_ns):
        return None
    low = int(start_ns.min())
    time_bits = (int(start_ns.max()) - low).bit_length()
    if int(track.min()) >= 0 and time_bits + int(track.max()).bit_length() <= 62:
        # One sort of one key; a file's rows come in long ordered runs, which the stable sort uses.
        key = (track.astype(np.int64) << time_bits) | (start_ns - low)
        order: Int64Array = np.argsort(key, kind="stable")
        if _in_order(track[order], start_ns[order], duration_ns[order]):
            return order
    return np.lexsort((-duration_ns, start_ns, track))


def _in_order(track: Int32Array, start_ns: Int64Array, duration_ns: Int64Array) -> bool:
    later = (track[1:] > track[:-1]) | ((track[1:] == track[:-1]) & (start_ns[1:] > start_ns[:-1]))
    same = (track[1:] == track[:-1]) & (start_ns[1:] == start_ns[:-1])
    return bool(np.all(later | (same & (duration_ns[1:] <= duration_ns[:-1]))))


@numba.njit(cache=True)
def _nest(track, start_ns, duration_ns, slack_ns, max_rows):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    count = len(start_ns)
    depth = np.zeros(count, np.int32)
    parent = np.full(count, -1, np.int32)
    row_end = np.zeros(max_rows, np.int64)
    row_event = np.zeros(max_rows, np.int32)
    rows = 0
    current = np.int32(-1)
    for event in range(count):
        if track[event] != current:
            current = track[event]
            rows = 0
        start = start_ns[event]
        end = start + duration_ns[event]
        while rows > 0 and row_end[rows - 1] <= start:
            rows -= 1
        row = rows - 1
        while row >= 0 and not (row_end[row] > start and end <= row_end[row] + slack_ns):
            row -= 1
        if row >= 0:
            parent[event] = row_event[row]
        row += 1
        while row < rows and row_end[row] > start:
            row += 1
        row = min(row, max_rows - 1)
        depth[event] = row
        row_end[row] = end
        row_event[row] = event
        rows = max(rows, row + 1)
    return depth, parent
