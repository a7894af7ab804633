"""Search for a static plan of a given height: depth first over plans whose blocks are placed from the bottom up.

A plan in which nothing can be moved down is found by placing blocks in the order of their offsets, each right on top of
the highest placed block it overlaps in time. The search branches over which block comes next and cuts a branch when

* in some section of time the lowest place left plus everything not placed yet exceeds the height;
* a block that is not placed yet fits wholly below the candidate: the same plan with that block moved down is found
  elsewhere;
* two blocks of one offset would be placed in both orders.

A block that overlaps nothing unplaced is placed at once. The method is that of MiniMalloc (Moffitt, ASPLOS 2023),
written from its published description.
"""
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: ANN001, ANN202

from typing import NamedTuple

import numba
import numpy as np

from engine.core.arrays import Int64Array
from engine.runtime.allocators.compiled import compiled

FOUND, IMPOSSIBLE, GAVE_UP = 0, 1, 2


class PlanProblem(NamedTuple):
    """Blocks with the sections of time they span. int64 arrays.

    Attributes:
        size: Of each block.
        first: First section of each block.
        last: One after its last section.
        neighbours: Blocks that overlap block b in time: ``neighbours[start[b]:start[b + 1]]``.
        start: See ``neighbours``.
        members: Blocks of section s: ``members[section[s]:section[s + 1]]``.
        section: See ``members``.
    """

    size: Int64Array
    first: Int64Array
    last: Int64Array
    neighbours: Int64Array
    start: Int64Array
    members: Int64Array
    section: Int64Array


class SearchState(NamedTuple):
    """A plan in the making. int64 arrays.

    Attributes:
        offset: Of placed blocks, −1 of the others.
        lowest: The lowest place left for each block.
        unplaced_bytes: Of each section, what is not placed yet.
        open_neighbours: Of each block, how many overlapping blocks are not placed.
        stamp: Of each section, the last placement at which it was looked at.
        log_block: Blocks whose lowest place was raised, in order.
        log_lowest: What it was before.
        log_size: Length of that log at every depth.
        failures: Of each section, how often it cut a branch.
    """

    offset: Int64Array
    lowest: Int64Array
    unplaced_bytes: Int64Array
    open_neighbours: Int64Array
    stamp: Int64Array
    log_block: Int64Array
    log_lowest: Int64Array
    log_size: Int64Array
    failures: Int64Array


def plan_problem(size: Int64Array, lower: Int64Array, upper: Int64Array) -> PlanProblem:
    """Returns the problem of blocks alive in [lower, upper)."""
    times = np.unique(np.concatenate((lower, upper)))
    first, last = np.searchsorted(times, lower), np.searchsorted(times, upper)
    section_count = max(len(times) - 1, 0)
    spans = last - first
    owner = np.repeat(np.arange(len(size)), spans)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(spans) - spans, spans) + np.repeat(first, spans)
    order = np.argsort(place, kind="stable")
    section = np.searchsorted(place[order], np.arange(section_count + 1))
    by_start, by_end = np.sort(first), np.sort(last)
    # Blocks that overlap b began before its end and did not end before its start; b itself is one of them.
    degree = np.searchsorted(by_start, last, side="left") - np.searchsorted(by_end, first, side="right") - 1
    start = np.concatenate(([0], np.cumsum(degree))).astype(np.int64)
    neighbours = _neighbours(first.astype(np.int64), last.astype(np.int64), start)
    return PlanProblem(
        size.astype(np.int64),
        first.astype(np.int64),
        last.astype(np.int64),
        neighbours,
        start,
        owner[order].astype(np.int64),
        section.astype(np.int64),
    )


@numba.njit(cache=True)
def _neighbours(first, last, start):
    order = np.argsort(first, kind="mergesort")
    found = np.empty(start[-1], np.int64)
    filled = start[:-1].copy()
    for position in range(len(order)):
        block = order[position]
        for after in range(position + 1, len(order)):
            other = order[after]
            if first[other] >= last[block]:
                break
            found[filled[block]] = other
            filled[block] += 1
            found[filled[other]] = block
            filled[other] += 1
    return found


def search(
    problem: PlanProblem, rank: Int64Array, height: int, node_limit: int, failures: Int64Array
) -> tuple[int, Int64Array]:
    """Looks for offsets of at most ``height``; returns (FOUND, IMPOSSIBLE or GAVE_UP, offsets).

    Args:
        problem: The blocks.
        rank: int64, shape (n,): which of two candidates of one offset is tried first, the lower the earlier.
        height: Bytes.
        node_limit: Placements to try at most.
        failures: int64, shape (sections,): is raised where a branch was cut.
    """
    count, sections = len(problem.size), len(problem.section) - 1
    change = np.zeros(sections + 1, dtype=np.int64)
    np.add.at(change, problem.first, problem.size)
    np.subtract.at(change, problem.last, problem.size)
    state = SearchState(
        offset=np.full(count, -1, dtype=np.int64),
        lowest=np.zeros(count, dtype=np.int64),
        unplaced_bytes=np.cumsum(change)[:-1],
        open_neighbours=np.diff(problem.start),
        stamp=np.full(sections, -1, dtype=np.int64),
        log_block=np.empty(len(problem.neighbours) + 1, dtype=np.int64),
        log_lowest=np.empty(len(problem.neighbours) + 1, dtype=np.int64),
        log_size=np.zeros(count + 2, dtype=np.int64),
        failures=failures,
    )
    candidates = np.empty((count + 1, count), dtype=np.int32)
    depths = np.zeros((5, count + 2), dtype=np.int64)
    return int(_descend(problem, state, rank, height, node_limit, candidates, depths)), state.offset


