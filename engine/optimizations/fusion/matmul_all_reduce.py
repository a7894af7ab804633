"""Matrix products fused with the transfer of their tensor group (MC2)."""

from dataclasses import replace

import numpy as np

from engine.core.number_format import format_duration_ns
from engine.optimizations.answers import already_on, applies, no_effect, switched_on, unknown
from engine.optimizations.fusion.mixed_tasks import KERNELS, hidden_ns, joined_pairs, mixed_pairs
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Group,
    Optimization,
    Parameters,
    Switch,
)
from engine.workloads.scenario import Scenario

ID = "fusion.matmul_all_reduce"
_SIZES = ("tensor_model_parallel_size", "tensor_parallel_size", "tp_size")


def _one_device_per_tensor(scenario: Scenario) -> Applicability | None:
    return no_effect("parallel.tensor = 1: no tensor is shared") if scenario.parallel.tensor == 1 else None


def _no_such_operator(scenario: Scenario) -> Applicability | None:
    if scenario.device.vendor == "NVIDIA":
        return no_effect("the operators are Ascend's")
    if scenario.model.experts:
        return no_effect("MindSpeed's MC2 does not take mixtures of experts")
    return None


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    del parameters
    sizes = [entry.trace.metadata.parallel_sizes.get(key) for entry in plan.capture.job.ranks for key in _SIZES]
    if any(size == 1 for size in sizes):
        return no_effect("tensor parallelism of 1: no tensor is shared")
    names = {plan.graph.strings.id_of(name) for name in KERNELS.values()} - {-1}
    joined = int(np.count_nonzero(np.isin(plan.graph.name, list(names))))
    if joined:
        return already_on(f"{joined:,} products carry their transfer")
    pairs = mixed_pairs(plan)
    if pairs.is_gpu:
        return no_effect("the operators are Ascend's")
    if len(pairs):
        transfer_ns = int(plan.graph.duration_ns[pairs.collective].sum())
        hidden = int(hidden_ns(plan.graph, pairs, Bound.EXPECTED).sum())
        return applies(
            f"{len(pairs):,} products have the transfer of their tensor group next to them, "
            f"{format_duration_ns(transfer_ns)} in all; {format_duration_ns(hidden)} of it would hide"
        )
    if pairs.unsplit_count:
        return unknown(f"{pairs.unsplit_count:,} pairs cannot be split into waiting and transfer; open the peers")
    if all(size is None for size in sizes):
        return unknown("the capture does not say which groups share tensors")
    return no_effect("no exposed transfer of a tensor group stands next to a product")


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    del parameters
    pairs = mixed_pairs(plan)
    if not len(pairs):
        return plan
    note = f"{ID}: {len(pairs)} transfers keep the share that measured MC2 operators of eight cards show"
    return replace(plan, graph=joined_pairs(plan.graph, pairs, bound), assumptions=(*plan.assumptions, note))


MATMUL_ALL_REDUCE = Optimization(
    id=ID,
    title="Products fused with their transfer (MC2)",
    group=Group.FUSION,
    summary=(
        "A product and the all-reduce, reduce-scatter or all-gather of its tensor group become one operator that moves "
        "tiles while it computes others."
    ),
    parameters=(),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "--use-ascend-mc2",
            "MindSpeed docs/zh/features/mc2.md",
            "needs tensor parallelism with --sequence-parallel; not with mixtures of experts, CoC or Atlas 900 A3",
        ),
        Switch(
            "torch_npu",
            "A2 with CANN 8.0.RC2 or newer, A3",
            "torch_npu.npu_mm_all_reduce_base, npu_all_gather_base_mm, npu_mm_reduce_scatter_base",
            "op-plugin docs/zh/custom_APIs/torch_npu",
            "limits of shapes and ranks; comm_mode",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(
        ID,
        lambda scenario: (
            f"transfers of {scenario.parallel.tensor} devices next to products per step and replica: "
            f"{4 * layer_passes(scenario):,} forward and as many backward"
        ),
        _one_device_per_tensor,
        _no_such_operator,
    ),
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="order of additions in the reduction changes",
    undo="drop --use-ascend-mc2",
    verify="time of MatmulReduceScatter and AllGatherMatmul against product and transfer, after 5 warm steps",
    provenance="60 measured rows of MC2 operators on 8 × Atlas A2 (cann-bench) against separate collectives",
)
