"""Collectives that belong to a pass of their rank: to the one that makes what they carry, or the one that needs it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import AnyArray, Float64Array, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Calls, Role, calls_of
from engine.optimizations.communication.exposure import Exposure, exposure
from engine.optimizations.communication.parts import Parts, in_parts, whole_meetings
from engine.optimizations.communication.payload import whole_bytes
from engine.optimizations.communication.pricing import fixed_ns, plan_network, slowed_ns
from engine.optimizations.communication.progress import RankComputing, Stretch, rank_computing
from engine.optimizations.communication.unlisted import followed_ranks, with_fine_gaps
from engine.optimizations.interface import CapturePlan
from engine.optimizations.products import products_of

PassFinder = Callable[[TaskGraph, RankComputing, int, int, Int64Array], Stretch | None]
"""Graph, computing of a rank, start of the step, first arrival of its calls, borders of passes → the pass, if any."""
PassMeasure = Callable[[TaskGraph, Stretch, float, int], Stretch]
"""Graph, pass, elements its calls carry, tokens → the pass measured by what it makes or needs."""


@dataclass(frozen=True, slots=True, eq=False)
class PassCalls:
    """Collectives of complete groups with the pass each belongs to. Columns of shape (calls,).

    Attributes:
        graph: The tasks.
        calls: In index order; all members of each are among them.
        seen: When everything runs as it is.
        stretch: The pass of each call; calls of one rank and step share theirs.
        begin_ratio: float64: share of the pass at which what a call carries begins, if it is spread evenly.
        end_ratio: float64: share at which it ends.
    """

    graph: TaskGraph
    calls: Calls
    seen: Exposure
    stretch: tuple[Stretch, ...]
    begin_ratio: Float64Array
    end_ratio: Float64Array

    @property
    def pass_ids(self) -> list[int]:
        """One number per call, equal for calls that share their pass."""
        return [id(item) for item in self.stretch]

    def part_ratio(self, parts: Parts, *, end: bool) -> Float64Array:
        """Returns the share of its pass at which each part begins or ends, float64, shape (parts,)."""
        call, through = parts.ratio(end=end)
        answer: Float64Array = self.begin_ratio[call] + through * (self.end_ratio - self.begin_ratio)[call]
        return answer

    def part_tasks(self, parts: Parts, ratio: Float64Array, *, at_end: bool) -> Int32Array:
        """Returns the task that ends (or begins) at a share of each part's pass, int32, shape (parts,)."""
        chosen = np.empty(len(parts.number), dtype=np.int32)
        # A loop over calls: each has its own pass.
        for row, stretch in enumerate(self.stretch):
            own = slice(int(parts.offsets[row]), int(parts.offsets[row + 1]))
            chosen[own] = stretch.task_at_end(ratio[own]) if at_end else stretch.task_at_start(ratio[own])
        return chosen


def calls_with_pass(
    recorded: TaskGraph, role: Role, find: PassFinder, seen: Exposure | None = None
) -> PassCalls | None:
    """Returns the calls of a role whose members are all known and all have such a pass, None where there is none.

    Args:
        recorded: The tasks.
        role: Of the calls.
        find: Finds the pass of the calls of one rank and step.
        seen: When the tasks run, where the caller knows.
    """
    graph = with_fine_gaps(recorded)
    known = seen if seen is not None and graph is recorded else exposure(graph, calls_of(graph))
    of_role = known.calls.of(role)
    calls = of_role.select(of_role.split)
    computing, followed = rank_computing(graph, known.schedule), followed_ranks(graph)
    found: dict[int, tuple[Stretch, float, float]] = {}
    rank_of, step_of = graph.rank[calls.task], graph.step[calls.task]
    # A loop over ranks and steps; each holds a handful of calls.
    for rank in np.unique(rank_of).tolist():
        if rank in computing:
            leader = followed.get(rank, rank)
            borders, starts = _pass_borders(graph, known, leader), _step_starts(graph, known, leader)
            for step in np.unique(step_of[rank_of == rank]).tolist():
                own = calls.task[(rank_of == rank) & (step_of == step)]
                arrival_ns = int(known.schedule.start_ns[own].min())
                found |= _shares(graph, own, find(graph, computing[rank], starts[step], arrival_ns, borders))
    calls = calls.select(np.array([int(task) in found for task in calls.task], dtype=np.bool_))
    while len(calls) and not np.all(whole := whole_meetings(graph, calls.task)):
        calls = calls.select(whole)
    if len(calls) == 0:
        return None
    rows = [found[int(task)] for task in calls.task]
    begin, end = (np.array([row[index] for row in rows], dtype=np.float64) for index in (1, 2))
    return PassCalls(graph, calls, known, tuple(row[0] for row in rows), begin, end)


