"""Pipelined chunked communication: transfers of tensor groups in chunks beside the product of another chunk."""

from engine.core.number_format import format_count, format_duration_ns
from engine.optimizations.answers import already_listed, applies, no_effect, switched_on
from engine.optimizations.communication.chunked_products import chunk_pairs, chunked
from engine.optimizations.communication.exposure import per_step
from engine.optimizations.communication.scenario_exchanges import no_tensor_group, tensor_transfers_per_step
from engine.optimizations.communication.tensor_transfers import tensor_transfers, transfers_to_hide
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Conflict,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.workloads.communication_settings import DEFAULT_CHUNKS, MOST_CHUNKS
from engine.workloads.scenario import Scenario

ID = "communication.chunking"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    settled = already_listed(scenario, ID) or no_tensor_group(scenario)
    if settled is None and int(parameters["chunks"]) == 1:
        settled = no_effect("one chunk is the whole transfer")
    if settled is None and scenario.enabled("fusion.matmul_all_reduce"):
        settled = no_effect("products are fused with their transfers (MC2), which hides them already")
    return settled or applies(
        f"about {format_count(tensor_transfers_per_step(scenario))} transfers per step and device are next to products"
        f" (tensor = {scenario.parallel.tensor})"
    )


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    if int(parameters["chunks"]) == 1:
        return no_effect("one chunk is the whole transfer")
    transfers = transfers_to_hide(plan)
    if isinstance(transfers, Applicability):
        return transfers
    pairs = chunk_pairs(transfers)
    if len(pairs) == 0:
        return no_effect("no exposed transfer of a tensor group stands next to a product")
    exposed_ns = per_step(plan.graph, float(plan.graph.duration_ns[transfers.calls.task[pairs.row]].sum()))
    return applies(
        f"{format_count(len(pairs))} exposed transfers of tensor groups ({format_duration_ns(exposed_ns)} per step) "
        "stand next to a product"
    )


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    return chunked(plan, tensor_transfers(plan.graph), int(parameters["chunks"]), bound)


CHUNKING = Optimization(
    id=ID,
    title="Pipelined chunked communication (CoC)",
    group=Group.COMMUNICATION,
    summary=(
        "A tensor-parallel transfer and the product next to it are cut in chunks along the tokens: while one chunk is "
        "transferred the next one is computed. Too many chunks cost more than they hide."
    ),
    parameters=(
        Parameter(
            "chunks",
            "Chunks",
            DEFAULT_CHUNKS,
            minimum=1,
            maximum=MOST_CHUNKS,
            provenance="between the 2, 4 and 8 MindSpeed offers as --coc-parallel-num",
        ),
    ),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "--use-ascend-coc --coc-parallel-num 4",
            "MindSpeed docs/zh/features/communication-over-computation.md",
            "--coc-parallel-num takes 2, 4 or 8; published gain 3.2 to 7.85 %; not with --use-ascend-mc2",
        ),
        Switch(
            "MindSpeed",
            "",
            "--use-ascend-coc --coc-fused-kernel",
            "MindSpeed docs/zh/features/communication-over-computation.md",
            "fused kernels: tensor parallelism of 8 and the ATB library only",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    conflicts=(Conflict("fusion.matmul_all_reduce", "CoC and MC2 cut the same products (MindSpeed refuses both)"),),
    risk="many small kernels: slower where the host is late already; sums over chunks keep their order, same results",
    undo="remove the flags",
    verify="exposed communication of the tensor group and step time after 5 warm steps, with 2, 4 and 8 chunks",
    provenance=(
        "fixed cost per transfer: runtime/collectives; smaller products: runtime/cost; contention: "
        "devices/data/efficiency.json, transfer_contention_ratio"
    ),
)
