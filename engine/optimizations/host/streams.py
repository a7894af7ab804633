"""Communication streams: transfers of different groups run beside each other instead of behind each other."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import BoolArray, Int32Array
from engine.core.number_format import format_count
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.answers import already_listed, already_on, applies, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.workloads.communication_settings import STREAMS
from engine.workloads.scenario import Scenario

ID = "host.streams"
ASSUMPTION = "transfers of different groups on one stream need nothing of each other but what their own waits say"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    count = int(parameters["count"])
    listed = already_listed(scenario, ID)
    if listed is not None:
        current = int(scenario.optimizations[STREAMS].get("count", 2))
        word = "one stream" if current < 2 else f"{current} streams"
        return listed if min(current, 2) == min(count, 2) else applies(f"layers and replicas exchange on {word} now")
    if scenario.device_count == 1:
        return no_effect("one device: nothing is exchanged")
    if count > 1:
        return already_on("transfers of layers and exchanges of replicas have streams of their own by default")
    return applies("transfers of layers and exchanges of replicas would wait for each other in one queue")


def _crowded(graph: TaskGraph) -> tuple[Int32Array, BoolArray]:
    """Returns the collectives, int32, and which of them share a stream with another group, bool."""
    task = np.flatnonzero((graph.kind == TaskKind.COLLECTIVE) & (graph.stream != Stream.HOST)).astype(np.int32)
    queue = graph.rank[task].astype(np.int64) * (int(graph.stream.max(initial=0)) + 1) + graph.stream[task]
    pairs = np.unique(np.stack((queue, graph.group[task])), axis=1) if len(task) else np.empty((2, 0), dtype=np.int64)
    known, count = np.unique(pairs[0], return_counts=True)
    return task, np.isin(queue, known[count > 1])


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    task, crowded = _crowded(plan.graph)
    if len(task) == 0:
        return no_effect("the capture shows no collectives")
    if int(parameters["count"]) < 2:
        return no_effect("one stream for all groups is what this optimization ends")
    if not crowded.any():
        groups = len(np.unique(plan.graph.group[task]))
        if groups == 1:
            return already_on("one group communicates, on a stream of its own")
        return already_on(f"each of {format_count(groups)} groups has a stream of its own")
    return applies(
        f"{format_count(int(crowded.sum()))} of {format_count(len(task))} collectives share a stream with others'"
    )


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    if bound is Bound.LOW:
        return plan
    graph = plan.graph
    task, crowded = _crowded(graph)
    moved = task[crowded]
    groups, number = np.unique(graph.group[moved], return_inverse=True)
    lanes = min(int(parameters["count"]), len(groups))
    stream = graph.stream.copy()
    # The first group keeps its stream; further ones share the streams that are added, in the order of their ids.
    further = number % lanes
    stream[moved[further > 0]] = int(graph.stream.max()) + further[further > 0]
    return replace(plan, graph=replace(graph, stream=stream), assumptions=(*plan.assumptions, ASSUMPTION))


STREAM_COUNT = Optimization(
    id=ID,
    title="Streams for communication",
    group=Group.HOST,
    summary="Transfers of different groups run on streams of their own, so that none waits for one it does not need.",
    parameters=(
        Parameter(
            "count",
            "Communication streams",
            2,
            minimum=1,
            maximum=8,
            provenance="torch_npu gives every communicator its own; 1 puts all in one queue",
        ),
    ),
    switches=(
        Switch(
            "torch_npu",
            "",
            "export STREAMS_PER_DEVICE=32",
            "Ascend/pytorch docs/zh/api/environment_variable/performance_tuning",
            "size of the pool of streams: 8 or 32",
        ),
        Switch(
            "torch_npu",
            "experimental",
            "export PER_STREAM_QUEUE=1",
            "Ascend/pytorch docs/zh/api/environment_variable/op_execution",
            "a task queue per stream",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="transfers that run at once share links; memory of tensors on other streams is released later",
    undo="unset the variables",
    verify="waiting of collectives behind others on their stream, and step time after 5 warm steps",
)
