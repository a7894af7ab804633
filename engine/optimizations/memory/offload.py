"""Activation offload."""

from engine.optimizations.answers import applies, capture_unchanged, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    Conflict,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.memory.twin_only import twin_check
from engine.workloads.scenario import Recompute, Scenario

ID = "memory.offload"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    if scenario.memory.recompute is Recompute.FULL:
        return no_effect("full recomputation keeps only the inputs of the layers")
    return applies("activations of all layers are kept from the forward to the backward pass")


OFFLOAD = Optimization(
    id=ID,
    title="Activation offload",
    group=Group.MEMORY,
    summary=(
        "Activations wait in the host's memory between the forward and the backward pass; "
        "copies have a stream of their own."
    ),
    parameters=(
        Parameter(
            "prefetch_distance",
            "blocks ahead of its use at which an activation is fetched",
            2,
            minimum=1,
            provenance="assumed",
        ),
    ),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "--swap-attention",
            "MindSpeed docs/zh/features/swap_attention.md",
            "needs flash attention; not with LoRA or --moe-fb-overlap",
        ),
        Switch("MindSpeed", "", "--smart-swap", "MindSpeed docs/zh/features/smart_swap.md", "static shapes"),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=twin_check("which blocks are activations that only the backward pass needs is not in a memory log"),
    conflicts=(Conflict("memory.recompute", "what is computed again is not kept, so there is nothing to offload"),),
    risk="copies share the link to the host with data loading",
    undo="remove the option",
    verify="peak allocated memory, step time, and whether copies end before their activation is needed",
)
