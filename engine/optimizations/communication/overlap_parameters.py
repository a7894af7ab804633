"""Updated weights are gathered while the next forward pass runs, instead of behind the optimizer."""

from engine.core.number_format import format_bytes, format_duration_ns
from engine.optimizations.answers import already_listed, already_on, applies, no_effect, switched_on, unknown
from engine.optimizations.communication.calls import Role, calls_of
from engine.optimizations.communication.exposure import exposed_and_whole_ns, exposure
from engine.optimizations.communication.parameter_prefetch import gathers_before_forward, lead_steps, prefetched
from engine.optimizations.communication.scenario_exchanges import exchanging_replicas, gradient_bytes, no_replicas
from engine.optimizations.communication.waiting import unsplit_reason
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Group,
    Optimization,
    Parameters,
    Switch,
)
from engine.workloads.parameters import MAIN_GRADIENT_BYTES
from engine.workloads.scenario import Scenario

ID = "communication.overlap_parameters"
BUCKET_BYTES = 80_000_000
"""Megatron-LM's usual bucket of 40 million parameters in a 16-bit type."""
EXPOSED_SHARE = 0.02
"""Less exposed transfer than this share of all is the first bucket, which the first layer needs at once."""


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    settled = already_listed(scenario, ID) or no_replicas(scenario)
    if settled is None and not scenario.parallel.distributed_optimizer:
        settled = no_effect("every replica updates all weights (distributed_optimizer = false): none are gathered")
    size = gradient_bytes(scenario) // MAIN_GRADIENT_BYTES * scenario.model.dtype.size_bytes
    return settled or applies(
        f"{format_bytes(size)} of weights per device are gathered from {exchanging_replicas(scenario)} ranks "
        "behind the optimizer"
    )


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    del parameters
    graph = plan.graph
    seen = exposure(graph, calls_of(graph))
    gathers = seen.calls.role == Role.PARAMETERS
    if not gathers.any():
        return no_effect("the capture shows no gathering of weights: the optimizer is not spread over the replicas")
    split = gathers & seen.calls.split
    if not split.any():
        return unknown(unsplit_reason(graph, seen, gathers))
    exposed_ns, whole_ns = exposed_and_whole_ns(graph, seen, split)
    if exposed_ns <= EXPOSED_SHARE * whole_ns:
        return no_effect(f"of {format_duration_ns(whole_ns)} per step {format_duration_ns(exposed_ns)} is exposed")
    if gathers_before_forward(graph, seen) is None:
        if lead_steps(graph, seen):
            return already_on(
                f"weights are gathered at the beginning of a step; {format_duration_ns(exposed_ns)} are exposed before "
                "the layers that need them"
            )
        return unknown(
            f"{format_duration_ns(exposed_ns)} of gathering weights is exposed, but no forward "
            "pass is found in the kernels of every member"
        )
    return applies(f"{format_duration_ns(exposed_ns)} per step of gathering weights is exposed behind the optimizer")


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    del parameters
    found = gathers_before_forward(plan.graph)
    return plan if found is None else prefetched(plan, found, BUCKET_BYTES, bound)


OVERLAP_PARAMETERS = Optimization(
    id=ID,
    title="Gathering of weights beside the next forward pass",
    group=Group.COMMUNICATION,
    summary=(
        "With a distributed optimizer every replica updates a part of the weights and gathers the rest: bucket by "
        "bucket beside the next forward pass instead of all at once behind the optimizer."
    ),
    parameters=(),
    switches=(
        Switch(
            "MindSpeed / Megatron-LM",
            "",
            "--overlap-param-gather",
            "MindSpeed docs/zh/features/async-ddp-param-gather.md",
            "needs --use-distributed-optimizer and --overlap-grad-reduce; legacy branches: not with --reuse-fp32-param",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    needs=("communication.overlap_gradients",),
    risk="transfers take memory bandwidth from the forward pass (4.3 % for kernels bound by memory); same results",
    undo="remove the flag",
    verify="exposed communication at the end of a step and step time after 5 warm steps",
    provenance=(
        "bucket: Megatron-LM's 40 million parameters; contention beside transfers: devices/data/efficiency.json, "
        "transfer_contention_ratio"
    ),
)
