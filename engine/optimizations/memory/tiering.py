"""Two tiers of memory: cold tensors wait in the host's DDR."""

from dataclasses import replace

from engine.optimizations.answers import already_on, applies, capture_unchanged, switched_on
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
from engine.workloads.scenario import Scenario
from engine.workloads.tiering_keys import enabled_tiering

ID = "memory.tiering"
_SIMULATED = "memory_hierachy tags are a simulator feature; this is the real counterpart"


def _on_scenario(scenario: Scenario, parameters: Parameters) -> Scenario:
    chosen = switched_on(ID)(scenario, parameters)
    tiering = enabled_tiering(chosen.memory.tiering, chosen.optimizations)
    return replace(chosen, memory=replace(chosen.memory, tiering=tiering))


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    if scenario.memory.tiering is not None:
        return already_on("the scenario keeps cold tensors in DDR")
    return applies("nothing reads the optimizer's state between two optimizer steps")


TIERING = Optimization(
    id=ID,
    title="Two tiers: HBM and DDR",
    group=Group.MEMORY,
    summary="Tensors tagged cold wait in the host's memory while a step does not need them, and are fetched in time.",
    parameters=(
        Parameter(
            "prefetch_distance",
            "blocks ahead of its use at which a cold tensor is fetched",
            2,
            minimum=1,
            provenance="assumed",
        ),
    ),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "--swap-optimizer --swap-optimizer-times 16",
            "MindSpeed docs/zh/features/swap-optimizer.md",
            f"{_SIMULATED}; needs --use-distributed-optimizer and --optimizer-selection fused_adamw",
        ),
        Switch(
            "mindformers",
            "",
            "swap_config: {swap: True, default_prefetch: 1}",
            "mindformers feature/memory_optimization.md",
            f"{_SIMULATED}; needs memory_optimize_level O0",
        ),
    ),
    on_scenario=_on_scenario,
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=twin_check(
        "the optimizer's state was allocated before the capture began and is not in its memory log"
    ),
    conflicts=(
        Conflict("memory.reuse_fp32_parameters", "--swap-optimizer cannot be combined with --reuse-fp32-param"),
        Conflict("communication.quantized_gradients", "--quant-grads excludes --swap-optimizer"),
    ),
    simulator_only=True,
    risk="copies that are late hold up the optimizer",
    undo="remove the option",
    verify="peak allocated memory, step time, and the optimizer's part of it",
)
