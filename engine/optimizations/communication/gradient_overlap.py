"""Moves gradient exchanges of a capture beside the backward pass that produces what they reduce."""

from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Calls, Role, calls_of
from engine.optimizations.communication.exposure import Exposure, exposure
from engine.optimizations.communication.following import next_computing, stream_followers
from engine.optimizations.communication.parts import Parts, in_parts, whole_meetings
from engine.optimizations.communication.payload import element_bytes, whole_bytes
from engine.optimizations.communication.pricing import fixed_ns, plan_network, slowed_ns
from engine.optimizations.communication.progress import (
    RankComputing,
    Stretch,
    backward_before,
    rank_computing,
)
from engine.optimizations.communication.unlisted import followed_ranks, with_fine_gaps
from engine.optimizations.communication.weight_order import by_gradients
from engine.optimizations.graph_edits import edges_of, launches_of, with_tasks
from engine.optimizations.interface import Bound, CapturePlan
from engine.optimizations.products import products_of
from engine.trace.intervals import EMPTY, covered_ns

_STILL_COMPUTING = 0.1
"""Kernels that merely scale gradients between two exchanges are far less than this share of a backward pass."""


@dataclass(frozen=True, slots=True, eq=False)
class Exchanges:
    """The gradient exchanges of a graph that stand behind a backward pass, and that pass. Columns of shape (calls,).

    Attributes:
        graph: The tasks.
        calls: The exchanges, of complete groups only, in index order.
        seen: When everything runs as it is.
        stretch: Of each call, the backward pass of its rank that completes its gradients.
        begin_ratio: float64: share of that pass at which the first of its gradients are there.
        end_ratio: float64: share at which the last are, if gradients come evenly.
        beside: bool: which begin while their rank computes on for a good part of a pass before the step's last one.
    """

    graph: TaskGraph
    calls: Calls
    seen: Exposure
    stretch: tuple[Stretch, ...]
    begin_ratio: Float64Array
    end_ratio: Float64Array
    beside: BoolArray

    @property
    def runs_beside(self) -> bool:
        """Whether exchanges run beside a backward pass already: of half the ranks and steps at least one does."""
        passes = [id(item) for item in self.stretch]
        overlapping = {key for key, beside in zip(passes, self.beside, strict=True) if beside}
        return 2 * len(overlapping) >= len(set(passes))


def pass_borders(graph: TaskGraph, seen: Exposure, rank: int) -> Int64Array:
    """Returns when a rank ended exchanges with other pipeline stages, int64, ascending."""
    calls = seen.calls.of(Role.STAGES)
    own = calls.task[graph.rank[calls.task] == rank]
    return np.sort(seen.schedule.end_ns[own])


def step_starts(graph: TaskGraph, seen: Exposure, rank: int) -> dict[int, int]:
    """Returns when the first task of each step of a rank starts."""
    rows = np.flatnonzero(graph.rank == rank)
    steps = graph.step[rows]
    return {step: int(seen.schedule.start_ns[rows[steps == step]].min()) for step in np.unique(steps).tolist()}


def exchanges_behind_backward(recorded: TaskGraph, seen: Exposure | None = None) -> Exchanges | None:
    """Returns the gradient exchanges that could run beside a backward pass, None where there is none.

    A call counts where all members of its group are known and all of them have such a pass.

    Args:
        recorded: The tasks.
        seen: When they run, where the caller knows.
    """
    graph = with_fine_gaps(recorded)
    known = seen if seen is not None and graph is recorded else exposure(graph, calls_of(graph))
    gradients = known.calls.of(Role.GRADIENTS)
    calls = gradients.select(gradients.split)
    computing, followed = rank_computing(graph, known.schedule), followed_ranks(graph)
    stretches: dict[int, tuple[Stretch, float, float]] = {}
    rank_of, step_of = graph.rank[calls.task], graph.step[calls.task]
    # A loop over ranks and steps; each holds a handful of exchanges.
    for rank in np.unique(rank_of).tolist():
        if rank in computing:
            leader = followed.get(rank, rank)
            borders, starts = pass_borders(graph, known, leader), step_starts(graph, known, leader)
            for step in np.unique(step_of[rank_of == rank]).tolist():
                own = calls.task[(rank_of == rank) & (step_of == step)]
                stretches |= _shares(graph, known, computing[rank], own, (starts[step], borders))
    kept = np.array([int(task) in stretches for task in calls.task], dtype=np.bool_)
    calls = calls.select(kept)
    while len(calls) and not np.all(whole := whole_meetings(graph, calls.task)):
        calls = calls.select(whole)
    if len(calls) == 0:
        return None
    rows = [stretches[int(task)] for task in calls.task]
    begin, end = (np.array([row[index] for row in rows], dtype=np.float64) for index in (1, 2))
    found = Exchanges(
        graph, calls, known, tuple(row[0] for row in rows), begin, end, np.zeros(len(calls), dtype=np.bool_)
    )
    return replace(found, beside=_beside(found))


def _beside(found: Exchanges) -> BoolArray:
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