def _pass_borders(graph: TaskGraph, seen: Exposure, rank: int) -> Int64Array:
    """Returns when a rank ended exchanges with other pipeline stages, int64, ascending."""
    calls = seen.calls.of(Role.STAGES)
    return np.sort(seen.schedule.end_ns[calls.task[graph.rank[calls.task] == rank]])


def _step_starts(graph: TaskGraph, seen: Exposure, rank: int) -> dict[int, int]:
    """Returns when the first task of each step of a rank starts."""
    rows = np.flatnonzero(graph.rank == rank)
    steps = graph.step[rows]
    return {step: int(seen.schedule.start_ns[rows[steps == step]].min()) for step in np.unique(steps).tolist()}


def _shares(graph: TaskGraph, task: Int32Array, found: Stretch | None) -> dict[int, tuple[Stretch, float, float]]:
    """Returns task → pass and share of it that is the call's, for the calls of one rank and step in their order."""
    if found is None:
        return {}
    weight = graph.bytes[task] if np.all(graph.bytes[task] > 0) else graph.duration_ns[task]
    through = np.cumsum(weight, dtype=np.float64) / max(float(weight.sum()), 1.0)
    before = np.concatenate(([0.0], through[:-1]))
    return {int(call): (found, float(low), float(high)) for call, low, high in zip(task, before, through, strict=True)}


def measured(plan: CapturePlan, found: PassCalls, element_bytes: AnyArray | int, measure: PassMeasure) -> PassCalls:
    """Returns the calls with their passes measured by the elements they carry instead of by time.

    Args:
        plan: The capture.
        found: The calls.
        element_bytes: Of each call, or of all.
        measure: What measures a pass; each is measured once.
    """
    elements = whole_bytes(replace(plan, graph=found.graph), found.calls) / element_bytes
    keys = found.pass_ids
    total = {key: float(sum(elements[row] for row, item in enumerate(keys) if item == key)) for key in set(keys)}
    tokens = products_of(found.graph).tokens
    passes = dict(zip(keys, found.stretch, strict=True))
    known = {key: measure(found.graph, item, total[key], tokens) for key, item in passes.items()}
    return replace(found, stretch=tuple(known[key] for key in keys))


def bucket_parts(plan: CapturePlan, found: PassCalls, bucket_bytes: int) -> Parts:
    """Returns the calls in buckets, as many on every member, on a new stream; whole where bytes are not told."""
    graph, calls = found.graph, found.calls
    size = np.zeros(int(graph.rendezvous.max()) + 1)
    np.maximum.at(size, graph.rendezvous[calls.task], whole_bytes(replace(plan, graph=graph), calls))
    whole = size[graph.rendezvous[calls.task]]
    share = np.where(whole > bucket_bytes, bucket_bytes / np.maximum(whole, 1), 1.0)
    stream = np.full(len(calls), int(graph.stream.max()) + 1, dtype=np.int32)
    return in_parts(graph, calls.task, share, fixed_ns(graph, calls, plan_network(plan)), stream)


def slowed_passes(plan: CapturePlan, found: PassCalls, parts: Parts) -> TaskGraph:
    """Returns the graph of ``parts`` with the passes slowed for as long as transfers run beside them."""
    duration_ns, keys = parts.graph.duration_ns.copy(), found.pass_ids
    for key, stretch in dict(zip(keys, found.stretch, strict=True)).items():
        own = [row for row, item in enumerate(keys) if item == key]
        hidden_ns = float(found.graph.duration_ns[found.calls.task[own]].sum())
        duration_ns[stretch.task] = slowed_ns(found.graph, stretch.task, hidden_ns, plan.device)
    return replace(parts.graph, duration_ns=duration_ns)
