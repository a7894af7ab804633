"""Sequences of kernels that come again and again and that no known fusion explains."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array

SHORTEST, LONGEST = 2, 10
MIN_COUNT = 6
MIN_SHARE_RATIO = 0.01
_MAX_REPORTED = 20
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class FrequentSequence:
    """One sequence with its places.

    Attributes:
        codes: The kernels' codes in order.
        first: int64, shape (places,): index of the first kernel of each place, ascending; places do not overlap.
        total_ns: Time of the kernels in all places.
    """

    codes: tuple[int, ...]
    first: Int64Array
    total_ns: int


def frequent_sequences(
    codes: Int32Array, duration_ns: Int64Array, breaks: BoolArray, total_ns: int
) -> tuple[FrequentSequence, ...]:
    """Returns sequences of 2 to 10 kernels that occur more than 5 times and take more than 1 % of ``total_ns``.

    Chosen by covered time, a longer one first where the times are equal, so that no reported sequence lies inside
    another at the same places. A kernel belongs to one reported sequence at most. A sequence that repeats itself
    (``A B A B``) is reported as its period; runs of one kernel are not sequences.

    Args:
        codes: int32, shape (n,): equal codes mean equal kernels.
        duration_ns: int64, shape (n,).
        breaks: bool, shape (n,): kernels no sequence may contain (also the first kernel after a change of stream
            needs a break before it; see ``starts`` in the caller).
        total_ns: Device time the share is taken of.
    """
    if len(codes) < SHORTEST or total_ns <= 0:
        return ()
    threshold_ns = MIN_SHARE_RATIO * total_ns
    running_ns = np.concatenate(([0], np.cumsum(duration_ns)))
    used = breaks.copy()
    found: list[FrequentSequence] = []
    candidates = sorted(_candidates(codes, breaks, running_ns, threshold_ns), key=lambda item: (-item[0], -item[1]))
    for _, length, starts in candidates:
        blocked = np.concatenate(([0], np.cumsum(used)))
        free = starts[blocked[starts + length] == blocked[starts]]
        places = _apart(free, length)
        time_ns = int((running_ns[places + length] - running_ns[places]).sum())
        if len(places) < MIN_COUNT or time_ns <= threshold_ns:
            continue
        sequence = tuple(codes[places[0] : places[0] + length].tolist())
        found.append(FrequentSequence(sequence, places, time_ns))
        used[(places[:, None] + np.arange(length)).ravel()] = True
        if len(found) == _MAX_REPORTED:
            break
    return tuple(found)


def _candidates(
    codes: Int32Array, breaks: BoolArray, running_ns: Int64Array, threshold_ns: float
) -> Iterator[tuple[int, int, Int64Array]]:
    """Yields (covered ns, length, starts) of every sequence frequent enough before places are shared out."""
    blocked = np.concatenate(([0], np.cumsum(breaks)))
    hashes = np.zeros(len(codes), dtype=np.uint64)
    scrambled = (codes.astype(np.uint64) + np.uint64(1)) * _MULTIPLIER
    for length in range(1, LONGEST + 1):
        count = len(codes) - length + 1
        if count <= 0:
            return
        # Polynomial hash of the window of this length; 64 bits leave no room for accidents in one capture, and the
        # places are compared with the first one below anyway.
        hashes = hashes[:count] * _MULTIPLIER + scrambled[length - 1 :]
        if length < SHORTEST:
            continue
        starts = np.flatnonzero(blocked[length : length + count] == blocked[:count])
        if len(starts) < MIN_COUNT:
            return
        order = starts[np.argsort(hashes[starts], kind="stable")]
        bounds = np.flatnonzero(np.diff(hashes[order], prepend=hashes[order[0]] + np.uint64(1)))
        sizes = np.diff(np.append(bounds, len(order)))
        window_ns = running_ns[order + length] - running_ns[order]
        group_ns = np.add.reduceat(window_ns, bounds)
        keep = (sizes >= MIN_COUNT) & (group_ns > threshold_ns)
        # A Python step per sequence above the threshold: overlaps aside, at most LONGEST × 100 of each length exist.
        for bound, size in zip(bounds[keep].tolist(), sizes[keep].tolist(), strict=True):
            places = order[bound : bound + size]
            window = codes[places[0] : places[0] + length]
            places = places[np.all(codes[places[:, None] + np.arange(length)] == window, axis=1)]
            apart = _apart(places, length)
            if len(apart) < MIN_COUNT or _repeats_itself(window):
                continue
            yield int((running_ns[apart + length] - running_ns[apart]).sum()), length, places


def _repeats_itself(window: Int32Array) -> bool:
    length = len(window)
    return any(bool(np.all(window[period:] == window[:-period])) for period in range(1, length // 2 + 1))


def _apart(starts: Int64Array, length: int) -> Int64Array:
    """Returns the starts kept when going left to right and skipping every one inside the last kept window."""
    if len(starts) < 2 or np.all(np.diff(starts) >= length):
        return starts
    kept = []
    free_from = -1
    # Only sequences that overlap themselves come here; one step per place.
    for start in starts.tolist():
        if start >= free_from:
            kept.append(start)
            free_from = start + length
    return np.array(kept, dtype=np.int64)