def _shares(
    graph: TaskGraph, seen: Exposure, computing: RankComputing, task: Int32Array, bounds: tuple[int, Int64Array]
) -> dict[int, tuple[Stretch, float, float]]:
    """Returns task → pass and share of the pass its gradients come from, for the exchanges of one rank and step."""
    start_ns, borders = bounds
    arrival_ns = int(seen.schedule.start_ns[task].min())
    found = backward_before(computing, start_ns, arrival_ns, borders)
    if found is None:
        return {}
    weight = graph.bytes[task] if np.all(graph.bytes[task] > 0) else graph.duration_ns[task]
    through = np.cumsum(weight, dtype=np.float64) / max(float(weight.sum()), 1.0)
    before = np.concatenate(([0.0], through[:-1]))
    return {int(call): (found, float(low), float(high)) for call, low, high in zip(task, before, through, strict=True)}


def overlapped(plan: CapturePlan, found: Exchanges, bucket_bytes: int, bound: Bound) -> CapturePlan:
    """Returns the plan with the exchanges cut into buckets, each sent as soon as its gradients are there.

    LOW leaves everything as recorded: nothing in a capture says which gradient an exchange carries. EXPECTED takes them
    in the order the pass makes them. HIGH has each bucket's gradients at the beginning of its share and nothing slowed.
    """
    if bound is Bound.LOW:
        return plan
    graph, calls = found.graph, found.calls
    found = replace(found, stretch=_by_gradients(plan, found))
    share = bucket_ratio(plan, graph, calls, bucket_bytes)
    fixed = fixed_ns(graph, calls, plan_network(plan))
    stream = np.full(len(calls), int(graph.stream.max()) + 1, dtype=np.int32)
    parts = in_parts(graph, calls.task, share, fixed, stream)
    ideal = bound is Bound.HIGH
    producer = _producers(found, parts, ideal)
    before, after = _waits(found, parts, producer)
    slowed = parts.graph if ideal else _slowed(plan, found, parts)
    result, _ = with_tasks(slowed, parts.columns, parts.place, before, after)
    return replace(plan, graph=result, assumptions=(*plan.assumptions, ASSUMPTION))


ASSUMPTION = (
    "gradients are complete as the products of the last backward pass make them, evenly where shapes are not told"
)


def _by_gradients(plan: CapturePlan, found: Exchanges) -> tuple[Stretch, ...]:
    """Returns the passes measured by gradients; calls of one rank and step share theirs."""
    elements = whole_bytes(replace(plan, graph=found.graph), found.calls) / element_bytes(found.graph, found.calls)
    keys = [id(stretch) for stretch in found.stretch]
    total = {key: float(sum(elements[row] for row, item in enumerate(keys) if item == key)) for key in set(keys)}
    tokens = products_of(found.graph).tokens
    # Exchanges of one rank and step share their pass, which is measured once.
    passes = dict(zip(keys, found.stretch, strict=True))
    known = {key: by_gradients(found.graph, item, total[key], tokens) for key, item in passes.items()}
    return tuple(known[key] for key in keys)


def bucket_ratio(plan: CapturePlan, graph: TaskGraph, calls: Calls, bucket_bytes: int) -> Float64Array:
    """Returns the share of each call that fills a bucket, equal for all members; 1 where its bytes are unknown."""
    size = np.zeros(int(graph.rendezvous.max()) + 1)
    np.maximum.at(size, graph.rendezvous[calls.task], whole_bytes(replace(plan, graph=graph), calls))
    whole = size[graph.rendezvous[calls.task]]
    return np.where(whole > bucket_bytes, bucket_bytes / np.maximum(whole, 1), 1.0)


def _producers(found: Exchanges, parts: Parts, ideal: bool) -> Int32Array:
    """Returns the computing task each part waits for, −1 for a part that may go at once."""
    call, through = parts.ratio(end=not ideal)
    width = found.end_ratio - found.begin_ratio
    ratio = found.begin_ratio[call] + through * width[call]
    producer = np.empty(len(parts.number), dtype=np.int32)
    # A loop over calls: each has its own pass.
    for row, stretch in enumerate(found.stretch):
        own = slice(int(parts.offsets[row]), int(parts.offsets[row + 1]))
        producer[own] = stretch.task_at_start(ratio[own]) if ideal else stretch.task_at_end(ratio[own])
    return producer


def _waits(found: Exchanges, parts: Parts, producer: Int32Array) -> tuple[Int32Array, Int32Array]:
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


def _slowed(plan: CapturePlan, found: Exchanges, parts: Parts) -> TaskGraph:
    """Returns the graph with the backward passes slowed for as long as transfers run beside them."""
    duration_ns = parts.graph.duration_ns.copy()
    passes = {id(stretch): stretch for stretch in found.stretch}
    for key, stretch in passes.items():
        own = [row for row, item in enumerate(found.stretch) if id(item) == key]
        hidden_ns = float(found.graph.duration_ns[found.calls.task[own]].sum())
        duration_ns[stretch.task] = slowed_ns(found.graph, stretch.task, hidden_ns, plan.device)
    return replace(parts.graph, duration_ns=duration_ns)
