"""Captured graphs: one launch releases the operators between two synchronisations."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import BoolArray, Int64Array
from engine.core.number_format import format_count, format_duration_ns
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.answers import already_listed, already_on, applies, no_effect, switched_on, unknown
from engine.optimizations.graph_edits import with_column
from engine.optimizations.host.dispatch_tasks import DispatchTasks, dispatch_tasks
from engine.optimizations.host.host_bound import late_ns, not_host_bound
from engine.optimizations.host.scenario_dispatch import host_is_ahead, layer_times
from engine.optimizations.host.static_shapes import changing_steps
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Group,
    Optimization,
    Parameters,
    Switch,
)
from engine.workloads.scenario import LengthDistribution, OutOfMemoryPolicy, Scenario

ID = "host.graph_mode"
GRAPH_LAUNCHES = 10
"""Kernels per launch from which on launches are of graphs: no framework's operator has that many."""
_USUAL_RATIO = 2
"""For the least gain only dispatches up to twice the usual one vanish; a choice."""
ASSUMPTIONS = (
    "operators between two host synchronisations are one graph; its launch costs as much as a usual dispatch",
    "host tasks over ten times the usual dispatch do other work that stays (the low bound: over twice)",
)
_NO_SHAPES = "all steps run the same operators, their shapes are not recorded"
_ONE_STEP = "one step is recorded, so that shapes stay the same over steps is assumed"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    settled = already_listed(scenario, ID)
    lengths = scenario.batch.lengths
    if settled is None and lengths.distribution is not LengthDistribution.FIXED:
        settled = no_effect(
            f"a captured graph has static shapes, but sequences have {lengths.minimum:,} to {lengths.maximum:,} tokens"
        )
    if settled is None and scenario.memory.on_out_of_memory is OutOfMemoryPolicy.SPLIT:
        settled = no_effect('a captured graph cannot split its micro-batch; use memory.on_out_of_memory = "abort"')
    if settled is not None:
        return settled
    times = layer_times(scenario)
    return host_is_ahead(times) or applies(
        f"the {times.operators} operators of a layer cost the host {format_duration_ns(times.host_ns)}, the device "
        f"{format_duration_ns(times.device_ns)}"
    )


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    del parameters
    graph = plan.graph
    found = dispatch_tasks(graph)
    launches = int(np.count_nonzero(found.dispatches))
    kernels = int(found.launched[found.dispatches].sum())
    if launches and kernels > GRAPH_LAUNCHES * launches:
        return already_on(
            f"{format_count(launches)} launches start {format_count(kernels)} kernels: graphs are replayed"
        )
    late = late_ns(plan, found)
    settled = not_host_bound(found, late)
    if settled is not None:
        return settled
    changes = changing_steps(graph)
    if changes is not None and changes.differ:
        return unknown(
            f"a captured graph has static shapes, but {changes.different} of {changes.steps} recorded steps run other "
            f"operators or shapes than the usual one ({changes.example})"
        )
    saved_ns, whole_ns = late
    note = f"; {_ONE_STEP}" if changes is None else "" if np.any(graph.shape >= 0) else f"; {_NO_SHAPES}"
    return applies(
        f"the device waits for launches ({format_count(launches)} in all) {format_duration_ns(saved_ns)} of a step of "
        f"{format_duration_ns(whole_ns)}{note}"
    )


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    del parameters
    graph = plan.graph
    found = dispatch_tasks(graph)
    usual = np.zeros(int(graph.rank.max()) + 1, dtype=np.int64)
    for rank, value in found.usual_ns.items():
        usual[rank] = value
    gone = _captured(graph, found, usual, bound)
    first = gone & _begins_graph(graph, gone)
    duration_ns = np.where(gone, 0, graph.duration_ns)
    duration_ns[first] = np.minimum(graph.duration_ns, usual[graph.rank])[first]
    extra = (_ONE_STEP,) if changing_steps(graph) is None else ()
    rewritten = with_column(graph, "duration_ns", np.arange(len(graph)), duration_ns)
    return replace(plan, graph=rewritten, assumptions=(*plan.assumptions, *ASSUMPTIONS, *extra))


def _captured(graph: TaskGraph, found: DispatchTasks, usual: Int64Array, bound: Bound) -> BoolArray:
    """Returns which host tasks vanish into graphs."""
    if bound is Bound.HIGH:
        return found.dispatches
    if bound is Bound.EXPECTED:
        return found.dispatches & ~found.long
    return found.dispatches & (graph.duration_ns <= _USUAL_RATIO * usual[graph.rank])


def _begins_graph(graph: TaskGraph, gone: BoolArray) -> BoolArray:
    """Returns which host tasks launch a graph: the first captured one behind anything else the host does."""
    answer = np.zeros(len(graph), dtype=np.bool_)
    hosts = np.flatnonzero(graph.stream == Stream.HOST)
    order = hosts[np.argsort(graph.rank[hosts], kind="stable")]
    ends = graph.kind[order] == TaskKind.SYNCHRONIZE
    changes = np.ones(len(order), dtype=np.bool_)
    changes[1:] = graph.rank[order][1:] != graph.rank[order][:-1]
    changes[1:] |= graph.step[order][1:] != graph.step[order][:-1]
    piece = np.cumsum(changes | ends)
    own = gone[order]
    _, first = np.unique(piece[own], return_index=True)
    answer[order[np.flatnonzero(own)[first]]] = True
    return answer


GRAPH_MODE = Optimization(
    id=ID,
    title="Graph mode (captured graphs)",
    group=Group.HOST,
    summary=(
        "Operators are captured once and replayed by one launch per graph, so that the host costs next to nothing; "
        "shapes and addresses are fixed."
    ),
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "",
            "torch_npu.npu.graph(torch_npu.npu.NPUGraph()), torch_npu.npu.make_graphed_callables(…)",
            "Ascend/pytorch docs (NPUGraph)",
            "static shapes, aclnn operators only; graphs keep a memory pool of their own",
        ),
        Switch(
            "torch_npu",
            "version-bound",
            'torch.compile(model) with TORCHINDUCTOR_NPU_BACKEND=mlir (or "dvm", "ascendc")',
            "Ascend/pytorch docs/zh/api/environment_variable/inductor",
        ),
        Switch(
            "vllm-ascend",
            "",
            '--compilation-config \'{"cudagraph_mode":"FULL_DECODE_ONLY"}\'',
            "vllm-ascend docs/source/user_guide/feature_guide/graph_mode.md",
            "serving; needs memory for the captured sizes",
        ),
        Switch("PyTorch", "", "torch.cuda.make_graphed_callables(…)", "PyTorch torch.cuda", "CUDA devices"),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="an operator or shape that changes needs another capture; graphs pin memory of their own",
    undo="call the model without the graph (--enforce-eager in vllm-ascend)",
    verify="device idle between kernels and step time after 5 warm steps; reserved memory",
    provenance="launch of a graph: one usual dispatch of the recorded host (median)",
)
