"""In the backward pass, transfers of tensor groups run beside the products that do not need them."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import BoolArray, Int32Array
from engine.core.number_format import format_count, format_duration_ns
from engine.graph.collective_kinds import CollectiveKind
from engine.optimizations.answers import already_listed, already_on, applies, no_effect, switched_on
from engine.optimizations.communication.exposure import per_step
from engine.optimizations.communication.pricing import slowed_ns
from engine.optimizations.communication.scenario_exchanges import no_tensor_group, tensor_transfers_per_step
from engine.optimizations.communication.tensor_transfers import (
    ADDITIONS,
    Transfers,
    tensor_transfers,
    transfers_to_hide,
)
from engine.optimizations.graph_edits import edges_of, with_column, with_edges
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Conflict,
    Group,
    Optimization,
    Parameters,
    Switch,
)
from engine.optimizations.kernel_types import kernel_type
from engine.workloads.scenario import Scenario

ID = "communication.overlap_tensor_parallel"
ASSUMPTION = (
    "a transfer between two products of a backward pass is one of those Megatron-LM overlaps: the input gathered again "
    "beside the product for its gradient, and that gradient reduced beside the product for the weight's"
)


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    settled = already_listed(scenario, ID) or no_tensor_group(scenario)
    if settled is None and scenario.device.vendor == "NVIDIA":
        settled = already_on("Megatron-LM overlaps these transfers on CUDA devices by default")
    if settled is None and scenario.enabled("fusion.matmul_all_reduce"):
        settled = no_effect("products are fused with their transfers (MC2), which hides them already")
    return settled or applies(
        f"about {format_count(tensor_transfers_per_step(scenario))} transfers per step and device are between products"
        f" (tensor = {scenario.parallel.tensor}), some of them in the backward pass before independent ones"
    )


def _independent(transfers: Transfers) -> tuple[BoolArray, Int32Array]:
    """Returns which transfers the product behind them does not need, and the task that needs each, int32.

    gathering → product → reduction → product: the first product is the input's gradient and needs neither; the second
    is the weight's and needs the gathering. A reduction straight before a product stands before the weight's.
    """
    graph, calls = transfers.graph, transfers.calls
    count = len(calls)
    rank = graph.rank[calls.task]
    after = transfers.after(transfers.consumer, 1)
    further = transfers.after(transfers.consumer, 2)
    names, inverse = np.unique(graph.name, return_inverse=True)
    adds = [kernel_type(graph.strings.text(int(name))) in ADDITIONS for name in names]
    additions = np.array(adds, dtype=np.bool_)[inverse]
    needed = np.where((after >= 0) & additions[after], further, after)
    reduces = transfers.kinds(CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_REDUCE)
    into_product = transfers.is_product(transfers.consumer) & transfers.is_product(transfers.producer)
    reduction = reduces & into_product & transfers.is_exposed
    follows = np.zeros(count, dtype=np.bool_)
    follows[:-1] = (rank[:-1] == rank[1:]) & reduction[1:] & (transfers.between[:-1] == 1)
    gathering = transfers.kinds(CollectiveKind.ALL_GATHER) & follows & transfers.is_exposed
    gathering &= transfers.is_product(transfers.consumer)
    weights = np.full(count, -1, dtype=np.int32)
    weights[:-1] = transfers.consumer[1:]
    chosen = (reduction & (needed >= 0)) | (gathering & (weights >= 0))
    return chosen, np.where(gathering, weights, needed).astype(np.int32)


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    del parameters
    transfers = transfers_to_hide(plan)
    if isinstance(transfers, Applicability):
        return transfers
    chosen, _ = _independent(transfers)
    if not chosen.any():
        return no_effect("every exposed transfer is needed by what is computed next")
    exposed_ns = per_step(plan.graph, float(plan.graph.duration_ns[transfers.calls.task[chosen]].sum()))
    return applies(
        f"{format_count(int(chosen.sum()))} of {format_count(len(chosen))} transfers of tensor groups "
        f"({format_duration_ns(exposed_ns)} per step) stand before a product that does not need them"
    )


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    del parameters
    transfers = tensor_transfers(plan.graph)
    chosen, needed = _independent(transfers)
    if bound is Bound.LOW or not chosen.any():
        return plan
    graph, task = plan.graph, transfers.calls.task[chosen]
    before, after = edges_of(graph)
    moved = np.zeros(len(graph), dtype=np.bool_)
    moved[task] = True
    # What waited for the transfer on the computing side is held by its stream's order behind the task that needs it.
    relaxed = moved[before] & np.isin(graph.stream[after], np.unique(graph.stream[transfers.consumer[chosen]]))
    relaxed &= graph.rank[before] == graph.rank[after]
    result = with_edges(
        graph,
        np.concatenate((before[~relaxed], task)),
        np.concatenate((after[~relaxed], needed[chosen])),
    )
    if bound is Bound.EXPECTED:
        product = transfers.consumer[chosen]
        # A loop over transfers is avoided: each product is slowed for as long as its own transfer lasts.
        beside_ns = np.minimum(graph.duration_ns[task], graph.duration_ns[product])
        whole = slowed_ns(graph, product, float(graph.duration_ns[product].sum()), plan.device)
        share = beside_ns / np.maximum(graph.duration_ns[product], 1)
        slowed = graph.duration_ns[product] + (whole - graph.duration_ns[product]) * share
        result = with_column(result, "duration_ns", product, slowed)
    return replace(plan, graph=result, assumptions=(*plan.assumptions, ASSUMPTION))


OVERLAP_TENSOR_PARALLEL = Optimization(
    id=ID,
    title="Tensor-parallel transfers beside independent products",
    group=Group.COMMUNICATION,
    summary=(
        "In the backward pass the input is gathered again while its gradient is computed, and that gradient is reduced "
        "while the weight's is."
    ),
    parameters=(),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "--use-ascend-coc --coc-parallel-num 2",
            "MindSpeed docs/zh/features/communication-over-computation.md",
            "the nearest switch on Ascend: hides the same transfers in chunks; not with --use-ascend-mc2",
        ),
        Switch(
            "Megatron-LM",
            "",
            "default behaviour on CUDA (set CUDA_DEVICE_MAX_CONNECTIONS=1)",
            "Megatron-LM tensor_parallel/layers.py",
            "no flag: asynchronous in LinearWithGradAccumulationAndAsyncCommunication",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    conflicts=(Conflict("fusion.matmul_all_reduce", "MC2 hides a product's transfer inside one kernel already"),),
    risk="transfers take memory bandwidth from the products beside them; same results",
    undo="remove the flags",
    verify="exposed communication of the tensor group and step time after 5 warm steps",
    provenance="contention beside transfers: devices/data/efficiency.json, transfer_contention_ratio",
)
