"""Moves the gathering of updated weights from behind the optimizer beside the forward pass that needs them."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Role
from engine.optimizations.communication.exposure import Exposure
from engine.optimizations.communication.parts import Parts
from engine.optimizations.communication.pass_calls import (
    PassCalls,
    bucket_parts,
    calls_with_pass,
    measured,
    slowed_passes,
)
from engine.optimizations.communication.payload import HALF_BYTES
from engine.optimizations.communication.progress import RankComputing, Stretch, forward_after, rank_computing
from engine.optimizations.communication.weight_order import by_weights
from engine.optimizations.graph_edits import edges_of, with_tasks
from engine.optimizations.interface import Bound, CapturePlan

ASSUMPTION = (
    "weights gathered behind the optimizer of one step are gathered beside the forward pass of the next: in the "
    "prediction beside that of the same step, since steps repeat; they are needed as the products of the pass are, "
    "evenly where shapes are not told"
)


def gathers_before_forward(recorded: TaskGraph, seen: Exposure | None = None) -> PassCalls | None:
    """Returns the gathers behind an optimizer with the first forward pass of their step, None where there is none.

    Args:
        recorded: The tasks.
        seen: When they run, where the caller knows.
    """
    return calls_with_pass(recorded, Role.PARAMETERS, _find_forward, seen)


def _find_forward(
    graph: TaskGraph, computing: RankComputing, start_ns: int, arrival_ns: int, borders: Int64Array
) -> Stretch | None:
    found = forward_after(computing, start_ns, arrival_ns, borders)
    if found is None or _stands_ahead(graph, computing, int(graph.step[found.task[0]]), arrival_ns):
        return None
    return found


def _stands_ahead(graph: TaskGraph, computing: RankComputing, step: int, moment_ns: int) -> bool:
    """Returns whether most of a step is computed after a moment: gathers at it do not stand behind the optimizer."""
    own = graph.step[computing.task] == step
    length_ns = (computing.end_ns - computing.start_ns) * own
    return bool(2 * length_ns[computing.start_ns >= moment_ns].sum() > length_ns.sum())


def lead_steps(graph: TaskGraph, seen: Exposure) -> bool:
    """Returns whether gathers of weights begin before most of their step is computed, on every rank that shows it."""
    calls, computing = seen.calls.of(Role.PARAMETERS), rank_computing(graph, seen.schedule)
    starts = seen.schedule.start_ns[calls.task].tolist()
    rows = zip(graph.rank[calls.task].tolist(), graph.step[calls.task].tolist(), starts, strict=True)
    return all(_stands_ahead(graph, computing[rank], step, start) for rank, step, start in rows if rank in computing)


def prefetched(plan: CapturePlan, recorded: PassCalls, bucket_bytes: int, bound: Bound) -> CapturePlan:
    """Returns the plan with weights gathered in buckets from the beginning of each step.

    LOW leaves everything as recorded. EXPECTED lets the first layer of a bucket wait for all of it. HIGH lets its last
    one wait, and slows nothing.
    """
    if bound is Bound.LOW:
        return plan
    found = measured(plan, recorded, HALF_BYTES, by_weights)
    parts, ideal = bucket_parts(plan, found, bucket_bytes), bound is Bound.HIGH
    consumer = found.part_tasks(parts, found.part_ratio(parts, end=ideal), at_end=False)
    before, after = _waits(found, parts, consumer)
    slowed = parts.graph if ideal else slowed_passes(plan, found, parts)
    result, _ = with_tasks(slowed, parts.columns, parts.place, before, after)
    return replace(plan, graph=result, assumptions=(*plan.assumptions, ASSUMPTION))


def _waits(found: PassCalls, parts: Parts, consumer: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Returns all waits of the result: gathers wait for their step to begin, and nothing behind the step for them."""
    graph = found.graph
    before, after = edges_of(graph)
    moved = np.zeros(len(graph), dtype=np.bool_)
    moved[found.calls.task] = True
    kept = ~moved[after] & ~moved[before]
    gate = _gates(found)[parts.call_of()]
    known = gate >= 0
    return (
        np.concatenate((before[kept], gate[known], parts.number)),
        np.concatenate((after[kept], parts.number[known], consumer)),
    )


def _gates(found: PassCalls) -> Int32Array:
    """Returns the last computing of the step before, which each gather waits for, int32; −1 for none."""
    graph, times = found.graph, found.seen.schedule
    gate = np.full(len(found.calls), -1, dtype=np.int32)
    computing = rank_computing(graph, times)
    for row, call in enumerate(found.calls.task.tolist()):
        own = computing[int(graph.rank[call])].task
        earlier = own[(graph.step[own] < graph.step[call]) & (graph.step[own] >= 0)]
        gate[row] = earlier[np.argmax(times.end_ns[earlier])] if len(earlier) else -1
    return gate
