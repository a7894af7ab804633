"""Gradients are reduced bucket by bucket while the backward pass runs, instead of behind it."""

from engine.core.number_format import format_bytes, format_count, format_duration_ns
from engine.optimizations.answers import already_listed, already_on, applies, no_effect, switched_on, unknown
from engine.optimizations.communication.calls import Role, calls_of
from engine.optimizations.communication.exposure import Exposure, exposed_and_whole_ns, exposure
from engine.optimizations.communication.gradient_overlap import (
    exchanges_behind_backward,
    exchanges_beside,
    overlapped,
    runs_beside,
)
from engine.optimizations.communication.scenario_exchanges import exchanging_replicas, gradient_bytes, no_replicas
from engine.optimizations.communication.waiting import unsplit_reason, waiting_reason
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
from engine.workloads.scenario import Scenario

ID = "communication.overlap_gradients"
BUCKET = "bucket_bytes"
BUCKET_BYTES = 160_000_000
"""Megatron-LM's usual bucket of 40 million fp32 gradients."""
EXPOSED_SHARE = 0.02
"""Less exposed transfer than this share of all is the tail of a last bucket, which no setting hides."""


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    settled = already_listed(scenario, ID) or no_replicas(scenario)
    size = format_bytes(gradient_bytes(scenario))
    return settled or applies(
        f"{size} of gradients per device are reduced over {exchanging_replicas(scenario)} ranks after the backward pass"
    )


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    del parameters
    graph = plan.graph
    seen = exposure(graph, calls_of(graph))
    gradients = seen.calls.role == Role.GRADIENTS
    if not gradients.any():
        return no_effect("the capture shows no exchange of gradients between replicas")
    split = gradients & seen.calls.split
    if not split.any():
        return unknown(unsplit_reason(graph, seen, gradients))
    exposed_ns, whole_ns = exposed_and_whole_ns(graph, seen, split)
    if exposed_ns <= EXPOSED_SHARE * whole_ns:
        return no_effect(
            f"{format_duration_ns(whole_ns)} of gradient transfer per step, {format_duration_ns(exposed_ns)} exposed"
        )
    return _behind_backward(plan, seen, exposed_ns)


def _behind_backward(plan: CapturePlan, seen: Exposure, exposed_ns: float) -> Applicability:
    graph = plan.graph
    found = exchanges_behind_backward(graph, seen)
    if found is None:
        return unknown(
            f"{format_duration_ns(exposed_ns)} of gradient transfer is exposed, but not every member's capture lists "
            "the kernels of its backward pass"
        )
    beside = exchanges_beside(found)
    if runs_beside(found, beside):
        return already_on(
            f"{format_count(int(beside.sum()))} of {format_count(len(found.calls))} exchanges begin before the "
            f"backward pass ends; {format_duration_ns(exposed_ns)} stay exposed after it"
        )
    return applies(
        f"{format_duration_ns(exposed_ns)} of gradient transfer per step is exposed behind the backward pass"
        + waiting_reason(graph, seen)
    )


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    found = exchanges_behind_backward(plan.graph)
    return plan if found is None else overlapped(plan, found, int(parameters[BUCKET]) or BUCKET_BYTES, bound)


OVERLAP_GRADIENTS = Optimization(
    id=ID,
    title="Overlap of gradient reduction with the backward pass",
    group=Group.COMMUNICATION,
    summary=(
        "Gradients are reduced over the replicas bucket by bucket, each as soon as the backward pass has completed it, "
        "on a stream of its own."
    ),
    parameters=(
        Parameter(
            BUCKET,
            "Size of a bucket, bytes (0: gradients of one layer, of a capture the usual bucket)",
            BUCKET_BYTES,
            minimum=0,
            provenance="Megatron-LM's usual bucket of 40 million fp32 gradients; plain DDP has 25 MiB",
        ),
    ),
    switches=(
        Switch(
            "MindSpeed / Megatron-LM",
            "",
            "--overlap-grad-reduce",
            "MindSpeed docs/zh/features/async-ddp.md",
            "needs --use-distributed-optimizer",
        ),
        Switch(
            "PyTorch DDP",
            "",
            "torch.nn.parallel.DistributedDataParallel(module, bucket_cap_mb=25)",
            "PyTorch torch.nn.parallel.DistributedDataParallel",
            "overlaps by itself; buckets set how early the first one leaves",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="transfers take memory bandwidth from the backward pass (4.3 % for kernels bound by memory); same results",
    undo="remove the flag",
    verify="exposed communication and step time after 5 warm steps: exposure falls, computing grows a little",
    provenance=(
        "contention beside transfers: devices/data/efficiency.json, transfer_contention_ratio; fixed cost per bucket: "
        "runtime/collectives"
    ),
)