@compiled
def _descend(problem, state, rank, height, node_limit, candidates, depths):
    """Searches depth first; ``depths`` is room for what is known of every depth, ``candidates`` for its choices."""
    placed, floors, ranks, candidate_count, tried = depths[0], depths[1], depths[2], depths[3], depths[4]
    ranks[0] = -1
    depth, nodes, count = 0, 0, len(problem.size)
    candidate_count[0] = _candidates(problem, state, rank, 0, -1, height, candidates[0])
    while depth < count:
        if tried[depth] == candidate_count[depth]:
            if depth == 0:
                return IMPOSSIBLE
            depth -= 1
            _take_back(problem, state, placed[depth], depth)
            continue
        block = np.int64(candidates[depth, tried[depth]])
        tried[depth] += 1
        nodes += 1
        if nodes > node_limit:
            return GAVE_UP
        alone = state.open_neighbours[block] == 0
        _place(problem, state, block, depth)
        placed[depth] = block
        floors[depth + 1] = floors[depth] if alone else state.offset[block]
        ranks[depth + 1] = ranks[depth] if alone else rank[block]
        if not alone and not _can_hold(problem, state, block, nodes, floors[depth + 1], floors[depth], height):
            _take_back(problem, state, block, depth)
            continue
        depth += 1
        tried[depth] = 0
        if depth < count:
            candidate_count[depth] = _candidates(
                problem, state, rank, floors[depth], ranks[depth], height, candidates[depth]
            )
    return FOUND


@compiled
def _candidates(problem, state, rank, floor, last_rank, height, found):
    """Fills ``found`` with the blocks that may come next, in the order to try them; returns how many."""
    offset, lowest = state.offset, state.lowest
    count = 0
    bound = np.int64(1) << 62
    for block in range(len(offset)):
        if offset[block] < 0:
            if state.open_neighbours[block] == 0:
                if lowest[block] + problem.size[block] > height:
                    return 0
                found[0] = block
                return 1
            bound = min(bound, lowest[block] + problem.size[block])
    for block in range(len(offset)):
        if offset[block] >= 0 or lowest[block] < floor or lowest[block] >= bound:
            continue
        if lowest[block] == floor and rank[block] < last_rank:
            continue
        position = count
        while position > 0 and _before(lowest, rank, block, found[position - 1]):
            found[position] = found[position - 1]
            position -= 1
        found[position] = block
        count += 1
    return count


@compiled
def _before(lowest, rank, block, other):
    return lowest[block] < lowest[other] or (lowest[block] == lowest[other] and rank[block] < rank[other])


@compiled
def _place(problem, state, block, depth):
    """Puts a block at its lowest place and raises its neighbours' lowest places, remembering what they were."""
    state.offset[block] = state.lowest[block]
    top = state.offset[block] + problem.size[block]
    for place in range(problem.first[block], problem.last[block]):
        state.unplaced_bytes[place] -= problem.size[block]
    end = state.log_size[depth]
    for index in range(problem.start[block], problem.start[block + 1]):
        other = problem.neighbours[index]
        state.open_neighbours[other] -= 1
        if state.offset[other] < 0 and state.lowest[other] < top:
            state.log_block[end], state.log_lowest[end] = other, state.lowest[other]
            end += 1
            state.lowest[other] = top
    state.log_size[depth + 1] = end


@compiled
def _take_back(problem, state, block, depth):
    """Undoes ``_place``."""
    for index in range(state.log_size[depth + 1] - 1, state.log_size[depth] - 1, -1):
        state.lowest[state.log_block[index]] = state.log_lowest[index]
    for index in range(problem.start[block], problem.start[block + 1]):
        state.open_neighbours[problem.neighbours[index]] += 1
    for place in range(problem.first[block], problem.last[block]):
        state.unplaced_bytes[place] += problem.size[block]
    state.offset[block] = -1


@compiled
def _can_hold(problem, state, block, node, floor, floor_before, height):
    """Tells whether every section whose state changed still has room for its unplaced blocks; counts failures."""
    unplaced_bytes = state.unplaced_bytes
    if floor > floor_before:
        for place in range(len(unplaced_bytes)):
            if unplaced_bytes[place] > 0 and floor + unplaced_bytes[place] > height:
                state.failures[place] += 1
                return False
    for index in range(problem.start[block], problem.start[block + 1]):
        other = problem.neighbours[index]
        if state.offset[other] >= 0:
            continue
        too_high = state.lowest[other] + problem.size[other] > height
        for place in range(problem.first[other], problem.last[other]):
            if too_high:
                state.failures[place] += 1
            elif state.stamp[place] != node:
                state.stamp[place] = node
                lowest_here = max(_lowest_in(problem, state, place), floor)
                if lowest_here + unplaced_bytes[place] > height:
                    state.failures[place] += 1
                    return False
        if too_high:
            return False
    return True


@compiled
def _lowest_in(problem, state, place):
    """Returns the lowest place left for any unplaced block of a section."""
    lowest = np.int64(1) << 62
    for member in range(problem.section[place], problem.section[place + 1]):
        block = problem.members[member]
        if state.offset[block] < 0:
            lowest = min(lowest, state.lowest[block])
    return lowest
