"""Moves the gathering of updated weights from behind the optimizer beside the forward pass that needs them."""

from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import Float64Array, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Calls, Role, calls_of
from engine.optimizations.communication.exposure import Exposure, exposure
from engine.optimizations.communication.gradient_overlap import bucket_ratio, pass_borders, step_starts
from engine.optimizations.communication.parts import Parts, in_parts, whole_meetings
from engine.optimizations.communication.payload import HALF_BYTES, whole_bytes
from engine.optimizations.communication.pricing import fixed_ns, plan_network, slowed_ns
from engine.optimizations.communication.progress import RankComputing, Stretch, forward_after, rank_computing
from engine.optimizations.communication.unlisted import followed_ranks, with_fine_gaps
from engine.optimizations.communication.weight_order import by_weights
from engine.optimizations.graph_edits import edges_of, with_tasks
from engine.optimizations.interface import Bound, CapturePlan
from engine.optimizations.products import products_of

ASSUMPTION = (
    "weights gathered behind the optimizer of one step are gathered beside the forward pass of the next: in the "
    "prediction beside that of the same step, since steps repeat; they are needed as the products of the pass are, "
    "evenly where shapes are not told"
)


@dataclass(frozen=True, slots=True, eq=False)
class Gathers:
    """Gathering of weights that forward passes follow. Columns of shape (calls,).

    Attributes:
        graph: The tasks.
        calls: The gathers, of complete groups only, in index order.
        seen: When everything runs as it is.
        stretch: Of each call, the first forward pass of its step.
        begin_ratio: float64: share of the pass that needs nothing of the call yet.
        end_ratio: float64: share by which everything of the call is needed.
    """

    graph: TaskGraph
    calls: Calls
    seen: Exposure
    stretch: tuple[Stretch, ...]
    begin_ratio: Float64Array
    end_ratio: Float64Array


def gathers_before_forward(recorded: TaskGraph, seen: Exposure | None = None) -> Gathers | None:
    """Returns the gathers that could run beside a forward pass, None where there is none.

    Args:
        recorded: The tasks.
        seen: When they run, where the caller knows.
    """
    graph = with_fine_gaps(recorded)
    known = seen if seen is not None and graph is recorded else exposure(graph, calls_of(graph))
    gathers = known.calls.of(Role.PARAMETERS)
    calls = gathers.select(gathers.split)
    computing, followed = rank_computing(graph, known.schedule), followed_ranks(graph)
    found: dict[int, tuple[Stretch, float, float]] = {}
    rank_of, step_of = graph.rank[calls.task], graph.step[calls.task]
    # A loop over ranks and steps; each holds a handful of gathers.
    for rank in np.unique(rank_of).tolist():
        if rank in computing:
            leader = followed.get(rank, rank)
            borders, starts = pass_borders(graph, known, leader), step_starts(graph, known, leader)
            for step in np.unique(step_of[rank_of == rank]).tolist():
                own = calls.task[(rank_of == rank) & (step_of == step)]
                found |= _shares(graph, known, computing[rank], own, (starts[step], borders))
    calls = calls.select(np.array([int(task) in found for task in calls.task], dtype=np.bool_))
    while len(calls) and not np.all(whole := whole_meetings(graph, calls.task)):
        calls = calls.select(whole)
    if len(calls) == 0:
        return None
    rows = [found[int(task)] for task in calls.task]
    begin, end = (np.array([row[index] for row in rows], dtype=np.float64) for index in (1, 2))
    return Gathers(graph, calls, known, tuple(row[0] for row in rows), begin, end)


def _shares(
    graph: TaskGraph, seen: Exposure, computing: RankComputing, task: Int32Array, bounds: tuple[int, Int64Array]
) -> dict[int, tuple[Stretch, float, float]]:
    start_ns, borders = bounds
    end_ns = int(seen.schedule.start_ns[task].min())
    forward = forward_after(computing, start_ns, end_ns, borders)
    if forward is None or _stands_ahead(graph, computing, int(graph.step[task[0]]), end_ns):
        return {}
    weight = graph.bytes[task] if np.all(graph.bytes[task] > 0) else graph.duration_ns[task]
    through = np.cumsum(weight, dtype=np.float64) / max(float(weight.sum()), 1.0)
    before = np.concatenate(([0.0], through[:-1]))
    return {
        int(call): (forward, float(low), float(high)) for call, low, high in zip(task, before, through, strict=True)
    }


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


