"""Moves gradient exchanges of a capture beside the backward pass that produces what they reduce."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Role
from engine.optimizations.communication.exposure import Exposure
from engine.optimizations.communication.following import next_computing, stream_followers
from engine.optimizations.communication.parts import Parts
from engine.optimizations.communication.pass_calls import (
    PassCalls,
    bucket_parts,
    calls_with_pass,
    measured,
    slowed_passes,
)
from engine.optimizations.communication.payload import element_bytes
from engine.optimizations.communication.progress import RankComputing, Stretch, backward_before
from engine.optimizations.communication.weight_order import by_gradients
from engine.optimizations.graph_edits import edges_of, launches_of, with_tasks
from engine.optimizations.interface import Bound, CapturePlan
from engine.trace.intervals import EMPTY, covered_ns

ASSUMPTION = (
    "gradients are complete as the products of the last backward pass make them, evenly where shapes are not told"
)
_STILL_COMPUTING = 0.1
"""Kernels that merely scale gradients between two exchanges are far less than this share of a backward pass."""


def exchanges_behind_backward(recorded: TaskGraph, seen: Exposure | None = None) -> PassCalls | None:
    """Returns the gradient exchanges with the backward pass before each, None where there is none.

    Args:
        recorded: The tasks.
        seen: When they run, where the caller knows.
    """
    return calls_with_pass(recorded, Role.GRADIENTS, _find_backward, seen)


def _find_backward(
    graph: TaskGraph, computing: RankComputing, start_ns: int, arrival_ns: int, borders: Int64Array
) -> Stretch | None:
    del graph
    return backward_before(computing, start_ns, arrival_ns, borders)


def exchanges_beside(found: PassCalls) -> BoolArray:
    """Returns which exchanges begin while their rank still computes a tenth of a pass before the step's last one."""
    graph, task, times = found.graph, found.calls.task, found.seen.schedule
    last_ns: dict[int, int] = {}
    # Exchanges of one rank and step share their stretch; a loop over a handful of them per step.
    for call, stretch in zip(task.tolist(), found.stretch, strict=True):
        last_ns[id(stretch)] = max(last_ns.get(id(stretch), 0), int(times.start_ns[call]))
    beside = np.zeros(len(task), dtype=np.bool_)
    for row, (call, stretch) in enumerate(zip(task.tolist(), found.stretch, strict=True)):
        begin = times.start_ns[call : call + 1]
        stop = np.array([last_ns[id(stretch)]], dtype=np.int64)
        computed = covered_ns(found.seen.computing.get(int(graph.rank[call]), EMPTY), begin, stop)
        beside[row] = computed[0] > _STILL_COMPUTING * stretch.total_ns
    return beside


def runs_beside(found: PassCalls, beside: BoolArray) -> bool:
    """Returns whether exchanges overlap already: on half the ranks and steps at least one runs beside its pass."""
    keys = found.pass_ids
    overlapping = {key for key, is_beside in zip(keys, beside, strict=True) if is_beside}
    return 2 * len(overlapping) >= len(set(keys))


def overlapped(plan: CapturePlan, recorded: PassCalls, bucket_bytes: int, bound: Bound) -> CapturePlan:
    """Returns the plan with the exchanges cut into buckets, each sent as soon as its gradients are there.

    LOW leaves everything as recorded: nothing in a capture says which gradient an exchange carries. EXPECTED takes them
    in the order the pass makes them. HIGH has each bucket's gradients at the beginning of its share and nothing slowed.
    """
    if bound is Bound.LOW:
        return plan
    found = measured(plan, recorded, element_bytes(recorded.graph, recorded.calls), by_gradients)
    parts, ideal = bucket_parts(plan, found, bucket_bytes), bound is Bound.HIGH
    producer = found.part_tasks(parts, found.part_ratio(parts, end=not ideal), at_end=not ideal)
    before, after = _waits(found, parts, producer)
    slowed = parts.graph if ideal else slowed_passes(plan, found, parts)
    result, _ = with_tasks(slowed, parts.columns, parts.place, before, after)
    return replace(plan, graph=result, assumptions=(*plan.assumptions, ASSUMPTION))


def _waits(found: PassCalls, parts: Parts, producer: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Returns all waits of the result.

    A part waits for its producer, and was launched when that was: the hook that sends it runs right behind. What came
    after a call on its stream, and what was computed next after its end, still waits for the call.
    """
    graph, calls = found.graph, found.calls
    before, after = edges_of(graph)
    moved = np.zeros(len(graph), dtype=np.bool_)
    moved[calls.task] = True
    kept = ~moved[after]
    launch = launches_of(graph)[producer]
    followers = stream_followers(graph, calls.task, moved)
    computing = next_computing(found.seen, graph, calls.task, found.seen.schedule.end_ns[calls.task])
    pairs = (
        (launch, parts.number),
        (producer, parts.number),
        (before[kept], after[kept]),
        (calls.task, followers),
        (calls.task, computing),
    )
    known = [(first >= 0) & (second >= 0) for first, second in pairs]
    return (
        np.concatenate([first[rows] for (first, _), rows in zip(pairs, known, strict=True)]),
        np.concatenate([second[rows] for (_, second), rows in zip(pairs, known, strict=True)]),
    )
