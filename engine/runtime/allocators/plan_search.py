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
# ruff: noqa: ANN001, ANN201, ANN202

from typing import NamedTuple

import numba
import numpy as np

from engine.core.arrays import Int64Array

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


@numba.njit(cache=True)
def search(problem, rank, height, node_limit, failures):
    """Looks for offsets of at most ``height``; returns (FOUND, IMPOSSIBLE or GAVE_UP, offsets).

    Args:
        problem: ``PlanProblem``.
        rank: int64, shape (n,): which of two candidates of one offset is tried first, the lower the earlier.
        height: Bytes.
        node_limit: Placements to try at most.
        failures: int64, shape (sections,): is raised where a branch was cut.
    """
    count = len(problem.size)
    sections = len(problem.section) - 1
    offset = np.full(count, -1, np.int64)
    lowest = np.zeros(count, np.int64)
    unplaced_bytes = np.zeros(sections, np.int64)
    for block in range(count):
        for place in range(problem.first[block], problem.last[block]):
            unplaced_bytes[place] += problem.size[block]
    open_neighbours = problem.start[1:] - problem.start[:-1]
    stamp = np.full(sections, -1, np.int64)
    log_block = np.empty(len(problem.neighbours) + 1, np.int64)
    log_lowest = np.empty(len(problem.neighbours) + 1, np.int64)
    log_size = np.zeros(count + 2, np.int64)
    placed = np.empty(count + 1, np.int64)
    floors = np.zeros(count + 2, np.int64)
    ranks = np.full(count + 2, -1, np.int64)
    candidates = np.empty((count + 1, count), np.int32)
    candidate_count = np.zeros(count + 2, np.int64)
    tried = np.zeros(count + 2, np.int64)
    depth, nodes = 0, 0
    candidate_count[0] = _candidates(problem, rank, offset, lowest, open_neighbours, 0, -1, height, candidates[0])
    while True:
        if depth == count:
            return FOUND, offset
        if tried[depth] == candidate_count[depth]:
            if depth == 0:
                return IMPOSSIBLE, offset
            depth -= 1
            _take_back(
                problem, placed[depth], offset, lowest, unplaced_bytes, open_neighbours, log_block, log_lowest,
                log_size, depth,
            )  # fmt: skip
            continue
        block = np.int64(candidates[depth, tried[depth]])
        tried[depth] += 1
        nodes += 1
        if nodes > node_limit:
            return GAVE_UP, offset
        alone = open_neighbours[block] == 0
        _place(problem, block, offset, lowest, unplaced_bytes, open_neighbours, log_block, log_lowest, log_size, depth)
        placed[depth] = block
        floors[depth + 1] = floors[depth] if alone else offset[block]
        ranks[depth + 1] = ranks[depth] if alone else rank[block]
        depth += 1
        if not alone and not _can_hold(
            problem,
            block,
            offset,
            lowest,
            unplaced_bytes,
            stamp,
            nodes,
            floors[depth],
            floors[depth - 1],
            height,
            failures,
        ):
            depth -= 1
            _take_back(
                problem, block, offset, lowest, unplaced_bytes, open_neighbours, log_block, log_lowest, log_size, depth
            )
            continue
        tried[depth] = 0
        if depth < count:
            candidate_count[depth] = _candidates(
                problem, rank, offset, lowest, open_neighbours, floors[depth], ranks[depth], height, candidates[depth]
            )


@numba.njit(cache=True)
def _candidates(problem, rank, offset, lowest, open_neighbours, floor, last_rank, height, found):
    """Fills ``found`` with the blocks that may come next, in the order to try them; returns how many."""
    count = 0
    bound = np.int64(1) << 62
    for block in range(len(offset)):
        if offset[block] < 0:
            if open_neighbours[block] == 0:
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


@numba.njit(cache=True)
def _before(lowest, rank, block, other):
    return lowest[block] < lowest[other] or (lowest[block] == lowest[other] and rank[block] < rank[other])


@numba.njit(cache=True)
def _place(
    problem, block, offset, lowest, unplaced_bytes, open_neighbours, log_block, log_lowest, log_size, depth
):  # fmt: skip
    """Puts a block at its lowest place and raises its neighbours' lowest places, remembering what they were."""
    offset[block] = lowest[block]
    top = offset[block] + problem.size[block]
    for place in range(problem.first[block], problem.last[block]):
        unplaced_bytes[place] -= problem.size[block]
    end = log_size[depth]
    for index in range(problem.start[block], problem.start[block + 1]):
        other = problem.neighbours[index]
        open_neighbours[other] -= 1
        if offset[other] < 0 and lowest[other] < top:
            log_block[end], log_lowest[end] = other, lowest[other]
            end += 1
            lowest[other] = top
    log_size[depth + 1] = end


@numba.njit(cache=True)
def _take_back(
    problem, block, offset, lowest, unplaced_bytes, open_neighbours, log_block, log_lowest, log_size, depth
):  # fmt: skip
    for index in range(log_size[depth + 1] - 1, log_size[depth] - 1, -1):
        lowest[log_block[index]] = log_lowest[index]
    for index in range(problem.start[block], problem.start[block + 1]):
        open_neighbours[problem.neighbours[index]] += 1
    for place in range(problem.first[block], problem.last[block]):
        unplaced_bytes[place] += problem.size[block]
    offset[block] = -1


@numba.njit(cache=True)
def _can_hold(problem, block, offset, lowest, unplaced_bytes, stamp, node, floor, floor_before, height, failures):
    """Tells whether every section whose state changed still has room for its unplaced blocks; counts failures."""
    if floor > floor_before:
        for place in range(len(unplaced_bytes)):
            if unplaced_bytes[place] > 0 and floor + unplaced_bytes[place] > height:
                failures[place] += 1
                return False
    for index in range(problem.start[block], problem.start[block + 1]):
        other = problem.neighbours[index]
        if offset[other] >= 0:
            continue
        if lowest[other] + problem.size[other] > height:
            failures[problem.first[other] : problem.last[other]] += 1
            return False
        for place in range(problem.first[other], problem.last[other]):
            if stamp[place] == node:
                continue
            stamp[place] = node
            lowest_here = np.int64(1) << 62
            for member in range(problem.section[place], problem.section[place + 1]):
                inside = problem.members[member]
                if offset[inside] < 0:
                    lowest_here = min(lowest_here, lowest[inside])
            if max(lowest_here, floor) + unplaced_bytes[place] > height:
                failures[place] += 1
                return False
    return True
