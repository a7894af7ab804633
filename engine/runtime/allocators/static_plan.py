"""Static plans: offsets for blocks whose lifetimes are known, in one range of addresses as low as possible.

Heuristics place blocks one by one in several orders, at the lowest or the tightest hole (as SOMAS and TFLite do). What
they reach is the start of a search (``plan_search``) for lower plans, with a budget of placements, not of time, so that
the same blocks always get the same plan.
"""
# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np

from engine.core.arrays import Float64Array, Int64Array
from engine.runtime.allocators.plan_search import FOUND, PlanProblem, plan_problem, search

SEARCH_LIMIT = 1500
"""Blocks beyond which the heuristics' plan is taken as it is."""
_ORDER_NODES = 100_000
_RESTART_NODES = 10_000
_RESTARTS = 100
_ROUNDS = 6
_FORGETTING = 0.8


@dataclass(frozen=True, slots=True, eq=False)
class StaticPlan:
    """Offsets and how good they are.

    Attributes:
        offset: int64, shape (n,), bytes from the start of the range.
        height_bytes: Size of the range.
        lower_bound_bytes: The highest sum alive at one time; no plan is lower.
        heuristic_height_bytes: What the best heuristic reached.
    """

    offset: Int64Array
    height_bytes: int
    lower_bound_bytes: int
    heuristic_height_bytes: int


def static_plan(size: Int64Array, lower: Int64Array, upper: Int64Array, *, effort: float = 1.0) -> StaticPlan:
    """Returns a plan for blocks of ``size`` bytes alive in [lower, upper).

    Args:
        size: int64, shape (n,), > 0.
        lower: int64, shape (n,).
        upper: int64, shape (n,), > lower.
        effort: Scales the search; 0 for the heuristics only.
    """
    problem = plan_problem(size, lower, upper)
    load = _section_loads(problem)
    bound = int(load.max(initial=0))
    ranks = _ranks(problem, load, (upper - lower).astype(np.float64))
    best = min(_heuristic_plans(problem, ranks), key=lambda offset: _height(problem, offset))
    heuristic = _height(problem, best)
    if effort > 0 and len(size) <= SEARCH_LIMIT:
        best = _improved(problem, load, ranks, best, effort)
    return StaticPlan(best, _height(problem, best), bound, heuristic)


def _improved(
    problem: PlanProblem, load: Int64Array, ranks: list[Int64Array], best: Int64Array, effort: float
) -> Int64Array:
    """Returns the lowest plan found: first at the bound itself, then by halving what is left between."""
    bound = int(load.max(initial=0))
    low, target = bound, bound
    for _ in range(_ROUNDS):
        high = _height(problem, best)
        if high <= target:
            return best
        found = _plan_of_height(problem, load, ranks, target, effort)
        if found is not None:
            best = found
        else:
            low = target
        target = (low + _height(problem, best)) // 2
        if _height(problem, best) - low <= max(bound // 100, 1):
            return best
    return best


def _plan_of_height(
    problem: PlanProblem, load: Int64Array, ranks: list[Int64Array], height: int, effort: float
) -> Int64Array | None:
    """Returns a plan of at most ``height``, None where none was found within the budget.

    After some fixed orders, restarts learn: blocks that cross sections where branches were cut come first.
    """
    failures = np.zeros(len(load), dtype=np.int64)
    for rank in ranks:
        status, offset = search(problem, rank, height, int(_ORDER_NODES * effort), failures)
        if status == FOUND:
            return np.asarray(offset)
    generator = np.random.default_rng(0)
    busiest = _most_over_spans(problem, load.astype(np.float64))
    weight = np.zeros(len(load), dtype=np.float64)
    for _ in range(int(_RESTARTS * effort)):
        blame = _most_over_spans(problem, weight)
        score = busiest / busiest.max() + 2 * blame / max(blame.max(), 1e-9)
        score += generator.uniform(0, 0.1, len(score))
        score += 0.2 * generator.random() * _relative(problem.last - problem.first)
        score += 0.2 * generator.random() * _relative(problem.size)
        failures[:] = 0
        rank = _rank_by(-score)
        status, offset = search(problem, rank, height, _RESTART_NODES, failures)
        if status == FOUND:
            return np.asarray(offset)
        weight = _FORGETTING * weight + failures / max(int(failures.sum()), 1)
    return None


def _heuristic_plans(problem: PlanProblem, ranks: list[Int64Array]) -> Iterator[Int64Array]:
    for rank in ranks:
        order = np.argsort(rank)
        for tightest in (False, True):
            yield _greedy(problem, order, tightest)


def _ranks(problem: PlanProblem, load: Int64Array, lifetime: Float64Array) -> list[Int64Array]:
    """Returns fixed orders, largest first: by lifetime (in time, in sections), area, size, busiest section crossed."""
    busiest = _most_over_spans(problem, load.astype(np.float64))
    size = problem.size.astype(np.float64)
    keys: list[tuple[Float64Array, ...]] = []
    for width in (lifetime, (problem.last - problem.first).astype(np.float64)):
        area = width * size
        keys += [(width, area, busiest), (busiest, area, width), (busiest, width, area), (size, width, busiest)]
    return [_rank_by(*(-column for column in columns)) for columns in keys]


def _rank_by(*keys: Float64Array) -> Int64Array:
    """Returns the position of each block in the order by the first key, then by the others."""
    rank = np.empty(len(keys[0]), dtype=np.int64)
    rank[np.lexsort(keys[::-1])] = np.arange(len(rank))
    return rank


def _relative(column: Int64Array) -> Float64Array:
    return column / max(int(column.max(initial=1)), 1)


def _section_loads(problem: PlanProblem) -> Int64Array:
    """Returns the bytes alive in each section of time."""
    change = np.zeros(len(problem.section), dtype=np.int64)
    np.add.at(change, problem.first, problem.size)
    np.subtract.at(change, problem.last, problem.size)
    return np.cumsum(change)[:-1]


@numba.njit(cache=True)
def _most_over_spans(problem, value):
    """Returns, per block, the largest value of the sections it spans."""
    most = np.empty(len(problem.size), np.float64)
    for block in range(len(most)):
        most[block] = value[problem.first[block] : problem.last[block]].max()
    return most


def _height(problem: PlanProblem, offset: Int64Array) -> int:
    return int((offset + problem.size).max(initial=0))


@numba.njit(cache=True)
def _greedy(problem, order, tightest):
    """Places blocks in order, each into the lowest hole between its placed neighbours, or into the tightest."""
    offset = np.full(len(order), -1, np.int64)
    for block in order:
        size = problem.size[block]
        around = problem.neighbours[problem.start[block] : problem.start[block + 1]]
        placed = around[offset[around] >= 0]
        placed = placed[np.argsort(offset[placed])]
        end = np.int64(0)
        best, best_left = np.int64(-1), np.int64(1) << 62
        for other in placed:
            left = offset[other] - end - size
            if left >= 0 and (best < 0 or (tightest and left < best_left)):
                best, best_left = end, left
            end = max(end, offset[other] + problem.size[other])
        offset[block] = best if best >= 0 else end
    return offset
