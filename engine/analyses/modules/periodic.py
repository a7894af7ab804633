"""Layers without module events: a stack of equal layers launches the same kernels again and again."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array

MIN_COPIES = 3
MIN_PERIOD = 5
"""Shorter periods are runs of one call over many tensors (``Sub ApplyAdamW``), not layers."""
MAX_PERIOD = 4096
_CANDIDATES = 48
_TOLERATED_HOLE = 3
"""So many kernels in a row may differ between layers: libraries choose other kernels for the same call now and then."""
_TOLERATED_RATIO = 0.1
"""And so many of all."""
MIN_DISTINCT = 4
"""A layer has more than three kinds of kernels; fewer are loops over tensors (``LpNorm Pows Add``)."""
_DESCEND_RATIO, _DESCEND_RATIO_OF_TWO = 0.7, 0.5
"""A repetition that consists of shorter ones is a micro-batch or a decoding step, not a layer: one stack of layers
covers most of it, or a forward and a backward stack together cover half of it. (A loop over experts inside a layer
covers less.)"""


@dataclass(frozen=True, slots=True)
class Repetition:
    """Consecutive copies of one sequence.

    Attributes:
        start: Index of the first kernel.
        period: Kernels per copy.
        copies: Whole copies; what is left after the last one belongs to no copy.
    """

    start: int
    period: int
    copies: int

    @property
    def end(self) -> int:
        """Index after the last kernel of the last copy."""
        return self.start + self.period * self.copies


def repetitions(codes: Int32Array, max_period: int = MAX_PERIOD) -> tuple[Repetition, ...]:
    """Returns disjoint repetitions of at least 3 copies of at least 5 kernels, by start.

    A period is accepted where kernel i equals kernel i + period over a long enough run. Candidate periods are the
    distances between equal kernels that explain most kernels. Longer runs win; a run of period p beats the same stretch
    seen with period 2p, because it is one copy longer. Repetitions of repetitions are taken apart.

    Args:
        codes: int32, shape (n,): equal codes mean equal kernels.
        max_period: Longest period to consider.
    """
    found: list[Repetition] = []
    for outer in _longest_runs(codes, max_period):
        inner = repetitions(codes[outer.start : outer.end], outer.period - 1) if outer.period > MIN_PERIOD else ()
        covered = sum(item.end - item.start for item in inner) / (outer.end - outer.start)
        several = len({item.period for item in inner}) > 1
        if covered >= (_DESCEND_RATIO_OF_TWO if several else _DESCEND_RATIO):
            found += [Repetition(item.start + outer.start, item.period, item.copies) for item in inner]
        else:
            found.append(outer)
    return tuple(found)


def _longest_runs(codes: Int32Array, max_period: int) -> list[Repetition]:
    runs = [
        (run_length, period, start)
        for period in _candidate_periods(codes, max_period)
        for start, run_length in _runs(codes, period)
    ]
    runs.sort(key=lambda item: (-item[0], item[1], item[2]))
    taken = np.zeros(len(codes), dtype=np.bool_)
    found: list[tuple[Repetition, bool]] = []
    # One step per run long enough to be a stack of layers.
    for run_length, period, start in runs:
        free_start, free_end = _free_part(taken, start, start + run_length + period)
        copies, spare = divmod(free_end - free_start, period)
        if copies < MIN_COPIES:
            continue
        # The copies may begin up to ``spare`` kernels later just as well: what stands before belongs to the stack only
        # if no other stack ends there.
        taken[free_start + spare : free_start + copies * period] = True
        distinct = len(np.unique(codes[free_start : free_start + period]))
        found.append((Repetition(free_start, period, copies), period >= MIN_PERIOD and distinct >= MIN_DISTINCT))
    found.sort(key=lambda item: item[0].start)
    settled: list[Repetition] = []
    reached = 0
    for item, is_layer in found:
        moved = Repetition(max(item.start, reached), item.period, item.copies)
        reached = moved.end
        if is_layer:
            settled.append(moved)
    return settled


def _candidate_periods(codes: Int32Array, max_period: int) -> list[int]:
    """Returns the distances between neighbouring equal kernels that explain most kernels."""
    order = np.argsort(codes, kind="stable")
    same = codes[order[1:]] == codes[order[:-1]]
    distance = (order[1:] - order[:-1])[same]
    distance = distance[distance <= max_period]
    if len(distance) == 0:
        return []
    votes = np.bincount(distance)
    # A kernel that occurs several times per layer has shorter distances; those that occur once vote for the layer.
    # Weighing by the distance gives a period the number of kernels it explains.
    weight = votes * np.arange(len(votes))
    best = np.argsort(-weight, kind="stable")[:_CANDIDATES]
    return [int(period) for period in best.tolist() if weight[period] > 0]


def _runs(codes: Int32Array, period: int) -> list[tuple[int, int]]:
    """Returns (start, length) of runs in which kernel i equals kernel i + period, small holes closed."""
    if period >= len(codes):
        return []
    equal = codes[period:] == codes[:-period]
    closed = _close_holes(equal, min(_TOLERATED_HOLE, period // MIN_PERIOD))
    edges = np.diff(np.concatenate(([0], closed.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    lengths = ends - starts
    agreeing = np.concatenate(([0], np.cumsum(equal)))
    alike = agreeing[ends] - agreeing[starts] >= (1 - _TOLERATED_RATIO) * lengths
    keep = (lengths >= (MIN_COPIES - 1) * period) & alike
    return list(zip(starts[keep].tolist(), lengths[keep].tolist(), strict=True))


def _close_holes(equal: BoolArray, longest: int) -> BoolArray:
    if longest == 0:
        return equal
    edges = np.diff(np.concatenate(([0], (~equal).astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    # A hole is closed only between longer agreeing stretches: a kernel that agrees by chance at the rim of a stack
    # must not move where the stack begins. At the rim of the sequence there is no stretch.
    before = starts - np.concatenate(([0], ends[:-1]))
    after = np.concatenate((starts[1:], [len(equal)])) - ends
    small = (ends - starts <= longest) & (before > ends - starts) & (after > ends - starts)
    closed = equal.copy()
    if np.any(small):
        lengths = (ends - starts)[small]
        first = np.repeat(starts[small], lengths)
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        closed[first + within] = True
    return closed


def _free_part(taken: BoolArray, start: int, end: int) -> tuple[int, int]:
    """Returns the longest stretch of ``[start, end)`` that no earlier repetition has taken."""
    edges = np.diff(np.concatenate(([1], taken[start:end].astype(np.int8), [1])))
    starts, ends = np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)
    if len(starts) == 0:
        return start, start
    longest: Int64Array = ends - starts
    best = int(np.argmax(longest))
    return start + int(starts[best]), start + int(ends[best])