def prefetched(plan: CapturePlan, found: Gathers, bucket_bytes: int, bound: Bound) -> CapturePlan:
    """Returns the plan with weights gathered in buckets from the beginning of each step.

    LOW leaves everything as recorded. EXPECTED lets the first layer of a bucket wait for all of it. HIGH lets its last
    one wait, and slows nothing.
    """
    if bound is Bound.LOW:
        return plan
    graph, calls = found.graph, found.calls
    found = replace(found, stretch=_by_weights(plan, found))
    share = bucket_ratio(plan, graph, calls, bucket_bytes)
    stream = np.full(len(calls), int(graph.stream.max()) + 1, dtype=np.int32)
    parts = in_parts(graph, calls.task, share, fixed_ns(graph, calls, plan_network(plan)), stream)
    ideal = bound is Bound.HIGH
    before, after = _waits(found, parts, _consumers(found, parts, ideal))
    slowed = parts.graph if ideal else _slowed(plan, found, parts)
    result, _ = with_tasks(slowed, parts.columns, parts.place, before, after)
    return replace(plan, graph=result, assumptions=(*plan.assumptions, ASSUMPTION))


def _by_weights(plan: CapturePlan, found: Gathers) -> tuple[Stretch, ...]:
    """Returns the passes measured by weights of 16 bits; calls of one rank and step share theirs."""
    elements = whole_bytes(replace(plan, graph=found.graph), found.calls) / HALF_BYTES
    keys = [id(stretch) for stretch in found.stretch]
    total = {key: float(sum(elements[row] for row, item in enumerate(keys) if item == key)) for key in set(keys)}
    tokens = products_of(found.graph).tokens
    # Gathers of one rank and step share their pass, which is measured once.
    passes = dict(zip(keys, found.stretch, strict=True))
    known = {key: by_weights(found.graph, item, total[key], tokens) for key, item in passes.items()}
    return tuple(known[key] for key in keys)


def _consumers(found: Gathers, parts: Parts, ideal: bool) -> Int32Array:
    call, through = parts.ratio(end=ideal)
    ratio = found.begin_ratio[call] + through * (found.end_ratio - found.begin_ratio)[call]
    consumer = np.empty(len(parts.number), dtype=np.int32)
    # A loop over calls: each has its own pass.
    for row, stretch in enumerate(found.stretch):
        own = slice(int(parts.offsets[row]), int(parts.offsets[row + 1]))
        consumer[own] = stretch.task_at_start(ratio[own])
    return consumer


def _waits(found: Gathers, parts: Parts, consumer: Int32Array) -> tuple[Int32Array, Int32Array]:
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


def _gates(found: Gathers) -> Int32Array:
    """Returns the last computing of the step before, which each gather waits for, int32; −1 for none."""
    graph, times = found.graph, found.seen.schedule
    gate = np.full(len(found.calls), -1, dtype=np.int32)
    computing = rank_computing(graph, times)
    for row, call in enumerate(found.calls.task.tolist()):
        own = computing[int(graph.rank[call])].task
        earlier = own[(graph.step[own] < graph.step[call]) & (graph.step[own] >= 0)]
        gate[row] = earlier[np.argmax(times.end_ns[earlier])] if len(earlier) else -1
    return gate


def _slowed(plan: CapturePlan, found: Gathers, parts: Parts) -> TaskGraph:
    duration_ns = parts.graph.duration_ns.copy()
    for key, stretch in {id(item): item for item in found.stretch}.items():
        own = [row for row, item in enumerate(found.stretch) if id(item) == key]
        hidden_ns = float(found.graph.duration_ns[found.calls.task[own]].sum())
        duration_ns[stretch.task] = slowed_ns(found.graph, stretch.task, hidden_ns, plan.device)
    return replace(parts.graph, duration_ns=duration_ns)
