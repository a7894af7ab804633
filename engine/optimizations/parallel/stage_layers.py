"""Pipeline stages of a recorded job: how long each computes, and which of its tasks are layers."""

from dataclasses import dataclass, replace

import numpy as np

from engine.analyses.communication.pipeline_stages import pipeline_stages
from engine.analyses.modules.kernel_phases import phases_of_kernels
from engine.analyses.modules.periodic import Repetition, repetitions
from engine.core.arrays import AnyArray, Float64Array, Int32Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.graph_edits import launches_of
from engine.optimizations.interface import CapturePlan
from engine.optimizations.kernel_types import kernel_type
from engine.runtime.scheduler.interference import COMPUTING


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One pipeline stage.

    Attributes:
        number: From 0.
        computing_ns: Per step, mean over its recorded ranks that list kernels.
        layers: Layers it holds, 0 where its kernels show no stack of equal layers.
        layer_ns: Computing of one layer in all passes of a step, mean over ranks.
        tasks: int32, the tasks of its layers on these ranks.
    """

    number: int
    computing_ns: float
    layers: int
    layer_ns: float
    tasks: Int32Array


def recorded_stages(plan: CapturePlan) -> tuple[Stage, ...]:
    """Returns the stages of which a rank lists kernels, by number; empty where the capture names no stages."""
    graph, stage_of = plan.graph, pipeline_stages(plan.capture.job)
    computing = np.flatnonzero(np.isin(graph.kind, COMPUTING))
    listed = np.unique(graph.rank[computing]).tolist()
    found = []
    # Loops over stages and ranks.
    for number in sorted(set(stage_of.values())):
        ranks = tuple(rank for rank in listed if stage_of.get(rank) == number)
        if ranks:
            found.append(_stage(graph, number, ranks, computing))
    return tuple(found)


def _stage(graph: TaskGraph, number: int, ranks: tuple[int, ...], computing: AnyArray) -> Stage:
    steps = len(np.unique(graph.step[graph.step >= 0])) or 1
    tasks, layers = [], []
    for rank in ranks:
        own = computing[graph.rank[computing] == rank]
        stacks = _layer_stacks(graph, own)
        layers.append(max((stack.copies for stack in stacks), default=0))
        # Stacks of fewer copies than the model has layers are cut by what stands in them; they are layers as well.
        tasks.append(np.concatenate([own[:0], *(own[stack.start : stack.end] for stack in stacks)]))
    whole = np.concatenate(tasks).astype(np.int32)
    per_rank = len(ranks) * steps
    count = max(layers, default=0)
    return Stage(
        number=number,
        computing_ns=float(graph.duration_ns[computing[np.isin(graph.rank[computing], ranks)]].sum()) / per_rank,
        layers=count,
        layer_ns=float(graph.duration_ns[whole].sum()) / per_rank / count if count else 0.0,
        tasks=whole,
    )


def _layer_stacks(graph: TaskGraph, task: AnyArray) -> list[Repetition]:
    """Returns the stacks of equal layers among a rank's kernels.

    Repetitions that hold forward and backward kernels are micro-batches, unless as many copies run forward alone: then
    they are layers that compute their forward pass again.
    """
    names, inverse = np.unique(graph.name[task], return_inverse=True)
    types = [kernel_type(graph.strings.text(int(name))) for name in names]
    phase = phases_of_kernels(types, inverse.astype(np.int64))
    found = repetitions(graph.name[task].astype(np.int32))
    mixed = [len(np.unique(phase[stack.start : stack.start + stack.period])) > 1 for stack in found]
    layers = {stack.copies for stack, both in zip(found, mixed, strict=True) if not both}
    return [stack for stack, both in zip(found, mixed, strict=True) if not both or stack.copies in layers]


def shifted(graph: TaskGraph, slow: Stage, fast: Stage, layers: float) -> TaskGraph:
    """Returns the graph with layers of one stage computed, and dispatched, by another.

    The tasks of the layers that are there stand for them: the slow stage's take less time, the fast one's more.
    """
    scale: Float64Array = np.ones(len(graph))
    launch = launches_of(graph)
    for stage, ratio in ((slow, 1 - layers / slow.layers), (fast, 1 + layers / fast.layers)):
        scale[stage.tasks] = ratio
        hosts = launch[stage.tasks]
        scale[hosts[hosts >= 0]] = ratio
    return replace(graph, duration_ns=np.rint(graph.duration_ns * scale).astype(np.int64))
